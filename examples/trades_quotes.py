"""Trades and quotes on Spark, streaming, from files to files: which quotes of a symbol was a trade close to?

    python examples/trades_quotes.py [folder]

Writes a few Parquet files of trades and of quotes into the folder (a temporary one by default), as an upstream job
would, joins them as two streams, one file of each per micro-batch, and reads back the matches that were committed. Then
the same call on the same files as batch DataFrames, as for a backfill: the result is the same.
"""

import os
import random
import sys
import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

import handfast as hf

FILES, ROWS = 3, 400
CLOSE = hf.JoinSpec(
    ("trade", "quote"),
    "trade.symbol = quote.symbol AND trade.price BETWEEN quote.price - 0.05 AND quote.price + 0.05",
    window={"trade": "1 second", "quote": "10 seconds"},  # a quote is of interest for longer than a trade
    time={"trade": "ts", "quote": "quoted_at"},
    lateness="2 seconds",
)


def main(folder: Path) -> None:
    write_inputs(folder)

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # workers run on any python3 of the PATH otherwise
    spark = SparkSession.builder.master("local[2]").getOrCreate()
    hf.configure(spark, cores=2)

    batch = {name: spark.read.parquet(str(folder / name)) for name in CLOSE.names}
    live = {
        name: spark.readStream.schema(frame.schema).option("maxFilesPerTrigger", 1).parquet(str(folder / name))
        for name, frame in batch.items()
    }
    write(hf.join(live, CLOSE), folder)

    matches = spark.read.parquet(str(folder / "matches"))
    backfill = hf.join(batch, CLOSE)
    print(f"{matches.count()} matches of {FILES * ROWS} trades and {FILES * ROWS} quotes")
    print("live = backfill:", sorted(matches.collect()) == sorted(backfill.collect()))


def write(matches: DataFrame, folder: Path) -> None:
    """Write matches as they come, each exactly once: files are committed with the checkpoint."""
    query = (
        matches.writeStream.format("parquet")
        .option("path", str(folder / "matches"))
        .option("checkpointLocation", str(folder / "checkpoint"))
        .trigger(availableNow=True)  # up to the last file there is; without it, for ever
        .start()
    )
    query.awaitTermination()


def write_inputs(folder: Path) -> None:
    """Write trades and quotes of one minute, a little out of order: no row lags more than the lateness allows."""
    rng = random.Random(7)
    start = datetime(2026, 1, 30, 9, 30, tzinfo=UTC)
    for name, time in (("trade", "ts"), ("quote", "quoted_at")):
        (folder / name).mkdir()
        for number in range(FILES):
            seconds = [20 * (number + row / ROWS) - 2 * rng.random() for row in range(ROWS)]
            rows = pa.table(
                {
                    time: pa.array([start + timedelta(seconds=s) for s in seconds], pa.timestamp("us", "UTC")),
                    "symbol": [rng.choice(["AB", "CD", "EF"]) for _ in seconds],
                    "price": [round(rng.uniform(10, 20), 2) for _ in seconds],
                }
            )
            path = folder / name / f"{number}.parquet"
            pq.write_table(rows, path)
            os.utime(path, (number, number))  # Spark takes files in the order of their times


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main(Path(sys.argv[1]))
    else:
        with tempfile.TemporaryDirectory() as temporary:
            main(Path(temporary))
