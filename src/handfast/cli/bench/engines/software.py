"""The oracle, the local engine and Spark on a workload: what each finds, how fast and how soon, by the clock."""

from __future__ import annotations

import os
import statistics
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from time import perf_counter, process_time
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from handfast import api
from handfast.cli.bench.engines.seen import LOCAL, ORACLE, SPARK, Latency, Seen
from handfast.cli.bench.engines.workload import Workload
from handfast.engines.local.session import Session
from handfast.flow.batch import schema_of
from handfast.flow.result import result_schema
from handfast.judge import oracle
from handfast.judge.rows import table_of, tables_of
from handfast.judge.verify import count_pairs

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

CORES = 2  # of Spark
_TURNS = 5
_LOOK = 0.2  # seconds between two looks at Spark's progress


def by_oracle(workload: Workload) -> Seen:
    """The definition, in plain Python: what all others are held against."""
    tables = workload.tables
    join = workload.spec.bind({name: schema_of(table.schema) for name, table in tables.items()})
    rows = tables_of(tables)
    start = perf_counter()
    found = oracle.result(join, rows)
    seconds = perf_counter() - start
    schema = result_schema(join, {name: table.schema for name, table in tables.items()})
    tried = f"{count_pairs(join, tables) / workload.tuples:,.0f} combinations tried for a row"
    return Seen(ORACLE, "plain Python", table_of(found, schema), workload.tuples / seconds, None, tried)


def by_local(workload: Workload) -> Seen:
    """The local engine: whole tables for the rate, a session that takes row by row for the latency."""
    seconds, work = [], []
    matches = api.join(workload.tables, workload.spec)  # compiles what it needs
    for _ in range(_TURNS):
        start, cpu = perf_counter(), process_time()
        matches = api.join(workload.tables, workload.spec)
        seconds.append(perf_counter() - start)
        work.append(process_time() - cpu)
    rate = workload.tuples / statistics.median(seconds)
    spent = f"{statistics.median(work) / workload.tuples * 1e6:,.1f} µs of a CPU for a row"
    return Seen(LOCAL, "1 core", matches, rate, _row_by_row(workload), spent)


def _row_by_row(workload: Workload) -> Latency | None:
    """How soon matches come, once windows are full, and half of the rows have warmed up what there is to warm up."""
    waits: list[float] = []
    with Session(workload.spec, {name: table.schema for name, table in workload.tables.items()}) as session:
        for row in range(workload.rows):
            for name, table in workload.tables.items():
                one = table.slice(row, 1)
                start = perf_counter()
                found = sum(batch.num_rows for batch in session.push(name, one))
                if row >= workload.rows // 2:
                    waits += [perf_counter() - start] * found
    return Latency.of(waits)


def by_spark(workload: Workload, spark: SparkSession, home: Path, batches: int, check: Callable[[], None]) -> Seen:
    """Spark streaming: a file of each stream in a batch; rate and latency are those of the second half of batches.

    Args:
        workload: The join and its rows.
        spark: A session that is prepared.
        home: Where files and the checkpoint go.
        batches: In how many batches the rows come.
        check: Is called now and then; it ends the run by an exception.
    """
    frames = {name: _read(spark, home / name, table, batches) for name, table in workload.tables.items()}
    result = f"engines_{workload.streams}"
    query = (
        api.join(frames, workload.spec)
        .writeStream.format("memory")
        .queryName(result)
        .option("checkpointLocation", str(home / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    try:
        while not query.awaitTermination(_LOOK):
            check()
    finally:
        query.stop()
    seen = [progress for progress in query.recentProgress if progress.numInputRows]
    matches = spark.table(result).toArrow()
    late = [(progress.numInputRows, progress.batchDuration / 1_000) for progress in seen[len(seen) // 2 :]]
    rate = sum(rows for rows, _ in late) / sum(seconds for _, seconds in late)
    ran = f"streaming, {CORES} cores"
    return Seen(SPARK, ran, matches, rate, Latency.of([seconds for _, seconds in late]))


def _read(spark: SparkSession, folder: Path, table: pa.Table, batches: int) -> DataFrame:
    """A stream of a table's rows, a file in a batch."""
    folder.mkdir(parents=True)
    for number, part in enumerate(_parts(table, batches)):
        path = folder / f"{number:05d}.parquet"
        pq.write_table(part, path)
        os.utime(path, (1_700_000_000 + number,) * 2)  # Spark reads files in the order of their times
    schema = spark.read.parquet(str(folder)).schema
    return spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(folder))


def _parts(table: pa.Table, count: int) -> Iterator[pa.Table]:
    edges = np.linspace(0, len(table), count + 1).astype(int).tolist()
    for start, stop in pairwise(edges):
        yield table.slice(start, stop - start)
