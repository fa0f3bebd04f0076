"""A case run through each entrance that a user has; every run gives the result as a multiset of rows."""

from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise, repeat
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

import handfast as hf
from tests.judges.rows import multiset, result_of
from tests.strategies import Case

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming import StreamingQuery

    from handfast.engines.local.session import Session

Result = Counter[tuple[Any, ...]]


def local_bounded(case: Case) -> Result:
    """`hf.join` on tables in this process."""
    table = hf.join(case.tables, **case.kwargs, options=hf.LocalOptions(cores=case.cores))
    return multiset(result_of(table))


def local_steps(case: Case) -> Result:
    """The local engine fed step by step, in the order of arrival: what is decided then."""
    return local_steps_and_close(case)[0]


def local_steps_and_close(case: Case) -> tuple[Result, Result]:
    """The local engine fed step by step: what is decided then, and what is when the streams have ended."""
    before, after = session_batches(case)
    decided = _rows(before)
    return decided, decided + _rows(after)


def session_batches(case: Case) -> tuple[list[pa.RecordBatch], list[pa.RecordBatch]]:
    """What `hf.session` gives for the steps of a case, and what it gives when it is closed."""
    with open_session(case) as session:
        before = [batch for step in case.steps for batch in session.push_together(step)]
    return before, session.close()


def check_session(case: Case, options: dict[str, Any], right: tuple[Result, Result]) -> None:
    """What a session with these options decides step by step, and what when the streams have ended, is right."""
    with open_session(case, **options) as session:
        before = _rows([batch for step in case.steps for batch in session.push_together(step)])
    after = _rows(session.close())
    assert right[0] == before, f"step by step, {options}: {case}"
    assert right[1] == before + after, f"closed, {options}: {case}"


def session_watermarks(case: Case) -> list[float]:
    """The watermark of `hf.session` after each step of a case."""
    found = []
    with open_session(case) as session:
        for step in case.steps:
            session.push_together(step)
            found.append(-math.inf if (reached := session.metrics().watermark) is None else reached)
    session.close()
    return found


def open_session(case: Case, **options: Any) -> Session:
    """A session for a case, whose clock shows the time of each step as it is pushed."""
    schemas = {name: table.schema for name, table in case.tables.items()}
    clock = (micros / 1_000_000 for micros in case.clock or repeat(0))
    asked = hf.LocalOptions(**{"cores": case.cores} | options)
    return hf.session(case.spec, schemas, options=asked, clock=lambda: next(clock))


def _rows(batches: list[pa.RecordBatch]) -> Result:
    return multiset(result_of(pa.Table.from_batches(batches))) if batches else Counter()


def spark_batch(case: Case, spark: SparkSession, options: hf.SparkOptions | None = None) -> Result:
    """`hf.join` on batch DataFrames."""
    hf.configure(spark, cores=case.cores)
    frames = {name: spark.createDataFrame(table) for name, table in case.tables.items()}
    return multiset(result_of(hf.join(frames, **case.kwargs, options=options).toArrow()))


def spark_streaming(case: Case, spark: SparkSession, folder: Path, options: hf.SparkOptions | None = None) -> Result:
    """`hf.join` on streaming DataFrames: every step of the case is one micro-batch."""
    write_steps(case, folder)
    return multiset(result_of(_to_the_end(case, spark, folder, options)[0]))


def spark_query(case: Case, spark: SparkSession, folder: Path) -> tuple[Result, StreamingQuery]:
    """The result of `hf.join` on streaming DataFrames, and the query that has brought it."""
    output, query = spark_output(case, spark, folder)
    return multiset(result_of(output)), query


def spark_output(case: Case, spark: SparkSession, folder: Path) -> tuple[pa.Table, StreamingQuery]:
    """The result of `hf.join` on streaming DataFrames as a table, and the query that has brought it."""
    write_steps(case, folder)
    return _to_the_end(case, spark, folder)


def spark_restarted(case: Case, spark: SparkSession, folder: Path, stops: Sequence[int]) -> Result:
    """The same by several queries: each ends after so many steps, and the next goes on from its checkpoint."""
    for start, stop in pairwise((0, *stops, len(case.steps))):
        write_steps(case, folder, start, stop)
        output, _ = _to_the_end(case, spark, folder)
    return multiset(result_of(output))


def _to_the_end(
    case: Case, spark: SparkSession, folder: Path, options: hf.SparkOptions | None = None
) -> tuple[pa.Table, StreamingQuery]:
    """Join the files that are there, from where the last query has stopped; all that was found, and the query."""
    hf.configure(spark, cores=case.cores)
    matches = hf.join(_read_steps(case, spark, folder), case.spec, options=options)
    output = str(folder / "output")
    query = (
        matches.writeStream.format("parquet")
        .option("path", output)
        .option("checkpointLocation", str(folder / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    return spark.read.schema(matches.schema).parquet(output).toArrow(), query


def spark_written(case: Case, spark: SparkSession, folder: Path) -> Result:
    """What `hf.write` puts at its place: every step of the case is one micro-batch."""
    hf.configure(spark, cores=case.cores)
    matches = hf.join(streaming_frames(case, spark, folder), case.spec)
    output = folder / "output"
    query = hf.write(
        matches, to=output, checkpoint=folder / "checkpoint", trigger={"availableNow": True}, name="written"
    )
    query.awaitTermination()
    batches = [pq.read_table(part) for part in sorted(output.glob("*/*.parquet"))]
    return multiset(row for batch in batches for row in result_of(batch.select(matches.columns)))


def streaming_frames(case: Case, spark: SparkSession, folder: Path) -> dict[str, DataFrame]:
    """Streaming DataFrames that bring a step of the case in each micro-batch."""
    write_steps(case, folder)
    return _read_steps(case, spark, folder)


def _read_steps(case: Case, spark: SparkSession, folder: Path) -> dict[str, DataFrame]:
    frames = {}
    for name, table in case.tables.items():
        schema = spark.createDataFrame(table).schema
        reader = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1)
        frames[name] = reader.parquet(str(folder / name))
    return frames


def write_steps(case: Case, folder: Path, start: int = 0, stop: int | None = None) -> None:
    """Write every stream to a folder of its name, a file for each step; or only the steps from `start` to `stop`."""
    for name, table in case.tables.items():
        home = folder / name
        home.mkdir(exist_ok=True)
        for number, step in list(enumerate(case.steps))[start:stop]:
            path = home / f"{number:04d}.parquet"
            pq.write_table(step.get(name, table.schema.empty_table()), path)
            os.utime(path, (1_700_000_000 + number,) * 2)  # files are read in the order of their times
