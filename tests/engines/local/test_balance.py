"""Balance: like cores share alike, a slow one gets less, and nothing is lost in the sharing."""

from __future__ import annotations

import random

import pytest

from handfast.cli.bench.balance import after_bursts
from handfast.engines.local.balance import Cost, relative_costs, shares


def cost(*milliseconds: float) -> Cost:
    """What was measured in steps of a million meetings."""
    measured = Cost()
    for each in milliseconds:
        measured.measure(each / 1000, 1 << 20)
    return measured


@pytest.mark.parametrize("seed", range(50))
def test_new_tuples_level_the_cores(seed: int) -> None:
    chance = random.Random(seed)
    sizes = [chance.randrange(1000) for _ in range(chance.randrange(1, 9))]
    count = chance.randrange(5000)
    each = shares(sizes, [1.0] * len(sizes), count)
    assert count == sum(each)
    assert all(share >= 0 for share in each)
    filled = [size + share for size, share in zip(sizes, each, strict=True)]
    touched = [size for size, share in zip(filled, each, strict=True) if share]
    # who got something stands at one level, and who got nothing stood above it
    assert max(touched, default=0) - min(touched, default=0) <= 1
    assert all(size >= max(touched, default=0) - 1 for size, share in zip(sizes, each, strict=True) if not share)


def test_a_core_ten_times_slower_holds_a_tenth() -> None:
    assert [100, 1000, 1000] == shares([0, 0, 0], [10.0, 1.0, 1.0], 2100)


def test_small_differences_are_noise() -> None:
    assert [1.0, 1.0] == relative_costs([cost(*[1.0] * 16), cost(*[3.5] * 16)])
    assert [1.0, 10.0] == relative_costs([cost(*[1.0] * 16), cost(*[10.0] * 16)])


def test_a_core_is_not_slow_because_it_once_was() -> None:
    assert [1.0, 1.0] == relative_costs([cost(*[1.0] * 16), cost(500.0, 90.0, *[1.0] * 14)])
    assert [1.0, 1.0] == relative_costs([cost(*[1.0] * 16), cost(500.0)])  # too little is known


def test_few_meetings_are_not_measured() -> None:
    measured = Cost()
    for _ in range(20):
        measured.measure(1.0, 1000)
    assert measured.value is None


@pytest.mark.parametrize("cores", [2, 4])
@pytest.mark.parametrize("forwarding", ["low-latency", "handshake"])
def test_bursts_and_skew_leave_the_segments_alike(forwarding: str, cores: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Cost, "measure", lambda *_: None)  # the cores are alike, whatever else this machine does
    assert after_bursts(forwarding, cores) <= 1.2
