"""README.md, and the pages that go on where it ends: every snippet runs, every figure and every error is as printed."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable, Iterator
from contextlib import redirect_stdout
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import pandas as pd
import pyarrow as pa
import pytest

import handfast as hf
from handfast.connectors import spark_source
from handfast.connectors.generate import Equality, Workload
from handfast.core.join_core import JoinCore
from handfast.core.planner import make_plan
from handfast.engines.spark import places
from handfast.flow.batch import schema_of
from handfast.flow.time import Progress
from tests.pages import run_page, says, snippets

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark

ROOT = Path(__file__).resolve().parent.parent
README = ROOT / "README.md"
JOINS = ROOT / "docs" / "joins.md"
MULTIWAY = ROOT / "docs" / "multiway.md"
ERRORS_PAGE = ROOT / "docs" / "errors.md"
RESULTS = ROOT / "benchmarks" / "results"
MOST_LINES = 250


@pytest.fixture
def kept(spark: SparkSession) -> Iterator[SparkSession]:
    """The session of the run, which the page's `getOrCreate` will find; afterwards it is as it was before."""
    before = dict(spark.conf.getAll)
    yield spark
    for query in spark.streams.active:
        query.stop()
    for table in spark.catalog.listTables():  # what a query has written to memory
        if table.isTemporary:
            spark.catalog.dropTempView(table.name)
    for name in spark.conf.getAll.keys() - before.keys():
        spark.conf.unset(name)
    for name, value in before.items():
        if spark.conf.isModifiable(name):
            spark.conf.set(name, value)


def test_every_snippet_runs_and_prints_what_the_page_says(kept: SparkSession) -> None:
    namespace = run_page(README)
    assert namespace["spark"] is kept


def test_joins_runs_as_it_stands(kept: SparkSession) -> None:
    run_page(JOINS)


def test_multiway_runs_as_it_stands(kept: SparkSession) -> None:
    run_page(MULTIWAY)


def test_readme_is_short_enough_to_be_read() -> None:
    assert len(README.read_text(encoding="utf-8").splitlines()) <= MOST_LINES


def test_what_spark_says_of_the_refused_join_is_on_the_page() -> None:
    refused = next(snippet for snippet in snippets(README.read_text(encoding="utf-8")) if "refused" in snippet.code)
    assert "Stream-stream join without equality predicate is not supported." in refused.prints
    assert "0 rows" in refused.prints


# --- how fast -------------------------------------------------------------------------------------------------------


def result(name: str) -> Any:
    """What a committed benchmark has printed."""
    return json.loads((RESULTS / name).read_text(encoding="utf-8"))


def three_streams() -> dict[str, str]:
    """How fast three streams are joined by a key on Spark, beside Spark's own two joins, by the rows in a trigger."""
    said = {}
    for rows, own in result("spark_multiway.json")["streaming"].items():
        seconds = {name: figures["ms"] / 1000 for name, figures in own["queries"].items()}
        ratios = {name: ratio["median"] for name, ratio in own["times as fast as"].items()}
        spark = f"Spark's own two joins {seconds['native']:.1f} s, {ratios['native']:.1f} times as long"
        said[rows] = f"{seconds['handfast']:.1f} s; {spark}"
    return said


def printed_figures() -> dict[str, str]:
    """The figures of the table, as the files have them today, and the file of each."""
    sequencer, trigger = result("sequencer.json")["queries"], result("trigger.json")["queries"]
    windows, scaling = result("windows.json"), result("scaling/scaling.json")["figures"]
    waits = {name: figure for name, figure, _ in result("scaling/scaling.json")["lines"]}
    without, with_it = (round(own["median"], -3) for own in sequencer.values())
    ours, bare = (trigger[name]["median"] / 1000 for name in ("handfast, range", "bare, in pandas"))
    index, pairs = (median(scaling[name]) for name in ("index matches/s", "scan 1 pairs/s"))
    return {
        three_streams()["100,000 rows"]: "spark_multiway.json",
        f"{without:,} rows/s; by windows of rows {with_it:,}": "sequencer.json",
        f"{ours:.2f} s; Spark's bare stateful operator {bare:.2f} s": "trigger.json",
        f"{windows['CPU over Polars']['median']:.2f} times the CPU of Polars with buckets made by hand": "windows.json",
        waits["latency at half load, low-latency, all turns"]: "scaling/scaling.json",
        f"{index / 1e6:.1f} million matches/s on one core, {scaling['index 2/1']['median']:.2f} times that on two": (
            "scaling/scaling.json"
        ),
        f"{pairs / 1e9:.1f} billion pairs/s on one core, {scaling['scan 2/1']['median']:.2f} times that on two": (
            "scaling/scaling.json"
        ),
    }


