"""The planner: which routing takes which join."""

from __future__ import annotations

import pytest

from handfast.core.planner import make_plan
from handfast.errors import UnsupportedError
from handfast.plan import SCAN
from handfast.spec.join import BoundJoin, JoinSpec
from handfast.spec.schema import Schema
from handfast.spec.types import INT64, TIMESTAMP

SCHEMA = Schema((("ts", TIMESTAMP), ("k", INT64), ("x", INT64)))

KEY, BAND, LESS = "r.k = s.k", "ABS(r.x - s.x) <= 8", "r.x < s.x"


def bound(on: str, how: str = "inner", streams: tuple[str, ...] = ("r", "s")) -> BoundJoin:
    spec = JoinSpec(streams, on, how=how, window="1 hour", time="ts")
    return spec.bind(dict.fromkeys(streams, SCHEMA))


@pytest.mark.parametrize(
    ("on", "how", "routing"),
    [
        (KEY, "inner", "hash"),
        (KEY, "full", "hash"),
        (f"{KEY} AND {BAND}", "left", "hash"),
        (BAND, "inner", "range"),
        (BAND, "right", "range"),
        (BAND, "full", "one"),
        (LESS, "inner", "meet"),
        (LESS, "semi", "spread"),
        (LESS, "full", "one"),
    ],
)
def test_a_join_of_two_streams_has_the_first_routing_that_takes_it(on: str, how: str, routing: str) -> None:
    assert routing == make_plan(bound(on, how), 3).routing.name


@pytest.mark.parametrize(
    ("on", "routing"),
    [
        (f"{KEY} AND s.k = t.k", "hash"),
        (f"{KEY} AND s.x < t.x", "hash"),
        (f"{KEY} AND s.x = t.x", "hypercube"),
        (f"{BAND} AND s.x < t.x", "spread"),
    ],
)
def test_three_streams_are_divided_by_the_keys_they_share_or_one_of_them_is(on: str, routing: str) -> None:
    assert routing == make_plan(bound(on, streams=("r", "s", "t")), 4).routing.name


@pytest.mark.parametrize(("how", "anchor"), [("left", 0), ("right", 1), ("semi", 0), ("anti", 0)])
def test_a_preserved_stream_is_the_anchor(how: str, anchor: int) -> None:
    assert anchor == make_plan(bound(BAND, how), 3).anchor


def test_a_scan_uses_no_keys() -> None:
    assert "meet" == make_plan(bound(KEY), 3, (), SCAN).routing.name


def test_a_handshake_is_for_those_who_ask_for_it() -> None:
    assert "handshake" == make_plan(bound(KEY), 3, handshake=True).routing.name
    with pytest.raises(UnsupportedError, match=r"joins two streams with how='inner', not how='left'; leave forwarding"):
        make_plan(bound(KEY, "left"), 3, handshake=True)
