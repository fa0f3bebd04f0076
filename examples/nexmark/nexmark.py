"""NEXMark's joins, in this process or on Spark: who is new and sells, what do they sell, and who bids for it?

    python examples/nexmark/nexmark.py [q8 | q8_sliding | new_sellers] [--on local | batch | streaming]

q8, *monitor new users*: every person who opened an auction in the window of 10 seconds in which they registered.
NEXMark's windows are tumbling: one begins every 10 seconds, and a person of 12:00:09 meets no auction of 12:00:10.
Windows here slide with the rows: a row waits 10 seconds for its partners, whenever it came. Two rows of one tumbling
window are always less than its length apart, so a tumbling window is a sliding one of the same length and one more
condition, that both rows lie in the same ten seconds. `q8` has it, and gives NEXMark's result; `q8_sliding` leaves it
out, and finds more.

new_sellers, three streams: a new person opens an auction, and somebody bids what they want for it while it runs. No key
is common to the three: person and auction share the seller, auction and bid the auction.

On Spark, `batch` reads the rows from files as a backfill does; `streaming` reads the same files one by one, as they
would arrive, up to two seconds out of order. The result is the same each time.
"""

import argparse
import os
import random
import sys
import tempfile
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from generator import RATE, tables

import handfast as hf

NEW = "person.id = auction.seller"
SAME_TEN_SECONDS = (
    "DATE_TRUNC('MINUTE', person.date_time) = DATE_TRUNC('MINUTE', auction.date_time) "
    "AND SECOND(person.date_time) DIV 10 = SECOND(auction.date_time) DIV 10"
)
SOLD = (
    "auction.id = bid.auction AND bid.price >= auction.reserve "
    "AND bid.date_time BETWEEN auction.date_time AND auction.expires"
)
ROWS: dict[str, Any] = {"time": "date_time", "lateness": "2 seconds"}
QUERIES = {
    # semi: a person is in the result once, however many auctions they opened
    "q8": hf.JoinSpec(("person", "auction"), f"{NEW} AND {SAME_TEN_SECONDS}", how="semi", window="10 seconds", **ROWS),
    "q8_sliding": hf.JoinSpec(("person", "auction"), NEW, how="semi", window="10 seconds", **ROWS),
    "new_sellers": hf.JoinSpec(
        ("person", "auction", "bid"),
        f"{NEW} AND {SOLD}",
        window={"person": "20 seconds", "auction": "10 seconds", "bid": "1 second"},
        select="person.name, person.city, auction.item, auction.reserve, bid.bidder, bid.price, match_time",
        **ROWS,
    ),
}
FILES = 4


def run(query: str, on: str, events: int) -> pa.Table:
    """The result of a query over so many events."""
    spec = QUERIES[query]
    inputs = {name: table for name, table in tables(events).items() if name in spec.names}
    if on == "local":
        return hf.join(inputs, spec)
    with tempfile.TemporaryDirectory() as folder:
        write_files(inputs, Path(folder))
        return run_on_spark(spec, Path(folder), streaming=on == "streaming")


def run_on_spark(spec: hf.JoinSpec, folder: Path, *, streaming: bool) -> pa.Table:
    """The result over the files of a folder: all at once, or one file of each stream after the other."""
    from pyspark.sql import SparkSession

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # workers run on any python3 of the PATH otherwise
    spark = SparkSession.builder.master("local[2]").getOrCreate()
    hf.configure(spark, cores=2, quiet=True)
    frames = {name: spark.read.parquet(str(folder / name)) for name in spec.names}
    if not streaming:
        return hf.join(frames, spec).toArrow()
    live = {
        name: spark.readStream.schema(frame.schema).option("maxFilesPerTrigger", 1).parquet(str(folder / name))
        for name, frame in frames.items()
    }
    query = (
        hf.join(live, spec)
        .writeStream.format("parquet")
        .option("path", str(folder / "matches"))
        .option("checkpointLocation", str(folder / "checkpoint"))
        .trigger(availableNow=True)  # up to the last file there is; without it, for ever
        .start()
    )
    query.awaitTermination()
    return spark.read.parquet(str(folder / "matches")).toArrow()


def write_files(inputs: dict[str, pa.Table], folder: Path) -> None:
    """Write the rows of every stream as they would arrive, each up to two seconds after its time."""
    rng = random.Random(2)
    for name, table in inputs.items():
        (folder / name).mkdir()
        arrivals = [at + timedelta(seconds=2 * rng.random()) for at in table["date_time"].to_pylist()]
        arrived = table.take(sorted(range(len(table)), key=arrivals.__getitem__))
        rows = -(-len(table) // FILES)
        for number in range(FILES):
            path = folder / name / f"{number}.parquet"
            pq.write_table(arrived.slice(number * rows, rows), path)
            os.utime(path, (number, number))  # Spark takes files in the order of their times


def main() -> pa.Table:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("query", nargs="?", default="q8", choices=QUERIES)
    parser.add_argument("--on", default="local", choices=("local", "batch", "streaming"))
    parser.add_argument("--events", type=int, default=20_000, help=f"how many; {RATE} come in a second")
    asked = parser.parse_args()
    result = run(asked.query, asked.on, asked.events).sort_by("match_time")
    for row in result.slice(0, 3).to_pylist():
        print(", ".join(f"{name} {value}" for name, value in row.items()))
    print(f"{asked.query}: {len(result)} rows from {asked.events} events, on {asked.on}")
    return result


if __name__ == "__main__":
    found = main()
