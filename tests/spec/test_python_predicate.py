"""Predicates written in Python: what they name, what is refused, and when two are the same."""

from __future__ import annotations

import os
import pickle
import re
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
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


async def not_waited_for(r_x: int, s_x: int) -> bool:
    return True


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
    assert {1} == {prints.count(own) for own in prints}
    assert bound(hf.predicate(near)).fingerprint == prints[0]
    assert bound(hf.predicate(within(5))) == bound(hf.predicate(within(5)))


def of_source(source: str, **outside: Any) -> Any:
    scope = dict(outside)
    exec(source, scope)  # noqa: S102 — a function with globals of its own
    return hf.predicate(scope["near"])


def test_what_a_predicate_uses_from_outside_counts() -> None:
    source = "def near(r_x, s_x): return abs(r_x - s_x) < LIMIT"
    assert of_source(source, LIMIT=1) == of_source(source, LIMIT=1)
    assert of_source(source, LIMIT=1) != of_source(source, LIMIT=5)
    helped = "def near(r_x, s_x): return [help(x) for x in (r_x,)][0] < s_x"
    one, other = (of_source(f"def help(x): return x + {n}\n{helped}") for n in (1, 2))
    assert one != other
    assert one == of_source(f"def help(x): return x + 1\n{helped}")
    large = np.arange(5000)
    changed = large.copy()
    changed[2500] = 0
    table = "def near(r_x, s_x): return TABLE[r_x] < s_x"
    assert of_source(table, TABLE=large) == of_source(table, TABLE=large.copy())
    assert of_source(table, TABLE=large) != of_source(table, TABLE=changed)
    recursive = "def near(r_x, s_x): return near(r_x - 1, s_x) if r_x > 0 else s_x > 0"
    assert of_source(recursive) == of_source(recursive)


def test_a_predicate_is_compiled_anew_when_what_it_uses_has_changed() -> None:
    counts = []
    for limit in (1, 5):
        on = of_source("def near(r_x, s_x): return abs(r_x - s_x) < LIMIT", LIMIT=limit)
        rows = pa.table({"ts": pa.array([0] * 10, pa.timestamp("us")), "x": list(range(10))})
        counts.append(len(hf.join({"r": rows, "s": rows}, on=on, window="1 second", time="ts")))
    assert [10, 70] == counts


def test_the_same_predicate_has_the_same_content_in_another_process() -> None:
    code = (
        "import math, handfast as hf\n"
        "def help(x): return math.floor(x)\n"
        "def near(r_x, s_x): return help(r_x) in {1, 2} and 'a' in {'a', 'b', 'c'}\n"
        "print(hf.predicate(near).code)"
    )
    said = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert 1 == len(said)


def test_an_index_out_of_bounds_is_an_error_of_the_pair() -> None:
    on = of_source("def near(r_x, s_x): return TABLE[r_x] > s_x", TABLE=np.array([10, 20]))
    rows = pa.table({"ts": pa.array([0, 0, 0], pa.timestamp("us")), "x": [0, 1, 10**12]})
    assert 4 == len(hf.join({"r": rows, "s": rows}, on=on, window="1 second", time="ts"))


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
        (lambda: hf.predicate(abs), "takes a plain Python function, not <built-in function abs>"),
        (lambda: hf.predicate(TABLE.select), "takes a plain Python function, not <bound method"),
        (lambda: hf.predicate(not_waited_for), "takes a plain Python function, not <function not_waited_for"),
        (lambda: of_source("def near(r_x, s_x): return THING", THING=object()), "uses 'THING', a object; a predicate"),
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
