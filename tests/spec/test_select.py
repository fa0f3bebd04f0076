"""The result's columns: every one, or those that `select` names."""

from __future__ import annotations

import random

import pytest

from handfast.errors import SpecError
from handfast.spec.join import BoundJoin, JoinSpec
from handfast.spec.schema import Schema
from handfast.spec.types import DOUBLE, STRING, TIMESTAMP
from tests.agreement.runs import local_bounded, local_steps
from tests.strategies import MULTI, SHAPES, Case

TRADES = Schema((("ts", TIMESTAMP), ("symbol", STRING), ("price", DOUBLE)))
QUOTES = Schema((("ts", TIMESTAMP), ("Symbol", STRING), ("bid", DOUBLE)))


def bound(select: str | None, how: str = "inner") -> BoundJoin:
    spec = JoinSpec(("r", "s"), "r.symbol = s.symbol", window="1 s", time="ts", select=select, how=how)
    return spec.bind({"r": TRADES, "s": QUOTES})


@pytest.mark.parametrize(
    ("select", "names"),
    [
        (None, ["r_ts", "r_symbol", "r_price", "s_ts", "s_Symbol", "s_bid", "match_time"]),
        ("*", ["r_ts", "r_symbol", "r_price", "s_ts", "s_Symbol", "s_bid", "match_time"]),
        ("r.price, s.bid", ["r_price", "s_bid"]),
        ("R.PRICE, bid AS `the bid`, match_time AS at", ["r_price", "the bid", "at"]),
        ("match_time, s.*", ["match_time", "s_ts", "s_Symbol", "s_bid"]),
        ("s.symbol", ["s_Symbol"]),
    ],
)
def test_the_columns_of_the_result(select: str | None, names: list[str]) -> None:
    assert names == list(bound(select).output_names)


@pytest.mark.parametrize(
    ("select", "message"),
    [
        ("r.prize", "Stream 'r' has no column 'prize'; did you mean 'price'?"),
        ("q.price", "select names a stream 'q' that the join does not have"),
        ("ts", "'ts' in select is in several streams; name its stream, one of r, s"),
        ("volume", "'volume' in select is in no stream"),
        ("r.price * 2", "'r.price * 2' in select is no column; compute it from the result"),
        ("r.price AS p, s.bid AS P", "Two columns of the result would be called 'p'"),
        ("r.price FROM r", "must be a list of columns alone"),
        ("r.price, (s.bid", "is not a SQL list"),
        ("", "select must be a list of columns like"),
    ],
)
def test_what_select_cannot_say(select: str, message: str) -> None:
    with pytest.raises(SpecError) as error:
        bound(select)
    assert message in str(error.value)


def test_a_semi_join_has_no_columns_of_the_second_stream() -> None:
    assert bound("price, match_time", "semi").output_names == ("r_price", "match_time")
    with pytest.raises(SpecError, match="The result has no columns of stream 's'"):
        bound("r.price, s.bid", "semi")


@pytest.mark.parametrize("seed", range(40))
def test_the_engine_gives_the_columns_asked_for(seed: int) -> None:
    pool = MULTI if seed % 4 == 0 else SHAPES
    case = Case.of(seed, shape=pool[seed % len(pool)])
    if seed % 4:
        case = case.asked(how=("inner", "left", "right", "full", "semi")[seed % 5])
    rng, columns = random.Random(seed), list(case.join.fields)
    chosen = rng.sample(columns, rng.randint(1, len(columns)))
    names = [f"{case.streams[f.stream]}.`{f.column}`" if f.stream is not None else "match_time" for f in chosen]
    asked = case.asked(select=", ".join(names))
    assert asked.expected() == local_bounded(asked), f"{asked}"
    assert asked.expected_of_steps() == local_steps(asked), f"{asked}"
    assert asked.expected().total() == case.expected().total()
