"""Conditions along a ring: each is checked as early as it can be, on every way round, and equalities are by chains."""

from __future__ import annotations

from itertools import pairwise

import pytest

from handfast.spec.shown import shown
from tests.engines.hardware.circular.bench import ring


def conditions(on: str, streams: int) -> list[list[tuple[str, tuple[int, ...]]]]:
    names = "abcdefgh"[:streams]
    design = ring(on, dict.fromkeys(names, "4 rows"))
    return [[(shown(c.condition, names), c.hops) for c in own] for own in design.conditions.checks]


def test_of_equalities_that_chain_each_stage_checks_one() -> None:
    assert [
        [("c.k = a.k", (0, 1))],
        [("a.k = b.k", (0, 1))],
        [("b.k = c.k", (0, 1))],
    ] == conditions("a.k = b.k AND c.k = b.k", 3)


def test_an_equality_is_checked_where_the_second_of_its_tuples_comes_in() -> None:
    assert [
        [("c.k = a.k", (1, 2))],  # of four streams, c has been met when the tuple comes from c, or from b
        [],
        [("a.k = c.k", (1, 2))],
        [],
    ] == conditions("a.k = c.k", 4)


def test_what_one_stream_says_is_checked_at_its_stage_or_at_the_first() -> None:
    assert [[("a.x > 1", (0, 1))], [("a.x > 1", (0,))], []] == [
        [(text.replace("1 < a.x", "a.x > 1"), hops) for text, hops in own] for own in conditions("a.x > 1", 3)
    ]


def test_a_constant_is_checked_by_every_new_tuple() -> None:
    assert [[("FALSE", (0,))]] * 3 == conditions("FALSE", 3)


@pytest.mark.parametrize("streams", [3, 5, 8])
def test_an_intermediate_carries_the_key_of_its_last_tuple_alone_where_keys_chain(streams: int) -> None:
    names = "abcdefgh"[:streams]
    chained = " AND ".join(f"{x}.k = {y}.k" for x, y in pairwise(names))
    found = ring(chained, dict.fromkeys(names, "4 rows")).conditions
    for stage in range(streams):
        carried = {stream: found.carried(stage, stream) for stream in range(streams) if stream != stage}
        assert {(stage - 1) % streams} == {stream for stream, columns in carried.items() if columns}
