"""The stash: what it keeps, what it lets go, when it is whole, and what it does when tuples move."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import handfast as hf
from handfast.core import stash as stash_module
from handfast.core.join_core import JoinCore
from handfast.core.probe import Arrival, Prober
from handfast.core.recipe import recipe
from handfast.core.stash import Stash
from handfast.engines.local.options import LocalOptions
from handfast.engines.local.planning import lay_out
from handfast.flow.admission import split
from handfast.flow.batch import as_batch
from handfast.flow.time import Horizon

SCHEMA = pa.schema([("at", pa.timestamp("us")), ("x", pa.int64())])
SPEC = hf.JoinSpec(
    ("a", "b", "c"), "a.x = b.x AND b.x = c.x", window="10 microseconds", time="at", lateness="0 seconds"
)
PLAN = lay_out(SPEC, dict.fromkeys("abc", SCHEMA), LocalOptions())
A, B, C = 0, 1, 2


class Noted:
    """Finds nothing, and keeps what it is asked to find matches of."""

    def __init__(self) -> None:
        self.arrivals: list[Arrival] = []
        self.prober: Prober | None = None
        self.moves: list[tuple[Any, Any]] = []

    def cut(self, count: int) -> int:
        return max(1, count)

    def find(self, prober: Prober, arrivals: Sequence[Arrival]) -> Iterable[Any]:
        self.prober = prober
        self.arrivals = list(arrivals)
        return ()

    def moved(self, before: Any, after: Any) -> None:
        self.moves.append((before, after))


class Stored:
    """A core that holds tuples, and a stash for those of a and b."""

    def __init__(self, size: int | None) -> None:
        self.noted = Noted()
        self.core = JoinCore(PLAN, self.noted)
        self.stash = Stash(recipe(PLAN), (A, B), {C: B}, size)

    def store(self, stream: int, times: Sequence[int], *, horizon: int = 0, x: int = 1) -> Arrival:
        """Store tuples of one stream, and let those expire that no tuple from the horizon on can meet."""
        rows = pa.table({"at": pa.array(times, pa.timestamp("us")), "x": pa.array([x] * len(times))})
        blocks: list[Any] = [None, None, None]
        blocks[stream], _ = split(PLAN.join, stream, as_batch(rows))
        assert [] == list(self.core.step(blocks, Horizon(horizon, (0, 0, 0))))
        return self.noted.arrivals[0]

    def keep(self, arrival: Arrival, new: Sequence[int], partners: Sequence[int]) -> None:
        """Keep pairs of new tuples, by their places, and of stored ones, by their positions."""
        stream = arrival.new.stream
        self.stash.add(arrival, {stream: np.array(new), 1 - stream: np.array(partners)}, self.core.segments)

    @property
    def is_whole(self) -> bool:
        return self.stash.is_whole(self.core.segments)

    def found(self, arrival: Arrival) -> set[tuple[int, int]]:
        """The positions of the pairs that new tuples of c find."""
        assert self.noted.prober is not None
        given = self.stash.matches(self.noted.prober, arrival)
        return {pair for members in given for pair in zip(members[A].tolist(), members[B].tolist(), strict=True)}


def filled(size: int | None, pairs: int = 3) -> Stored:
    """A stash that has been given so many pairs, one tuple of b with each of a."""
    stored = Stored(size)
    stored.store(A, range(pairs))
    stored.keep(stored.store(B, [5]), [0] * pairs, range(pairs))
    return stored


def test_pairs_are_found_by_tuples_of_the_other_stream() -> None:
    stored = filled(None)
    assert stored.is_whole
    assert {(0, 0), (1, 0), (2, 0)} == stored.found(stored.store(C, [6]))
    assert set() == stored.found(stored.store(C, [6], x=2))


def test_a_pair_too_many_overwrites_the_oldest_and_the_stash_is_not_whole() -> None:
    stored = filled(2)
    assert (2, 1, False) == (len(stored.stash), stored.stash.overwritten, stored.is_whole)
    assert {(1, 0), (2, 0)} == stored.found(stored.store(C, [6]))


def test_a_stash_of_no_pairs_keeps_none() -> None:
    stored = filled(0)
    assert (0, 3, False) == (len(stored.stash), stored.stash.overwritten, stored.is_whole)
    assert set() == stored.found(stored.store(C, [6]))


def test_it_is_whole_again_when_all_that_was_lost_has_expired() -> None:
    stored = filled(2)
    assert not stored.is_whole
    stored.store(A, [11], horizon=11)  # 0 and 1 are over, 2 is not; all of a are in one block
    assert not stored.is_whole
    stored.store(A, [13], horizon=13)
    assert stored.is_whole


def test_the_youngest_pair_that_was_lost_decides() -> None:
    stored = Stored(1)
    for time in range(3):
        stored.store(A, [time])  # each in a block of its own
    stored.keep(stored.store(B, [5]), [0, 0, 0], [0, 1, 2])  # the pairs of 0 and 1 are lost
    stored.store(A, [10], horizon=10)
    assert not stored.is_whole, "0 has expired, 1 has not"
    stored.store(A, [11], horizon=11)
    assert stored.is_whole


def test_an_expired_pair_is_overwritten_without_a_loss() -> None:
    stored = filled(3)
    stored.store(C, [14], horizon=14)  # a's tuples are over
    stored.store(A, [14], horizon=14)
    stored.keep(stored.store(B, [14], horizon=14), [0], [3])
    assert (0, True) == (stored.stash.overwritten, stored.is_whole)


def test_pairs_of_windows_that_were_filled_before_are_missing_until_they_have_expired() -> None:
    stored = Stored(None)
    stored.store(A, [1])
    arrival = stored.store(B, [2])
    stored.stash.begin(arrival.stops, stored.core.segments)
    assert stored.is_whole, "b was empty"
    arrival = stored.store(B, [3])
    stored.stash.begin(arrival.stops, stored.core.segments)
    assert not stored.is_whole
    stored.store(A, [11], horizon=11)
    assert stored.is_whole


def test_what_was_overwritten_is_freed_while_a_step_lasts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stash_module, "_SPARE", 8)
    stored = Stored(4)
    stored.store(A, range(10))
    arrival = stored.store(B, [5] * 30)
    for place in range(30):
        stored.keep(arrival, [place] * 10, range(10))
        assert len(stored.stash._positions[A]) <= 4 + 10 + 8
    assert {(a, 29) for a in (6, 7, 8, 9)} == stored.found(stored.store(C, [6]))
    assert 296 == stored.stash.overwritten


def test_pairs_that_have_expired_fall_out_when_too_many_linger(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stash_module, "_SPARE", 2)
    stored = filled(None)
    stored.stash.tidy(stored.core.segments)
    assert 3 == len(stored.stash)
    stored.store(C, [14], horizon=14)
    stored.stash.tidy(stored.core.segments)
    assert 0 == len(stored.stash)


def test_only_pairs_of_tuples_that_are_stored_here_are_kept() -> None:
    stored = Stored(None)
    stored.store(A, [0])
    arrival = stored.store(B, [5, 6])
    there = Arrival(arrival.new, arrival.stops, np.array([False, True]))
    stored.keep(there, [0, 1], [0, 0])
    assert [0] == stored.stash._positions[B].values.tolist(), "the second of the new ones is the first that is stored"


def test_pairs_are_found_after_their_tuples_were_stored_anew() -> None:
    stored = Stored(None)
    stored.store(A, [0])
    stored.store(A, [4, 5])
    stored.keep(stored.store(B, [5]), [0, 0, 0], [0, 1, 2])
    stored.store(C, [11], horizon=11)  # the first of a is over
    before = stored.core.segments
    stored.core._store_anew([own.blocks for own in before], [own.marks for own in before])
    stored.stash.moved(before, stored.core.segments)
    assert stored.is_whole
    assert {(0, 0), (1, 0)} == stored.found(stored.store(C, [12], horizon=11))


@pytest.mark.parametrize("over", [False, True])
def test_what_is_missing_moves_with_the_tuples(over: bool) -> None:
    stored = Stored(1)
    for time in range(3):
        stored.store(A, [time])
    stored.keep(stored.store(B, [5]), [0, 0, 0], [0, 1, 2])
    horizon = 11 if over else 10
    stored.store(C, [horizon], horizon=horizon)
    before = stored.core.segments
    stored.core._store_anew([own.blocks for own in before], [own.marks for own in before])
    stored.stash.moved(before, stored.core.segments)
    assert over == stored.is_whole
    stored.store(C, [11], horizon=11)
    assert stored.is_whole


def test_where_positions_do_not_tell_which_tuple_is_meant_all_pairs_are_missing() -> None:
    stored = filled(None)
    before = stored.core.segments
    before[A]._torn = True
    stored.core._store_anew([own.blocks for own in before], [own.marks for own in before])
    stored.stash.moved(before, stored.core.segments)
    assert (0, False) == (len(stored.stash), stored.is_whole)
    stored.store(A, [13], horizon=13)
    assert stored.is_whole
