"""What `hf.explain` says of a plan's routing: which way was taken, and to how many cores each way sends a tuple."""

from __future__ import annotations

import pytest

from handfast.core.planner import make_plan
from handfast.core.words import choices
from handfast.plan import INDEX, SCAN
from handfast.spec.join import JoinSpec
from handfast.spec.schema import Schema
from handfast.spec.types import INT64, TIMESTAMP

SCHEMA = Schema((("ts", TIMESTAMP), *((name, INT64) for name in "abcx")))

CHAIN = "r.a = s.a AND s.b = t.b"
TRIANGLE = f"{CHAIN} AND t.c = r.c"
COMMON = "r.a = s.a AND s.a = t.a"
LESS = "r.x < s.x AND s.x < t.x"

GRID = "no key is common to all streams, so the cores are a grid"
KEYS_ALLOW = "a tuple goes to every core that its keys allow"
MORE = "other ways send more, if every stream has as many rows"


def said(on: str, cores: int, local_join: str = INDEX) -> dict[str, tuple[str, str]]:
    names = tuple(name for name in "rst" if f"{name}." in on)
    join = JoinSpec(names, on, window="1 hour", time="ts").bind(dict.fromkeys(names, SCHEMA))
    made = choices(make_plan(join, cores, (), local_join))
    return {choice.what: (choice.choice, choice.reason) for choice in made}


@pytest.mark.parametrize(
    ("on", "cores", "how", "why"),
    [
        (
            TRIANGLE,
            8,
            "hypercube 2 x 2 x 2, over 8 cores",
            f"{GRID}: 2 by r.a = s.a, times 2 by s.b = t.b, times 2 by r.c = t.c; {KEYS_ALLOW}",
        ),
        (
            TRIANGLE,
            200,
            "hypercube 8 x 5 x 5, over 200 cores",
            f"{GRID}: 8 by r.a = s.a, times 5 by s.b = t.b, times 5 by r.c = t.c; {KEYS_ALLOW}",
        ),
        (
            f"{CHAIN} AND s.x = t.c",
            200,
            "hypercube 14 x 14, over 200 cores",
            f"{GRID}: 14 by r.a = s.a, times 14 by s.b = t.b and s.x = t.c; {KEYS_ALLOW}; cores left over: 4",
        ),
        (COMMON, 8, "hash, over 8 cores", "equal keys are sent to the same core, each tuple to one"),
        (
            "r.a = s.a AND s.x < t.x",
            8,
            "hash of r and s, over 8 cores",
            "they share keys, t does not: its tuples are sent to every core",
        ),
    ],
)
def test_the_routing_says_what_divides_the_tuples(on: str, cores: int, how: str, why: str) -> None:
    assert (how, why) == said(on, cores)["routing"]


@pytest.mark.parametrize(
    ("on", "cores", "taken", "others"),
    [
        (
            TRIANGLE,
            8,
            "a tuple of r goes to 2 cores, of s to 2, of t to 2",
            f"{MORE}: hash of r and s (r 1, s 1, t 8), only r divided (r 1, s 8, t 8)",
        ),
        (
            TRIANGLE,
            200,
            "a tuple of r goes to 5 cores, of s to 5, of t to 8",
            f"{MORE}: hash of r and s (r 1, s 1, t 200), only r divided (r 1, s 200, t 200)",
        ),
        (
            CHAIN,
            8,
            "a tuple of r goes to 2 cores, of s to 1, of t to 4",
            f"{MORE}: hash of r and s (r 1, s 1, t 8), only r divided (r 1, s 8, t 8)",
        ),
        (
            COMMON,
            8,
            "a tuple of r goes to 1 core, of s to 1, of t to 1",
            f"{MORE}: only r divided (r 1, s 8, t 8)",
        ),
        (LESS, 8, "a tuple of r goes to 1 core, of s to 8, of t to 8", "without keys there is no other way"),
    ],
)
def test_three_streams_say_how_many_copies_each_way_makes(on: str, cores: int, taken: str, others: str) -> None:
    assert (taken, others) == said(on, cores)["copies"]


def test_a_scan_uses_no_keys_and_says_so() -> None:
    assert "without keys there is no other way" == said(TRIANGLE, 8, SCAN)["copies"][1]


@pytest.mark.parametrize(("on", "cores"), [(TRIANGLE, 1), ("r.a = s.a", 8), ("r.x < s.x", 8)])
def test_one_core_and_two_streams_say_nothing_of_copies(on: str, cores: int) -> None:
    assert "copies" not in said(on, cores)
