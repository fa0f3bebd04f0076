"""Predicates written in Python: what they name, what is refused, and when two are the same."""

from __future__ import annotations

import os
import pickle
import re
import subprocess
import sys
from collections.abc import Callable
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numba
import numpy as np
import pyarrow as pa
import pytest

import handfast as hf
from handfast.spec.join import BoundJoin
from tests.judges.rows import schemas_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

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


def namespace(**values: Any) -> ModuleType:
    module = ModuleType("m")
    vars(module).update(values)
    return module


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


def found(on: Any) -> int:
    rows = pa.table({"ts": pa.array([0] * 10, pa.timestamp("us")), "x": list(range(10))})
    return len(hf.join({"r": rows, "s": rows}, on=on, window="1 second", time="ts"))


NEAR = "def near(r_x, s_x): return abs(r_x - s_x) < {}"
WITHIN_1, WITHIN_5 = 10, 70  # pairs of ten numbers that are less than 1 and less than 5 apart


def _global(limit: int) -> tuple[Any, Callable[[int], None]]:
    scope: dict[str, Any] = {"LIMIT": limit}
    exec(NEAR.format("LIMIT"), scope)  # noqa: S102 — a function with globals of its own
    return scope["near"], lambda other: scope.update(LIMIT=other)


def _captured(limit: int) -> tuple[Any, Callable[[int], None]]:
    def near(r_x: int, s_x: int) -> bool:
        return abs(r_x - s_x) < limit

    def change(other: int) -> None:
        nonlocal limit
        limit = other

    return near, change


def _of_a_module(limit: int) -> tuple[Any, Callable[[int], None]]:
    module: Any = ModuleType("settings")
    module.near = ModuleType("settings.near")
    module.near.limit = limit
    scope: dict[str, Any] = {"settings": module}
    exec(NEAR.format("settings.near.limit"), scope)  # noqa: S102
    return scope["near"], lambda other: setattr(module.near, "limit", other)


def _in_an_array(limit: int) -> tuple[Any, Callable[[int], None]]:
    limits = np.array([limit])
    scope: dict[str, Any] = {"LIMITS": limits}
    exec(NEAR.format("LIMITS[0]"), scope)  # noqa: S102
    return scope["near"], lambda other: limits.fill(other)


def _of_a_helper(limit: int, compile: Callable[[Any], Any] = lambda function: function) -> Any:
    scope: dict[str, Any] = {"LIMIT": limit}
    exec("def limit(): return LIMIT\n" + NEAR.format("limit()"), scope)  # noqa: S102
    scope["limit"] = compile(scope["limit"])
    return scope["near"], lambda other: scope.update(LIMIT=other)


def _of_a_compiled_helper(limit: int) -> Any:
    return _of_a_helper(limit, numba.njit)


@pytest.mark.parametrize(
    "made",
    [_global, _captured, _of_a_module, _in_an_array, _of_a_helper, _of_a_compiled_helper],
    ids=lambda f: f.__name__,
)
def test_what_a_predicate_uses_counts_as_it_was_when_it_was_made(made: Any) -> None:
    function, change = made(1)
    first = hf.predicate(function)
    change(5)
    second = hf.predicate(function)
    travelled = pickle.loads(pickle.dumps(first))
    change(1)
    third = hf.predicate(function)
    change(7)
    assert [WITHIN_1, WITHIN_5, WITHIN_1, WITHIN_1] == [found(on) for on in (first, second, travelled, third)]
    assert [False, True] == [bool(on.function(1, 2)) for on in (travelled, second)]
    assert (first, first.code) == (third, travelled.code)
    assert first != second


@pytest.mark.spark
def test_what_a_predicate_uses_travels_to_spark_as_it_was(spark: SparkSession) -> None:
    hf.configure(spark, cores=2)
    rows = spark.range(10).selectExpr("id AS x", "TIMESTAMP '2026-01-31' AS ts")
    counts = []
    for made in (_of_a_module, _of_a_compiled_helper, _in_an_array, _captured):
        function, change = made(1)
        on = hf.predicate(function)
        change(5)
        counts.append(hf.join({"r": rows, "s": rows}, on=on, window="1 second", time="ts").count())
    assert [WITHIN_1] * 4 == counts


def test_a_variable_of_a_loop_counts_as_it_was_in_its_round() -> None:
    made = [hf.predicate(lambda r_x, s_x: abs(r_x - s_x) < limit) for limit in (1, 5)]  # noqa: B023 — this is the claim
    assert [WITHIN_1, WITHIN_5] == [found(on) for on in made]


def test_functions_of_the_same_code_that_call_each_other_are_told_apart() -> None:
    def further(inner: Any, by: int) -> Any:
        def one(x: int) -> int:
            return inner(x) + by

        return one

    def near(by: int) -> Any:
        limit = further(further(further(lambda x: x, 0), by), 1)
        return hf.predicate(lambda r_x, s_x: abs(r_x - s_x) < limit(0))

    assert [WITHIN_1, WITHIN_5] == [found(near(by)) for by in (0, 4)]
    assert near(0) != near(4)


def test_a_predicate_can_call_itself() -> None:
    on = of_source("def near(r_x, s_x): return r_x == s_x if r_x < 1 or s_x < 1 else near(r_x - 1, s_x - 1)")
    assert WITHIN_1 == found(on) == found(pickle.loads(pickle.dumps(on)))


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
        (
            lambda: of_source("def near(r_x, s_x): return m.THING", m=namespace(THING=object())),
            "uses 'm.THING', a object; a predicate",
        ),
        (
            lambda: of_source("def near(r_x, s_x): return T[0]", T=np.array([object()])),
            "uses 'T', an array of objects",
        ),
        (lambda: of_source("def near(r_x, s_x): return r_x < LATER"), "uses 'LATER', which is not defined; define it"),
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
