"""`hf.verify`: engines that agree, engines that do not, and the few rows that show it."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import handfast as hf
import handfast.testing as hft
from handfast import api
from handfast.connectors.generate import Workload
from handfast.judge import oracle
from handfast.judge import verify as agreement
from handfast.judge.rows import multiset, result_of, table_of, tables_of
from handfast.judge.verify import count_pairs
from tests.strategies import Case

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

WORKLOAD = Workload.named("equality", match_rate=0.05, rate=50, disorder="1 second")
TABLES = {name: WORKLOAD.table(name, 0, 200) for name in "rs"}
ASKED: dict[str, Any] = {"on": WORKLOAD.on, "window": "1 second", "time": "ts"}


@pytest.fixture
def forgetful(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """Local joins of several cores that lose the matches of rows r with an id that 7 divides; the sizes they saw."""
    seen: list[int] = []
    right = api.join

    def wrong(inputs: Any, spec: Any, *, options: Any = None) -> Any:
        found = right(inputs, spec, options=options)
        if options.cores == 1:
            return found
        seen.append(sum(map(len, inputs.values())))
        ids = found["r_id"].to_pylist()
        return found.filter(pa.array([number % 7 != 0 for number in ids], pa.bool_()))

    monkeypatch.setattr(api, "join", wrong)
    yield seen


def test_engines_that_agree() -> None:
    report = hf.verify(TABLES, **ASKED)
    assert report
    assert ["local, 1 core", "local, 3 cores"] == [outcome.engine for outcome in report.outcomes]
    matches = len(hf.join(TABLES, **ASKED))
    assert matches == report.matches > 10
    said = str(report).splitlines()
    assert "All engines agree with the oracle" == said[0]
    assert said[1].endswith(f"tried {report.pairs:,} pairs of 200 of r, 200 of s")
    assert all(line.endswith("  the same") for line in said[2:])


def test_engines_are_named_by_all_that_tells_them_apart() -> None:
    engines = [
        hf.LocalOptions(),
        hf.LocalOptions(cores=2),
        hf.LocalOptions(cores=2, forwarding="handshake"),
        hf.LocalOptions(cores=2, local_join="scan"),
        hf.LocalOptions(cores=2, forwarding="handshake", local_join="merge", memory_limit=1 << 30),
    ]
    report = hf.verify(TABLES, **ASKED, engines=engines)
    assert report
    assert [
        "local, 1 core",
        "local, 2 cores",
        "local, 2 cores, forwarding='handshake'",
        "local, 2 cores, local_join='scan'",
        "local, 2 cores, forwarding='handshake', local_join='merge', memory_limit=1073741824",
    ] == [outcome.engine for outcome in report.outcomes]


def test_a_circuit_is_an_engine_too_and_one_that_cannot_do_a_join_is_not_in_agreement() -> None:
    few = {name: rows.slice(0, 15) for name, rows in TABLES.items()}
    model = hf.HardwareOptions(cores=2, simulator="model")
    report = hf.verify(few, **ASKED, engines=["hardware", model])
    assert ["hardware", "hardware, cores=2, simulator='model'"] == [outcome.engine for outcome in report.outcomes]
    assert report
    outer = hf.verify(few, **ASKED, how="left", engines=["local", "hardware"])
    assert not outer
    assert [True, False] == [outcome.agrees for outcome in outer.outcomes]
    assert "cannot: Engine 'hardware' gives matches alone, not how='left'" in str(outer)


def test_an_engine_that_differs_is_shown_by_its_smallest_example(forgetful: list[int]) -> None:
    report = hf.verify(TABLES, **ASKED)
    assert not report
    right, wrong = report.outcomes
    assert right.agrees and not wrong.agrees
    assert (0, True) == (wrong.extra, wrong.missing > 1)
    example = wrong.example
    assert example is not None and example.is_smallest
    assert {"r": 1, "s": 1} == {name: len(rows) for name, rows in example.tables.items()}
    assert 0 == example.tables["r"]["id"][0].as_py() % 7
    said = str(report)
    assert said.startswith("Not in agreement with the oracle: local, 3 cores\n")
    assert "local, 3 cores. An example with few rows (1 of r, 1 of s; no row can be left out):" in said
    assert "The rows differ: 1 missing, 0 as expected" in said
    assert len(forgetful) < 60


def test_the_report_can_be_read(forgetful: list[int]) -> None:
    rows = hft.table("ts | id\n+1s | 7\n+2s | 8")
    report = hf.verify({"r": rows, "s": rows}, on="r.id = s.id", window="1 minute", time="ts", engines=["local:2"])
    said = str(report).splitlines()
    assert [
        "local, 2 cores. An example with few rows (1 of r, 1 of s; no row can be left out):",
        "",
        "  r",
        "    ts: timestamp       | id: bigint",
        "    2026-01-01 00:00:01 |          7",
        "",
        "  s",
        "    ts: timestamp       | id: bigint",
        "    2026-01-01 00:00:01 |          7",
        "",
        "  The rows differ: 1 missing, 0 as expected",
        "",
        "            | r_ts                | r_id | s_ts                | s_id | match_time",
        "    missing | 2026-01-01 00:00:01 |    7 | 2026-01-01 00:00:01 |    7 | 2026-01-01 00:00:01",
    ] == said[-14:]


def test_without_patience_the_example_says_so(forgetful: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(agreement, "_PATIENCE", 0.0)
    example = hf.verify(TABLES, **ASKED).outcomes[1].example
    assert example is not None and not example.is_smallest
    assert "there may be a smaller one" in str(example)


def test_an_engine_that_cannot_is_not_in_agreement(monkeypatch: pytest.MonkeyPatch) -> None:
    def cannot(inputs: Any, spec: Any, *, options: Any = None) -> Any:
        raise hf.UnsupportedError("Engine 'local' cannot do this; use another")

    monkeypatch.setattr(api, "join", cannot)
    report = hf.verify(TABLES, **ASKED, engines=["local"])
    assert not report
    assert "cannot: Engine 'local' cannot do this; use another" in str(report)


@pytest.mark.parametrize("seed", range(40))
def test_the_pairs_are_those_that_the_oracle_tries(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    case = Case.of(seed)
    case = case.counted(random.Random(seed)) if seed % 2 else case
    tried: list[object] = []
    monkeypatch.setattr(oracle, "compile", lambda expr: tried.append)
    oracle.matches(case.join, tables_of(case.tables))
    assert len(tried) == count_pairs(case.join, case.tables)


def test_too_many_pairs_are_refused_with_their_number() -> None:
    with pytest.raises(
        hf.SpecError, match=r"The oracle would try [\d,]+ pairs, some 1 s, and the limit is 1,000; give"
    ):
        hf.verify(TABLES, **ASKED, limit=1_000)


def test_progress_is_told() -> None:
    told: list[str] = []
    hf.verify(TABLES, **ASKED, engines=["local"], progress=told.append)
    assert told[0].startswith("the oracle tries ")
    assert "local, 1 core joins" == told[-1]


@pytest.mark.parametrize(
    ("keywords", "message"),
    [
        ({"engines": []}, "verify needs at least one engine"),
        (
            {"engines": ["flink"]},
            "An engine is 'local', 'local:3', 'hardware', 'spark' or a Spark session, not 'flink'",
        ),
        (
            {"engines": ["local:x"]},
            "An engine is 'local', 'local:3', 'hardware', 'spark' or a Spark session, not 'local:x'",
        ),
        ({"engines": [3]}, "An engine is 'local', 'local:3', 'hardware', 'spark' or a Spark session, not 3"),
        ({"engines": ["spark"]}, "The inputs are no Spark DataFrames; give the session itself"),
        ({"spec": hf.JoinSpec(("r", "t"), **ASKED)}, "The join is given twice"),
    ],
)
def test_what_is_asked_wrongly_is_named(keywords: dict[str, Any], message: str) -> None:
    with pytest.raises(hf.SpecError) as error:
        hf.verify(TABLES, **ASKED, **keywords)
    assert str(error.value).startswith(message)


def test_a_spec_must_name_the_inputs() -> None:
    with pytest.raises(hf.SpecError, match="The JoinSpec joins r, t, but the inputs are r, s"):
        hf.verify(TABLES, hf.JoinSpec(("r", "t"), "TRUE", window="1 s", time="ts"))
    with pytest.raises(hf.SpecError, match="A join needs windows"):
        hf.verify(TABLES, on="TRUE")


@pytest.mark.parametrize("seed", range(20))
def test_plain_rows_become_the_table_they_came_from(seed: int) -> None:
    table = pa.concat_tables([Case.of(seed).tables[Case.of(seed).streams[0]]])
    again = table_of(result_of(table), table.schema)
    flat = [k for k, field in enumerate(table.schema) if not pa.types.is_nested(field.type)]
    assert multiset(result_of(table.select(flat))) == multiset(result_of(again.select(flat)))


@pytest.mark.spark
def test_spark_agrees_and_its_frames_are_collected(spark: SparkSession) -> None:
    frames = {name: spark.createDataFrame(table) for name, table in TABLES.items()}
    before = dict(spark.conf.getAll)
    report = hf.verify(frames, **ASKED, engines=["local", "spark"])
    assert report, str(report)
    assert ["local, 1 core", "spark, 2 cores"] == [outcome.engine for outcome in report.outcomes]
    assert hf.verify({name: table.to_pandas() for name, table in TABLES.items()}, **ASKED, engines=[spark])
    assert before == dict(spark.conf.getAll)
    live = spark.readStream.format("rate").load()
    with pytest.raises(hf.SpecError, match="Stream 'r' is a streaming DataFrame, and verify needs all rows at once"):
        hf.verify({"r": live, "s": live}, on="TRUE", window="1 s", time="timestamp")


def test_pandas_will_do() -> None:
    frames = {name: table.to_pandas() for name, table in TABLES.items()}
    assert hf.verify(frames, **ASKED, engines=[hf.LocalOptions(cores=2)])


def test_maps_of_lists_ride_along() -> None:
    kind = pa.map_(pa.string(), pa.list_(pa.int64()))
    rows = pa.table({"ts": pa.array([0], pa.timestamp("us")), "m": pa.array([[("a", [1, 2])]], kind)})
    assert hf.verify({"r": rows, "s": rows}, on="TRUE", window="1 second", time="ts")
