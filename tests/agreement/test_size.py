"""Joins of thousands of rows, over many blocks, expiries and merges: every engine finds what DuckDB finds."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import handfast as hf
from tests.agreement.admission import adds_up
from tests.agreement.runs import open_session, spark_output
from tests.judges.compare import carries_other_values, difference, numbers_of, steps_back, wanted
from tests.strategies import Case
from tests.strategies.sized import sized

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CHUNK = 10
PRESERVED = {"left": (0,), "right": (1,), "full": (0, 1), "anti": (0,)}  # of which rows that match nothing are given
Record = Callable[[str, object], None]


def _options(case: Case, chance: random.Random) -> dict[str, Any]:
    """How the local engine runs it: any local join, and a handshake chain where two streams can use one."""
    local_join = chance.choice(("index", "index", "merge", "scan"))
    handshake = len(case.streams) == 2 and case.kwargs["how"] == "inner" and chance.random() < 0.5
    return {"local_join": local_join, "forwarding": "handshake" if handshake else "low-latency"}


def _check(case: Case, tables: dict[str, pa.Table], found: pa.Table, what: str, *, ended: bool = True) -> int:
    """The result is DuckDB's for these tables, and in order where that is asked; how many rows it has.

    A stream that has not `ended` gives what is certain so far, and its files stand in no order: test_in_order.py looks
    at that, from batch to batch.
    """
    expected, given = wanted(tables, **case.kwargs), numbers_of(found, case.streams)
    said = f"{what}: {case.origin}: {case.shape.name}, {case.kwargs}"
    differs = difference(expected, given, expected if ended else _certain(case, expected))
    assert not differs, f"{differs}; {said}"
    if ended and case.kwargs.get("in_order"):
        assert steps_back(expected, given) == 0, said
    return len(expected)


def _certain(case: Case, expected: pa.Table) -> pa.Table:
    """Without what waits for more rows: that one of the last rows of a count window matches nothing is not certain."""
    for stream in PRESERVED.get(case.spec.how, ()):
        name, window = case.streams[stream], case.spec.streams[stream].window
        if isinstance(window, hf.CountWindow):
            times = sorted(_micros(case.tables[name][case.kwargs["time"][name]]))
            first = times[-min(window.rows, len(times))]  # rows of this very time may be in or out
            last = pc.greater_equal(expected["time"], first)
            alone = [pc.is_null(expected[other]) for other in case.streams if other in expected.column_names]
            if len(alone) > 1 and not case.kwargs.get("in_order"):  # in order, matches wait with them
                last = pc.and_(last, pc.or_(*alone))
            expected = expected.filter(pc.invert(last))
    return expected


def _micros(times: pa.ChunkedArray) -> list[int]:
    known = times.cast(pa.timestamp("us", times.type.tz)).cast(pa.int64()).drop_null()
    return [int(time) for time in known.to_pylist()]


def _check_local(seed: int) -> int:
    case, chance = sized(seed), random.Random(seed)
    options = _options(case, chance)
    what = f"cores={case.cores}, {options}"
    if seed % 2:
        found = hf.join(case.tables, **case.kwargs, options=hf.LocalOptions(cores=case.cores, **options))
        tables = case.tables
    else:
        with open_session(case, **options) as session:
            batches = [batch for step in case.steps for batch in session.push_together(step)]
        found = pa.Table.from_batches([*batches, *session.close()], session.schema)
        assert adds_up(session.metrics()), f"{what}: {case.origin}"
        late = {name: rows["id"] for name, rows in session.late_rows().items()}
        tables = {
            name: table.filter(pc.invert(pc.is_in(table["id"], late[name]))) for name, table in case.tables.items()
        }
    rows = _check(case, tables, found, what)
    assert not carries_other_values(found, case.tables), f"{what}: {case.origin}"
    return rows


def _check_batch(seed: int, spark: SparkSession) -> None:
    case = sized(seed, for_spark=True)
    hf.configure(spark, cores=case.cores)
    frames = {name: spark.createDataFrame(table) for name, table in case.tables.items()}
    _check(case, case.tables, hf.join(frames, **case.kwargs).toArrow(), "Spark batch")


def _check_stream(seed: int, spark: SparkSession, folder: Path) -> None:
    """All that a stream gives once rows have come that are too late for everything: those are not looked at."""
    case = _ended(sized(seed, for_spark=True, steps=4))
    found, query = spark_output(case, spark, folder)
    counted = hf.metrics(query)
    assert adds_up(counted), case.origin
    assert not any(own.late for own in counted.streams.values()), case.origin
    shown = [name for name in case.streams if f"{name}_id" in found.column_names]
    for name in shown:
        found = found.filter(pc.fill_null(pc.greater_equal(found[f"{name}_id"], 0), True))
    _check(case, case.tables, found, "Spark streaming", ended=False)


def _ended(case: Case) -> Case:
    """The case with enough lateness for all rows, and a last step by which everything before it is decided."""
    times = {name: table[case.kwargs["time"][name]].cast(pa.timestamp("us")) for name, table in case.tables.items()}
    bounds = [pc.min_max(own.cast(pa.int64())).as_py() for own in times.values()]
    high, low = max(own["max"] for own in bounds), min(own["min"] for own in bounds)
    end = high + 2 * (high - low) + 2_000_000
    closing = {}
    for name, table in case.tables.items():
        row = table.slice(0, 1)
        time = row.schema.get_field_index(case.kwargs["time"][name])
        moment = pa.array([end], pa.int64()).cast(row.schema.field(time).type)
        row = row.set_column(time, row.schema.field(time), moment)
        closing[name] = row.set_column(row.schema.get_field_index("id"), "id", pa.array([-1], pa.int64()))
    lateness = f"{high - low} microseconds"
    return replace(case, steps=[*case.steps, closing], lateness=lateness)


@pytest.mark.parametrize("start", range(0, 40, CHUNK))
def test_local_equals_duckdb(start: int, record_property: Record) -> None:
    rows = [_check_local(seed) for seed in range(start, start + CHUNK)]
    assert sum(count >= 5_000 for count in rows) >= 0.5 * CHUNK
    record_property("large joins", CHUNK)
    record_property("rows of large results", sum(rows))


@pytest.mark.spark
def test_spark_batch_equals_duckdb(spark: SparkSession, record_property: Record) -> None:
    for seed in range(500, 503):
        _check_batch(seed, spark)
    record_property("large joins", 3)


@pytest.mark.spark
def test_spark_streaming_equals_duckdb(spark: SparkSession, tmp_path: Path, record_property: Record) -> None:
    _check_stream(600, spark, tmp_path)
    record_property("large joins", 1)


# -- 500 joins -------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1_000, 1_440))
def test_many_local_joins_equal_duckdb(seed: int) -> None:
    _check_local(seed)


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.parametrize("seed", range(2_000, 2_050))
def test_many_batches_on_spark_equal_duckdb(spark: SparkSession, seed: int) -> None:
    _check_batch(seed, spark)


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.parametrize("seed", range(3_000, 3_010))
def test_many_streams_on_spark_equal_duckdb(spark: SparkSession, tmp_path: Path, seed: int) -> None:
    _check_stream(seed, spark, tmp_path)
