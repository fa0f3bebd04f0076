"""A join as a user's own program has it: `worker_job.py master` prints how many matches there are, or the error.

Then it stops the session, and prints what `hf.configure` says of it.
"""

from __future__ import annotations

import sys

from pyspark.sql import SparkSession

import handfast as hf


def main(master: str) -> None:
    """Configure, join, print."""
    builder = SparkSession.builder.config("spark.ui.enabled", "false")
    builder = builder.remote(master.removeprefix("connect ")) if "connect" in master else builder.master(master)
    spark = builder.getOrCreate()
    try:
        hf.configure(spark)
        rows = spark.range(3).selectExpr("id", "timestamp_seconds(id) AS ts")
        print(hf.join({"r": rows, "s": rows}, on="r.id = s.id", window="1 second", time="ts").count(), "matches")
    except hf.EngineError as error:
        print(error)
    spark.stop()
    try:
        hf.configure(spark)
    except hf.SpecError as error:
        print(error)


if __name__ == "__main__":
    main(sys.argv[1])
