"""Predicates written in Python: what they name, what is refused, and when two are the same."""

from __future__ import annotations

import pickle
import re
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

import handfast as hf
from handfast.spec.join import BoundJoin
from tests.judges.rows import schemas_of

TABLE = pa.table(
    {
        "ts": pa.array([1], pa.timestamp("us")),
        "x": pa.array([1], pa.int64()),
        "name": pa.array(["a"]),
        "price": pa.array([1], pa.decimal128(10, 2)),
    }
)
TABLES = {"r": TABLE, "s": TABLE}


def near(r_x: int, s_x: int) -> bool:
    return abs(r_x - s_x) < 5


def bound(on: Any, streams: tuple[str, ...] = ("r", "s")) -> BoundJoin:
    return hf.JoinSpec(streams, on, window="1 second", time="ts").bind(schemas_of(dict.fromkeys(streams, TABLE)))


def within(most: int) -> Callable[..., bool]:
    def within_most(r_x: int, s_x: int) -> bool:
        return abs(r_x - s_x) <= most

    return within_most


def test_a_join_is_another_when_its_python_is() -> None:
    prints = [
        bound(hf.predicate(function)).fingerprint
        for function in (near, lambda r_x, s_x: abs(r_x - s_x) < 6, lambda r_x, s_x: abs(r_x - s_x) < 7)
    ]
    prints += [bound(hf.predicate(within(5))).fingerprint, bound(hf.predicate(within(6))).fingerprint]
    assert len(set(prints)) == len(prints)
    assert bound(hf.predicate(near)).fingerprint == prints[0]
    assert bound(hf.predicate(within(5))) == bound(hf.predicate(within(5)))


def test_a_predicate_survives_pickling() -> None:
    again = pickle.loads(pickle.dumps(bound(hf.predicate(near))))
    assert bound(hf.predicate(near)) == again
    assert again.predicate.function.function(1, 2)


def test_the_longest_stream_name_owns_a_parameter() -> None:
    spec = hf.JoinSpec(("r", "r_x"), hf.predicate(lambda r_x_x, r_x: r_x_x == r_x), window="1 second", time="ts")
    assert spec.on_sql == "lambda(`r_x`.`x`, `r`.`x`)"


def test_conditions_in_a_list_must_all_hold() -> None:
    spec = hf.JoinSpec(("r", "s"), ["r.x = s.x OR TRUE", hf.predicate(near)], window="1 second", time="ts")
    assert spec.on_sql == "(r.x = s.x OR TRUE) AND (near(`r`.`x`, `s`.`x`))"


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: hf.predicate(abs), "takes a Python function, not <built-in function abs>"),
        (lambda: hf.predicate(lambda: True), "has no parameters"),
        (lambda: hf.predicate(lambda *r_x: True), "must be plain ones"),
        (lambda: bound(near), "is written on=hf.predicate(…)"),
        (lambda: bound([]), "on=[] has no condition"),
        (lambda: bound(hf.predicate(lambda r_x, t_x: True)), "'t_x' of predicate 'lambda' names no column of the join"),
        (lambda: bound(hf.predicate(lambda r_x, s_y: True)), "Stream 's' has no column 'y'"),
        (lambda: bound(hf.predicate(lambda r_name, s_x: True)), "'r_name' of predicate 'lambda' is of type string"),
        (lambda: bound(hf.predicate(lambda r_price, s_x: True)), "is of type decimal(10,2)"),
        (
            lambda: hf.join(TABLES, on=hf.predicate(lambda r_x, s_x: f"{r_x}" is object), window="1 second", time="ts"),
            "Numba cannot compile the predicate 'lambda'",
        ),
    ],
)
def test_what_is_no_predicate_is_refused(make: Callable[[], Any], message: str) -> None:
    with pytest.raises(hf.SpecError, match=re.escape(message)):
        make()
