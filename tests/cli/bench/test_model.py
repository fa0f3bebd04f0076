"""The model of the chain: it keeps to the square-root law, to what messages cost, and loses no tuple of a burst."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from handfast.cli.bench.model import Bubble, Machine, bubble, square_root_law, sustained
from handfast.errors import SpecError
from handfast.flow.topology import ChainTopology

WINDOW = 60.0  # seconds
FREE = Machine(pair_seconds=1e-9, message_seconds=0.0, block=256)
COSTLY = Machine(pair_seconds=1e-9, message_seconds=1e-3, block=256)


def carried(machine: Machine, cores: int, window: float) -> float:
    return sustained(machine, ChainTopology(cores), window)


@pytest.mark.parametrize("cores", [1, 2, 8, 64])
def test_without_message_cost_the_chain_keeps_to_the_square_root_law(cores: int) -> None:
    law = square_root_law(FREE, cores, WINDOW)
    assert math.isclose(1, 2 * law * law * WINDOW / cores * FREE.pair_seconds)
    assert pytest.approx(law, rel=0.05) == carried(FREE, cores, WINDOW)


def test_messages_keep_the_chain_below_the_law_and_the_more_so_the_more_cores() -> None:
    shares = [carried(COSTLY, cores, WINDOW) / square_root_law(COSTLY, cores, WINDOW) for cores in (1, 8, 64, 256)]
    assert sorted(shares, reverse=True) == shares
    assert shares[0] < 1
    assert shares[-1] < 0.9


@pytest.mark.parametrize("window", [60.0, 0.01])  # in the shorter one, a core's segment holds less than a block
@pytest.mark.parametrize("cores", [3, 48, 100])
def test_a_core_that_keeps_up_has_just_time_for_its_scans_and_its_messages(cores: int, window: float) -> None:
    rate = carried(COSTLY, cores, window)
    messages = rate / COSTLY.block * COSTLY.message_seconds
    scans = rate * rate * window / cores * COSTLY.pair_seconds
    assert pytest.approx(1, rel=0.02) == 2 * (messages + scans)


def test_no_number_of_cores_carries_more_than_one_core_can_take_in() -> None:
    assert carried(COSTLY, 256, 0.01) < COSTLY.block / (2 * COSTLY.message_seconds)


def test_four_times_the_cores_carry_about_twice_the_rate() -> None:
    few = Machine(pair_seconds=1e-9, message_seconds=1e-5, block=256)
    assert pytest.approx(2, rel=0.02) == carried(few, 64, WINDOW) / carried(few, 16, WINDOW)


def test_a_thousand_cores_are_within_reach() -> None:
    assert carried(COSTLY, 1024, WINDOW) > carried(COSTLY, 256, WINDOW)


def test_no_number_of_cores_carries_more_than_the_collector_can_take() -> None:
    collected = Machine(pair_seconds=1e-9, message_seconds=0.0, block=256, hit_rate=1e-3, collect_seconds=1e-7)
    limit = math.sqrt(1 / (2 * WINDOW * 1e-3 * 1e-7))
    assert carried(collected, 1, WINDOW) < limit
    assert pytest.approx(limit) == carried(collected, 64, WINDOW)
    rate = carried(collected, 64, WINDOW)
    assert pytest.approx(1) == 2 * rate * rate * WINDOW * 1e-3 * 1e-7  # all of one thread's time


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ((0.0, 0.0, 1), "A pair must cost"),
        ((1e-9, -1.0, 1), "A message must cost"),
        ((1e-9, 0.0, 0), "at least 1"),
        ((1e-9, 0.0, 1, 1.5), "matches by pair must be 0 to 1"),
        ((1e-9, 0.0, 1, 0.5, -1.0), "cost the collector 0 seconds or more"),
    ],
)
def test_a_machine_checks_itself(values: tuple[Any, ...], said: str) -> None:
    with pytest.raises(SpecError, match=said):
        Machine(*values)


def test_a_chain_has_cores_and_a_window() -> None:
    with pytest.raises(SpecError, match="number of cores must be at least 1, not 0"):
        square_root_law(FREE, 0, WINDOW)
    with pytest.raises(SpecError, match=r"window must last a positive number of seconds, not 0\.0"):
        square_root_law(FREE, 1, 0.0)
    with pytest.raises(SpecError, match="burst's number of tuples must be at least 0, not -1"):
        bubble(ChainTopology(4), 40, -1)


# -- bursts --------------------------------------------------------------------------------------

BURSTS = [(16, 240, 600), (1, 40, 100), (5, 47, 1000), (8, 6, 30), (4, 40, 0)]


def unevenness(sizes: np.ndarray) -> np.ndarray:
    """At every moment, the largest segment as a multiple of the mean."""
    return sizes.max(axis=1) / sizes.mean(axis=1)


def while_burst_is_in(seen: Bubble, window: int) -> np.ndarray:
    return (seen.times > 0) & (seen.times < window)


@pytest.mark.parametrize(("cores", "window", "burst"), BURSTS)
@pytest.mark.parametrize("pace", [1, 8])
def test_what_has_come_in_is_stored_or_gone_at_every_moment(cores: int, window: int, burst: int, pace: int) -> None:
    seen = bubble(ChainTopology(cores), window, burst, pace=pace)
    for sizes, gone in ((seen.by_age, seen.gone_by_age), (seen.by_size, seen.gone_by_size)):
        assert (len(seen.times), cores) == sizes.shape
        assert sizes.min() >= 0
        assert seen.entered.tolist() == (sizes.sum(axis=1) + gone).tolist()
    assert (seen.gone_by_size <= seen.gone_by_age).all()  # late expiry is harmless, early expiry a bug


def test_by_age_the_bubble_travels_from_core_to_core() -> None:
    seen = bubble(ChainTopology(16), 240, 600)
    inside = while_burst_is_in(seen, 240)
    assert (seen.times[inside] * 16 // 240).tolist() == seen.by_age[inside].argmax(axis=1).tolist()
    assert {660} == set(seen.by_age[inside].max(axis=1).tolist())  # 600, and the 15 · 4 that always stand at a core


def test_by_size_the_bubble_spreads_until_all_cores_have_the_same() -> None:
    seen = bubble(ChainTopology(16), 240, 600)
    inside = while_burst_is_in(seen, 240)
    assert (unevenness(seen.by_size)[inside] < unevenness(seen.by_age)[inside]).all()
    assert unevenness(seen.by_size)[seen.times == 120] < 1.02


def test_without_a_burst_all_cores_have_the_same() -> None:
    seen = bubble(ChainTopology(4), 40, 0)
    assert {40} == set(seen.by_age.ravel().tolist()) == set(seen.by_size.ravel().tolist())


def test_a_burst_is_followed_the_same_way_every_time() -> None:
    once, again = bubble(ChainTopology(5), 47, 1000), bubble(ChainTopology(5), 47, 1000)
    assert np.array_equal(once.by_size, again.by_size)
    assert np.array_equal(once.by_age, again.by_age)
