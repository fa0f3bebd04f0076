"""Quotes of three exchanges on Spark, streaming: when did all three agree, within 2 cents and within half a second?

    python examples/three_exchanges.py [folder]

Nothing is equal in the three streams: the join is by distance, in price and in time. Spark's own joins, one behind the
other, are tried first: they start, and then die, because there is no equality. The same condition in one `hf.join` runs
as one stateful operator. Its rows are compared with those of the tables in this process, by another way to write the
condition: of three prices, the highest and the lowest.
"""

import os
import random
import sys
import tempfile
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from itertools import combinations
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import handfast as hf

EXCHANGES = ("london", "tokyo", "new_york")
FILES, ROWS = 3, 150
PAIRS = list(combinations(EXCHANGES, 2))
CLOSE = [f"ABS({a}.price - {b}.price) <= 0.02" for a, b in PAIRS]
SOON = [f"{a}.ts - {b}.ts > INTERVAL -0.5 SECONDS AND {a}.ts - {b}.ts < INTERVAL 0.5 SECONDS" for a, b in PAIRS]
AGREED = hf.JoinSpec(EXCHANGES, " AND ".join(CLOSE), window="500 ms", time="ts", lateness="1 second")


def main(folder: Path) -> pa.Table:
    write_inputs(folder)
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # workers run on any python3 of the PATH otherwise
    spark = SparkSession.builder.master("local[2]").getOrCreate()
    spark.sparkContext.setLogLevel("FATAL")  # the error that is expected here is printed below
    hf.configure(spark, cores=2)
    live = {}
    for name in EXCHANGES:
        path = str(folder / name)
        schema = spark.read.parquet(path).schema
        live[name] = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(path)

    print("Spark alone:", refusal(live, folder))
    write(hf.join(live, AGREED), folder, "matches")
    found = spark.read.parquet(str(folder / "matches")).toArrow()

    prices = ", ".join(f"{name}.price" for name in EXCHANGES)
    tables = {name: pq.read_table(folder / name) for name in EXCHANGES}
    same = hf.join(tables, on=f"GREATEST({prices}) - LEAST({prices}) <= 0.02", window="500 ms", time="ts")
    print(f"{len(found)} times did all three agree, of {FILES * ROWS} quotes at each exchange")
    print("live = tables, highest minus lowest:", sorted_rows(found) == sorted_rows(same))
    return found


def refusal(live: dict[str, DataFrame], folder: Path) -> str:
    """What Spark says of the same join, as two joins one behind the other."""
    london, tokyo, new_york = (live[name].withWatermark("ts", "1 second").alias(name) for name in EXCHANGES)
    # pairs of london and tokyo, then those with new_york
    pairs = london.join(tokyo, F.expr(f"{CLOSE[0]} AND {SOON[0]}"))
    chained = pairs.join(new_york, F.expr(" AND ".join(CLOSE[1:] + SOON[1:])))
    try:
        write(chained.select("london.price"), folder, "refused")
    except StreamingQueryException as error:
        return str(error).splitlines()[0].partition("terminated with exception: ")[2]
    return "no refusal"


def write(matches: DataFrame, folder: Path, name: str) -> None:
    """Write matches as they come, each exactly once: files are committed with the checkpoint."""
    query = (
        matches.writeStream.format("parquet")
        .option("path", str(folder / name))
        .option("checkpointLocation", str(folder / f"checkpoint of {name}"))
        .trigger(availableNow=True)  # up to the last file there is; without it, for ever
        .start()
    )
    query.awaitTermination()


def write_inputs(folder: Path) -> None:
    """Write quotes of 90 seconds: every exchange follows the market, a little off, and a little out of order."""
    rng = random.Random(3)
    start = datetime(2026, 1, 30, 14, 30, tzinfo=UTC)
    cents = [10_000]
    while len(cents) < FILES * ROWS:
        cents.append(cents[-1] + rng.randint(-3, 3))
    for name in EXCHANGES:
        (folder / name).mkdir()
        for number in range(FILES):
            places = range(number * ROWS, (number + 1) * ROWS)
            times = [start + timedelta(seconds=place / 5 - rng.random()) for place in places]
            prices = [Decimal(cents[place] + rng.randint(-5, 5)) / 100 for place in places]
            rows = pa.table(
                {"ts": pa.array(times, pa.timestamp("us", "UTC")), "price": pa.array(prices, pa.decimal128(10, 2))}
            )
            path = folder / name / f"{number}.parquet"
            pq.write_table(rows, path)
            os.utime(path, (number, number))  # Spark takes files in the order of their times


def sorted_rows(table: pa.Table) -> list[tuple[object, ...]]:
    return sorted(tuple(row.values()) for row in table.to_pylist())


if __name__ == "__main__":
    if len(sys.argv) > 1:
        found = main(Path(sys.argv[1]))
    else:
        with tempfile.TemporaryDirectory() as temporary:
            found = main(Path(temporary))
