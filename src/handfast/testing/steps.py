"""A join fed step by step: put rows in, look at what comes out, on the local engine and on Spark streaming alike."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol, Self

import pyarrow as pa
import pyarrow.parquet as pq

from handfast import api
from handfast.connectors.ddl import type_name
from handfast.engines.local.options import LocalOptions
from handfast.errors import SpecError, UnsupportedError
from handfast.flow.batch import as_table
from handfast.judge.grid import table
from handfast.spec.join import JoinSpec


class Steps:
    """A running join whose trigger is pulled by hand."""

    def __init__(self, streams: Mapping[str, pa.Schema], engine: _Engine) -> None:
        self._streams = streams
        self._engine = engine
        self._found: list[pa.Table] = []

    def step(self, **rows: Any) -> pa.Table:
        """Give one batch of some of the streams, by name, at once; the matches that are decided by it.

        Rows are text as `handfast.testing.table` reads it, or an Arrow, pandas or Polars table.
        """
        unknown = [name for name in rows if name not in self._streams]
        if unknown:
            raise SpecError(f"The join has no stream {unknown[0]!r}; it has {', '.join(self._streams)}")
        return self._keep(self._engine.step({name: self._fitting(name, given) for name, given in rows.items()}))

    def end(self) -> pa.Table:
        """End every stream; the matches that waited for what might still come. Spark's streams have no end."""
        return self._keep(self._engine.end())

    def late_rows(self) -> dict[str, pa.Table]:
        """The rows of each stream that came too late since the last call. Spark does not show them."""
        return self._engine.late_rows()

    @property
    def matches(self) -> pa.Table:
        """All matches so far."""
        return pa.concat_tables(self._found) if self._found else self._engine.none()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._engine.leave()

    def _keep(self, found: pa.Table) -> pa.Table:
        self._found.append(found)
        return found

    def _fitting(self, name: str, given: Any) -> pa.Table:
        schema = self._streams[name]
        rows = given if not isinstance(given, str) else _read(given, schema)
        found = as_table(rows, name)
        if set(found.column_names) != set(schema.names):
            raise SpecError(
                f"A step of stream {name!r} has the columns {', '.join(found.column_names)}; "
                f"it must have {', '.join(schema.names)}"
            )
        try:
            return found.select(schema.names).cast(schema)
        except pa.ArrowInvalid as error:
            raise SpecError(f"A step of stream {name!r} does not fit its columns: {error}") from None


def steps(spec: JoinSpec, streams: Mapping[str, Any], *, spark: Any = None, cores: int = 1) -> Steps:
    """Start a join that is fed step by step, in a `with`.

    Args:
        spec: The join; every stream needs a lateness.
        streams: What the streams look like, by name: an Arrow schema, a table, or text as `table` reads it (the
            columns count, not the rows).
        spark: A Spark session, to run it there as a streaming query: every step is one micro-batch, after which the
            query is stopped, and the next step takes it up from its checkpoint. Otherwise it runs in this process.
        cores: How many JoinCores share the windows.
    """
    schemas = {name: _schema(streams, name) for name in spec.names}
    if spark is None:
        return Steps(schemas, _Local(spec, schemas, cores))
    return Steps(schemas, _Spark(spec, schemas, spark, cores))


class _Engine(Protocol):
    def step(self, rows: Mapping[str, pa.Table]) -> pa.Table: ...

    def end(self) -> pa.Table: ...

    def late_rows(self) -> dict[str, pa.Table]: ...

    def none(self) -> pa.Table: ...

    def leave(self) -> None: ...


class _Local:
    """A session in this process."""

    def __init__(self, spec: JoinSpec, schemas: Mapping[str, pa.Schema], cores: int) -> None:
        self._session = api.session(spec, schemas, options=LocalOptions(cores=cores))

    def step(self, rows: Mapping[str, pa.Table]) -> pa.Table:
        return pa.Table.from_batches(self._session.push_together(rows), self._session.schema)

    def end(self) -> pa.Table:
        return pa.Table.from_batches(self._session.close(), self._session.schema)

    def late_rows(self) -> dict[str, pa.Table]:
        return self._session.late_rows()

    def none(self) -> pa.Table:
        return self._session.schema.empty_table()

    def leave(self) -> None:
        self._session.close()


class _Spark:
    """A streaming query over folders of files, one new file of a stream per step."""

    def __init__(self, spec: JoinSpec, schemas: Mapping[str, pa.Schema], spark: Any, cores: int) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="handfast-steps-", ignore_cleanup_errors=True)
        self._home = Path(self._folder.name)
        self._spark = spark.newSession()  # its settings are ours, the caller's stay as they are
        self._spark.conf.set("spark.sql.session.timeZone", "UTC")
        api.configure(self._spark, cores=cores, quiet=True)
        self._steps = 0
        frames = {name: self._source(name, schema) for name, schema in schemas.items()}
        self._joined = api.join(frames, spec)

    def step(self, rows: Mapping[str, pa.Table]) -> pa.Table:
        self._steps += 1
        for name, given in rows.items():
            path = self._home / name / f"{self._steps:06d}.parquet"
            pq.write_table(given, path)
            os.utime(path, (self._steps, self._steps))
        output = str(self._home / "matches" / str(self._steps))
        # A query that runs on could see the file of one stream before that of another and make two batches of them.
        query = (
            self._joined.writeStream.foreachBatch(lambda frame, _: frame.write.mode("overwrite").parquet(output))
            .option("checkpointLocation", str(self._home / "checkpoint"))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
        if not Path(output).exists():  # a step without rows is no batch of Spark's
            return self.none()
        return self._spark.read.schema(self._joined.schema).parquet(output).toArrow()

    def end(self) -> pa.Table:
        raise UnsupportedError("A stream on Spark has no end; leave end() out, or run the steps without spark=…")

    def late_rows(self) -> dict[str, pa.Table]:
        raise UnsupportedError("Spark does not show late rows here; run the steps without spark=…")

    def none(self) -> pa.Table:
        return self._joined.sparkSession.createDataFrame([], self._joined.schema).toArrow()

    def leave(self) -> None:
        self._folder.cleanup()

    def _source(self, name: str, schema: pa.Schema) -> Any:
        (self._home / name).mkdir()
        spark_schema = self._spark.createDataFrame(schema.empty_table()).schema
        return self._spark.readStream.schema(spark_schema).parquet(str(self._home / name))


def _schema(streams: Mapping[str, Any], name: str) -> pa.Schema:
    if name not in streams:
        raise SpecError(f"steps needs to know what stream {name!r} looks like: streams={{{name!r}: …}}")
    given = streams[name]
    if isinstance(given, pa.Schema):
        return given
    return (table(given) if isinstance(given, str) else as_table(given, name)).schema


def _read(given: str, schema: pa.Schema) -> pa.Table:
    return table(given, types={field.name: type_name(field.type) for field in schema})
