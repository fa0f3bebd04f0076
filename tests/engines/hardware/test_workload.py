"""The inputs of the thesis' evaluations: how many tuples match, where they stand, and what a circuit is fed."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from handfast.engines.hardware.model.circuit import EMPTY, Ints
from handfast.engines.hardware.workload import BURST, GAUSSIAN, PATTERNS, RANDOM, StreamPair
from handfast.errors import SpecError


def matching(keys: Ints) -> list[int]:
    """The places of the tuples that match."""
    return np.flatnonzero(keys == 0).tolist()


def check_results(streams: StreamPair, keys: Callable[[StreamPair], tuple[Ints, Ints]]) -> None:
    """The pairs with equal keys are as many as the match rate says, squared."""
    r, s = keys(streams)
    assert streams.tuples == len(r) == len(s)
    wanted = round(streams.match_rate * streams.tuples)
    assert (wanted, wanted) == (len(matching(r)), len(matching(s)))
    assert wanted**2 == streams.results == np.equal.outer(r, s).sum()


@pytest.mark.parametrize("pattern", PATTERNS)
@pytest.mark.parametrize("rate", [0.0, 0.1, 0.4, 0.975, 1.0])
@pytest.mark.parametrize("tuples", [1, 7, 128])
def test_results_go_with_the_square_of_the_match_rate(pattern: str, rate: float, tuples: int) -> None:
    check_results(StreamPair(tuples, rate, pattern), StreamPair.keys)


def shared_keys(streams: StreamPair) -> tuple[Ints, Ints]:
    r, s = streams.keys()
    return r, abs(s)


def one_more(streams: StreamPair) -> tuple[Ints, Ints]:
    r, s = streams.keys()
    return np.where(np.cumsum(r != 0) == 1, 0, r), s


@pytest.mark.parametrize("mutant", [shared_keys, one_more])
def test_a_mutant_has_other_results(mutant: Callable[[StreamPair], tuple[Ints, Ints]]) -> None:
    with pytest.raises(AssertionError):
        check_results(StreamPair(128, 0.4), mutant)


@pytest.mark.parametrize(("burst_at", "first"), [(0.0, 0), (0.5, 30), (1.0, 60)])
def test_a_burst_is_one_tuple_behind_the_other(burst_at: float, first: int) -> None:
    streams = StreamPair(100, 0.4, BURST, burst_at=burst_at)
    r, s = streams.keys()
    for keys in (r, s):
        assert list(range(first, first + 40)) == matching(keys)


def test_the_gaussian_pattern_crowds_in_the_middle_and_the_random_one_does_not() -> None:
    def distance(pattern: str, **changes: float) -> float:
        keys = np.concatenate(StreamPair(4096, 0.2, pattern, **changes).keys())
        places = np.flatnonzero(keys == 0) % 4096
        return float(np.abs(places - 2047.5).mean()) / 4096

    assert pytest.approx(1 / 4, abs=0.01) == distance(RANDOM)
    assert distance(GAUSSIAN, deviation=1 / 16) < distance(GAUSSIAN) < distance(GAUSSIAN, deviation=1 / 4) < 1 / 4


def test_the_seed_decides_and_no_numpy_changes_what_it_gives() -> None:
    keys = [StreamPair(16, 0.5, RANDOM, seed).keys() for seed in (1, 1, 2)]
    assert all((a == b).all() for a, b in zip(keys[0], keys[1], strict=True))
    assert any((a != b).any() for a, b in zip(keys[0], keys[2], strict=True))
    r, s = keys[0]
    assert (GOLDEN_R, GOLDEN_S) == (matching(r), matching(s))


GOLDEN_R = [1, 4, 6, 8, 11, 12, 13, 15]
GOLDEN_S = [1, 2, 3, 4, 5, 7, 8, 9]


def test_a_step_brings_a_tuple_of_each_stream_and_the_flush_brings_none() -> None:
    steps = StreamPair(3, 1.0).steps(flush=2)
    assert [0, 1, 2, EMPTY, EMPTY] == steps.r.tolist() == steps.s.tolist()


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"tuples": 0}, "A stream has at least 1 tuple, not 0"),
        ({"match_rate": 1.1}, "A match rate is from 0 to 1, not 1.1"),
        ({"match_rate": float("nan")}, "A match rate is from 0 to 1, not nan"),
        ({"pattern": "wave"}, "An input pattern is one of 'random', 'gaussian', 'burst', not 'wave'"),
        ({"seed": -1}, "A seed is a whole number from 0 on, below 2^63, not -1"),
        ({"deviation": 0.0}, "A standard deviation is more than 0, not 0.0"),
        ({"burst_at": 2.0}, "A burst is from 0, the beginning of the stream, to 1, its end, not at 2.0"),
    ],
)
def test_what_is_no_input_is_named(fields: dict[str, object], message: str) -> None:
    with pytest.raises(SpecError) as raised:
        StreamPair(**{"tuples": 8, "match_rate": 0.5, **fields})  # type: ignore[arg-type]
    assert message == str(raised.value)