def test_every_figure_is_one_that_a_committed_benchmark_printed() -> None:
    table = README.read_text(encoding="utf-8").partition("## How fast")[2].partition("\n## ")[0]
    rows = [line.strip("| ").split(" | ")[1:] for line in table.splitlines() if line.endswith(".json` |")]
    assert dict(rows) == {figure: f"`{name}`" for figure, name in printed_figures().items()}


def test_the_figures_of_three_streams_are_those_of_the_benchmark() -> None:
    page = " ".join(MULTIWAY.read_text(encoding="utf-8").split())
    for rows, figures in three_streams().items():
        assert f"{rows} of each stream a trigger: {figures}" in page


# --- the table of errors --------------------------------------------------------------------------------------------

WORKLOAD = Workload(Equality())
R = pd.DataFrame({"ts": pd.to_datetime(["2026-01-31"], utc=True), "name": ["a"], "price": [1.0]})
ASKED = {"on": "r.price = s.price", "window": "1 second", "time": "ts"}
KEYS = {"on": WORKLOAD.on, "window": "1 second", "time": "ts"}


def unconfigured(spark: SparkSession) -> Any:
    return hf.join(spark_source.tables(spark.newSession(), WORKLOAD, rows=1), **KEYS)


def live(spark: SparkSession) -> dict[str, DataFrame]:
    session = spark.newSession()
    hf.configure(session, cores=2)
    return spark_source.streams(session, WORKLOAD, rows=1)


def marked(spark: SparkSession) -> Any:
    frames = live(spark)
    return hf.join({"r": frames["r"].withWatermark("ts", "1 second"), "s": frames["s"]}, **KEYS, lateness="1 second")


def mixed(spark: SparkSession) -> Any:
    frames = live(spark)
    batch = spark_source.tables(frames["r"].sparkSession, WORKLOAD, rows=1)
    return hf.join({"r": frames["r"], "s": batch["s"]}, **KEYS, lateness="1 second")


def taken(spark: SparkSession) -> Any:
    frames = live(spark)
    with TemporaryDirectory() as home:
        places.mark(frames["r"].sparkSession, f"{home}/first", [f"{home}/out"])
        matches = hf.join(frames, **KEYS, lateness="1 second")
        return hf.write(matches, to=f"{home}/out", checkpoint=f"{home}/second")


def other_checkpoint(spark: SparkSession) -> Any:
    table = pa.Table.from_pandas(R)
    join = hf.JoinSpec(("r", "s"), **ASKED).bind({name: schema_of(table.schema) for name in "rs"})
    manifest = JoinCore(make_plan(join, 1)).manifest(Progress.start(2))
    return JoinCore.restore(make_plan(join, 2), manifest, lambda _: pytest.fail())


ERRORS: list[Callable[[SparkSession], Any]] = [
    unconfigured,
    lambda spark: hf.join(live(spark), **KEYS),
    marked,
    mixed,
    lambda spark: hf.join({"r": live(spark)["r"], "s": R}, **KEYS, lateness="1 second"),
    lambda spark: hf.join({"r": R.assign(ts="2026-01-31"), "s": R}, **ASKED),
    lambda spark: hf.join({"r": R.assign(ts=R["ts"].dt.tz_localize(None)), "s": R}, **ASKED),
    lambda spark: hf.join({"r": R, "s": R}, **{**ASKED, "on": "r.prize = s.price"}),
    lambda spark: hf.join({"r": R, "s": R}, **{**ASKED, "on": "r.name = s.price"}),
    lambda spark: hf.join({"r": R, "s": R, "t": R}, **ASKED, how="left"),
    lambda spark: hf.join({"r": R, "s": R}, **{**ASKED, "on": "r.name RLIKE 'A.*'"}),
    taken,
    other_checkpoint,
]


def test_the_errors_of_the_table_are_the_errors_that_are_raised(spark: SparkSession) -> None:
    table = ERRORS_PAGE.read_text(encoding="utf-8").splitlines()
    listed = [line.split(" | ")[0].removeprefix("| ").strip("`") for line in table if line[:3] == "| `"]
    assert len(ERRORS) == len(listed)
    for text, trigger in zip(listed, ERRORS, strict=True):
        with redirect_stdout(io.StringIO()), pytest.raises(hf.HandfastError) as error:
            trigger(spark)
        assert says(text, str(error.value)), f"not {text!r} but {error.value}"


def test_every_link_leads_somewhere() -> None:
    targets = re.findall(r"\]\(([^)#]+)\)", README.read_text(encoding="utf-8"))
    assert [] == [target for target in targets if "://" not in target and not (ROOT / target).exists()]
