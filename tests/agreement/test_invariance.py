"""What must not change a result: how the input is cut, what columns are called, which stream is named first."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
import sqlglot
from sqlglot import exp

from tests.agreement.runs import local_bounded, local_steps_and_close
from tests.judges.rows import rows_of
from tests.sampling import sampled
from tests.strategies import MULTI, SHAPES, Case

HOW = ("inner", "left", "right", "full", "semi", "anti")
MIRRORED = {"inner": "inner", "left": "right", "right": "left", "full": "full"}


def _case(seed: int) -> Case:
    pool = MULTI if seed % 5 == 0 else SHAPES
    case = Case.of(seed, shape=pool[seed * 7 % len(pool)])
    if seed % 3 == 0:
        case = case.counted(random.Random(seed))
    return case.asked(how=HOW[seed % 6]) if len(case.streams) == 2 else case


def _cut(case: Case, rng: random.Random, *, finest: bool = False) -> Case:
    """The same rows, every stream's in the same order, cut into other batches."""
    arrivals = [(name, k) for step in case.steps for name, table in step.items() for k in range(len(table))]
    cuts = [*range(len(arrivals))] if finest else sorted(rng.sample(range(len(arrivals) + 1), min(4, len(arrivals))))
    steps, done = [], dict.fromkeys(case.streams, 0)
    for low, high in zip([0, *cuts], [*cuts, len(arrivals)], strict=True):
        step = {}
        for name in case.streams:
            count = sum(origin == name for origin, _ in arrivals[low:high])
            step[name] = case.tables[name].slice(done[name], count)
            done[name] += count
        steps.append(step)
    return replace(case, steps=steps, origin=f"{case.origin}, cut again")


@pytest.mark.parametrize("start", sampled(range(0, 120, 30), 4))
def test_the_cut_does_not_matter_where_no_row_is_late(start: int) -> None:
    tried = 0
    for seed in range(start, start + 30):
        case = _case(seed)
        if any(_cut(case, random.Random(), finest=True).admission.late.values()):
            continue
        tried += 1
        expected = case.expected()
        for number in range(3):
            again = _cut(case, random.Random(number), finest=number == 2)
            assert expected == local_steps_and_close(again)[1], f"seed {seed}: {again}"
    assert tried >= 10


def _renamed(case: Case) -> Case:
    """The same case with other names for all columns."""
    names = {s: {c: f"column {k}" for k, c in enumerate(case.tables[s].column_names)} for s in case.streams}

    def rename(node: exp.Expression) -> exp.Expression:
        if not isinstance(node, exp.Column):
            return node
        schemas = dict(zip(case.streams, case.join.schemas, strict=True))
        owners = [s for s in case.streams if not node.table or s.lower() == node.table.lower()]
        stream, column = next((s, found) for s in owners if (found := schemas[s].find(node.name)) is not None)
        return exp.column(names[stream][column[0]], table=stream, quoted=True)

    on = sqlglot.parse_one(case.kwargs["on"], dialect="databricks").transform(rename).sql(dialect="databricks")
    times = {s: names[s][time] for s, time in zip(case.streams, case.join.times, strict=True)}
    changed: dict[str, Any] = {"on": on, "time": times}
    if "sequence" in case.kwargs:
        changed["sequence"] = {s: names[s]["turn"] for s in case.streams}

    def renamed(tables: dict[str, pa.Table]) -> dict[str, pa.Table]:
        return {s: table.rename_columns(list(names[s].values())) for s, table in tables.items()}

    steps = [renamed(step) for step in case.steps]
    return replace(case.asked(**changed), tables=renamed(case.tables), steps=steps)


@pytest.mark.parametrize("start", sampled(range(0, 120, 30), 4))
def test_names_of_columns_do_not_matter(start: int) -> None:
    for seed in range(start, start + 30):
        case = _case(seed)
        again = _renamed(case)
        assert case.expected() == local_bounded(again), f"seed {seed}: {again}"
        assert case.expected_at_close() == local_steps_and_close(again)[1], f"seed {seed}: {again}"


def _apart(case: Case) -> Case:
    """The case without the rows whose time a row of an earlier stream has."""
    tables, taken = {}, set()
    for name, time in zip(case.streams, case.join.times, strict=True):
        times = [row[time] for row in rows_of(case.tables[name])]
        tables[name] = case.tables[name].filter(pa.array([t not in taken for t in times], pa.bool_()))
        taken |= set(times)
    return replace(case, tables=tables)


def _swapped(case: Case) -> Case:
    """The same case, the streams named the other way round."""
    how = MIRRORED[case.kwargs.get("how", "inner")]
    streams = case.streams[::-1]
    tables = {name: case.tables[name] for name in streams}
    return replace(case.asked(how=how), streams=streams, tables=tables)


def _in_order_of(case: Case, result: Counter[tuple[Any, ...]]) -> Counter[tuple[Any, ...]]:
    """A result of the swapped case with its columns where the case has them."""
    widths = [case.tables[name].num_columns for name in reversed(case.streams)]
    again: Counter[tuple[Any, ...]] = Counter()
    for row, count in result.items():
        parts, start = [], 0
        for width in widths:
            parts.append(row[start : start + width])
            start += width
        again[(*(value for part in reversed(parts) for value in part), row[-1])] += count
    return again


@pytest.mark.parametrize("start", sampled(range(0, 160, 40), 4))
def test_the_order_of_the_streams_does_not_matter(start: int) -> None:
    tried = 0
    for seed in range(start, start + 40):
        case = _case(seed)
        if case.kwargs.get("how", "inner") not in MIRRORED:
            continue
        case = _apart(case) if case.join.counted else case
        tried += 1
        assert case.expected() == _in_order_of(case, local_bounded(_swapped(case))), f"seed {seed}: {case}"
    assert tried >= 20
