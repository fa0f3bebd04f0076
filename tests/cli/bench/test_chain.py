"""The chain as it is measured: its windows are full and slide, every pair meets, and a hop has a cost."""

from __future__ import annotations

import pytest

from handfast.cli.bench import chain
from handfast.flow.topology import R, S

WINDOW = 20_000


@pytest.mark.parametrize("cores", [1, 3])
def test_what_comes_meets_a_window_that_stays_full(cores: int) -> None:
    sliding = chain.Sliding(chain.Band(WINDOW), cores)
    try:
        sliding.measured(4)
        measured = sliding.measured(8)
        # a tuple stays until a block has gone by: so much may a window be larger, or smaller while tuples are passed on
        assert pytest.approx(2 * 8 * chain.BLOCK * WINDOW, rel=0.1) == measured.pairs
        assert measured.matches > 0
        for stream in (R, S):
            tally = sliding.driver.tally(stream)
            assert pytest.approx(WINDOW, abs=2 * chain.BLOCK) == tally.live + tally.waiting
    finally:
        sliding.close()


def test_a_chain_that_is_fed_by_the_clock_is_not_behind() -> None:
    behind = list(chain.keeps_up(chain.Band(WINDOW), 2, rate=20_000, seconds=0.2))
    assert len(behind) == int(0.2 * 20_000 / chain.BLOCK)
    assert min(behind) >= 0


def test_all_that_a_hop_is_made_of_costs_something() -> None:
    hop = chain.hop(4)
    assert all(cost > 0 for cost in (hop.take, hop.forward, hop.take_s, hop.forward_s, hop.acknowledged, hop.expired))
    assert hop.s > hop.take_s
    assert min(hop.message, chain.hop_in_python(4), chain.latency(8), chain.copy_seconds(8)) > 0
    assert chain.collect_seconds(100) > 0
