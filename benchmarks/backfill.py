"""How fast is a backfill by `hf.join`, against Spark's own join by buckets, written by hand for this condition?

CellJoin's join of a million rows of each stream, from Parquet files to a count and a checksum, which must be the same
for both before a time counts. The two take turns in one session; the first turn of each compiles and warms up, and does
not count. Three densities: the more tuples a window holds, the more pairs there are for every row. The buckets have the
sizes that were the fastest for Spark at the middle one.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
from pathlib import Path
from time import perf_counter
from typing import Any

from pyspark.sql import DataFrame, SparkSession

import handfast as hf
from benchmarks.trigger import setting
from handfast.cli.demo import buckets
from handfast.cli.demo.backfill import BUCKETS, OURS, reduced, write_history
from handfast.cli.demo.scenario import Scenario

CORES = 2
ROWS = 1_000_000  # of each stream
HELD = (5_000, 20_000, 80_000)  # tuples in each window
RESULT = Path(__file__).parent / "results" / "backfill.json"


def scenario_of(held: int) -> Scenario:
    """The demo's join over windows that hold so many tuples."""
    dense = type("Dense", (Scenario,), {"HELD": held})
    scenario: Scenario = dense(rows=1, rate=1, window="2 seconds", seed=1, cores=CORES, backfill=ROWS)
    return scenario


def measured(spark: SparkSession, held: int, turns: int, folder: Path) -> dict[str, Any]:
    """The times of both joins in every turn but the first, and what they found."""
    scenario = scenario_of(held)
    write_history(scenario, folder)
    inputs = {name: spark.read.parquet(str(folder / name)) for name in scenario.spec.names}
    for name, rows in inputs.items():
        rows.createOrReplaceTempView(name)

    def asked(join: str) -> DataFrame:
        return hf.join(inputs, scenario.spec) if join == OURS else spark.sql(buckets.query(scenario))

    results, seconds = set(), {OURS: [], BUCKETS: []}
    for turn in range(turns + 1):
        for join, own in seconds.items():
            start = perf_counter()
            results.add(reduced(asked(join)))
            if turn:
                own.append(perf_counter() - start)
    assert len(results) == 1, f"The joins differ: {results}"
    (matches, _), *_ = results
    ratios = [buckets_ / ours for ours, buckets_ in zip(*seconds.values(), strict=True)]
    low, middle, high = statistics.quantiles(ratios, n=4)
    rows_a_second = {join: round(2 * ROWS / statistics.median(own)) for join, own in seconds.items()}
    return {
        "tuples in a window": held,
        "matches": matches,
        "seconds": {join: [round(one, 2) for one in own] for join, own in seconds.items()},
        "rows a second": rows_a_second,
        "ratio": {"median": round(middle, 2), "quartiles": [round(low, 2), round(high, 2)]},
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--turns", type=int, default=5, help="of each join that count")
    turns = parser.parse_args().turns
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    os.environ["PYSPARK_PYTHON"] = sys.executable
    found = []
    with tempfile.TemporaryDirectory() as folder:
        spark = (
            SparkSession.builder.master(f"local[{CORES}]")
            .config("spark.ui.enabled", "false")
            .config("spark.ui.showConsoleProgress", "false")
            .config("spark.sql.session.timeZone", "UTC")
            .config("spark.local.dir", f"{folder}/local")
            .getOrCreate()
        )
        spark.sparkContext.setLogLevel("ERROR")
        hf.configure(spark, cores=CORES)
        about = setting()
        for held in HELD:
            own = measured(spark, held, turns, Path(folder) / str(held))
            found.append(own)
            ratio, rate = own["ratio"], own["rows a second"]
            print(
                f"{held:,} tuples in a window, {own['matches']:,} matches: hf.join {rate[OURS]:,} rows/s, "
                f"{ratio['median']} times Spark's own by buckets ({ratio['quartiles'][0]}–{ratio['quartiles'][1]})",
                flush=True,
            )
        spark.stop()
    RESULT.write_text(json.dumps(about | {"rows of each stream": ROWS, "seed": 1, "densities": found}, indent=2) + "\n")


if __name__ == "__main__":
    main()
