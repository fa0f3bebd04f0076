"""Sources and sinks of a pipeline in this process: files, workloads, sockets; files, the terminal, nothing."""

from __future__ import annotations

import json
import select
import shutil
import socket
from collections.abc import Callable, Mapping
from datetime import date, datetime
from decimal import Decimal
from glob import has_magic, iglob
from io import StringIO
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

from handfast.connectors.ddl import arrow_schema
from handfast.connectors.feed import FORMAT, Feed
from handfast.connectors.pipeline import FILES, Sink, Source, check_there, local_path
from handfast.connectors.text_rows import TextRows
from handfast.errors import EngineError, SpecError, UnsupportedError

_ROWS = 1 << 20  # of a workload at a time, where all are asked for
_RECEIVED = 1 << 16  # bytes of a socket at a time


class LocalSource(Protocol):
    """One stream's rows, some at a time."""

    corrupt: int  # rows that were left out because they did not fit

    @property
    def schema(self) -> pa.Schema:
        """Its columns."""

    @property
    def is_over(self) -> bool:
        """Whether nothing more can come."""

    def take(self) -> pa.Table | None:
        """What there is for the next step, or None if there is nothing now."""

    def take_all(self) -> pa.Table:
        """All there is, at once."""


def open_source(source: Source) -> LocalSource:
    """The rows of a stream, from where the pipeline says."""
    where = f"[sources.{source.name}]"
    if source.select:
        raise UnsupportedError(f"{where} select is SQL for Spark; the local engine takes the columns as they are")
    if source.options and source.format != FORMAT:
        raise UnsupportedError(
            f"{where} options are those of Spark's reader, and the local engine has none; leave them out, or run it "
            "with --engine spark"
        )
    if source.format in FILES:
        return Files(source)
    if source.format == FORMAT:
        return Generated(source)
    if source.format == "socket":
        return Socket(source)
    raise UnsupportedError(
        f"{where} has the format {source.format!r}; the local engine reads {', '.join(FILES)}, socket and {FORMAT}: "
        "run it with --engine spark"
    )


class Files:
    """The files of a folder, oldest first."""

    def __init__(self, source: Source) -> None:
        check_there(source)
        self.corrupt = 0
        self._source = source
        self._seen: set[Path] = set()
        path = local_path(source.path or "")
        if path is None:
            raise UnsupportedError(
                f"[sources.{source.name}] reads {source.path}; the local engine reads files of this machine only"
            )
        self._path = path
        self._rows: TextRows | None = None
        if source.schema is not None:
            self._schema = arrow_schema(source.schema, what=f"[sources.{source.name}] schema")
        elif source.format == "parquet":
            self._schema = self._first_schema()
        if source.format != "parquet":
            drops = source.on_corrupt == "drop"
            self._rows = TextRows(source.name, source.format, self._schema, drops, source.header, source.separator)

    @property
    def schema(self) -> pa.Schema:
        return self._schema

    @property
    def is_over(self) -> bool:
        return False  # a file may be put there at any time

    def take(self) -> pa.Table | None:
        new = [path for path in self._files() if path not in self._seen][: self._source.files_per_trigger]
        self._seen.update(new)
        return pa.concat_tables([self._read(path) for path in new]) if new else None

    def take_all(self) -> pa.Table:
        return pa.concat_tables([self._schema.empty_table(), *(self._read(path) for path in self._files())])

    def _files(self) -> list[Path]:
        """Every file there is, in the order they were written; what begins with _ or . is not data."""
        if has_magic(str(self._path)):
            found = [Path(name) for name in iglob(str(self._path))]
        else:
            found = list(self._path.iterdir()) if self._path.is_dir() else [self._path]
        data = [path for path in found if path.is_file() and not path.name.startswith(("_", "."))]
        return sorted(data, key=lambda path: (path.stat().st_mtime_ns, path.name))

    def _first_schema(self) -> pa.Schema:
        files = self._files()
        if not files:
            raise SpecError(
                f"[sources.{self._source.name}] reads {self._path}, which has no files yet to take the columns from; "
                'say schema = "ts timestamp, …"'
            )
        return _parquet(files[0], lambda path: pq.read_schema(path)).remove_metadata()

    def _read(self, path: Path) -> pa.Table:
        if self._rows is None:
            table = _parquet(path, lambda path: pq.read_table(path))
            try:
                return table.select(self._schema.names).cast(self._schema)
            except (KeyError, pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
                raise EngineError(
                    f"{path} does not have the columns of stream {self._source.name!r}: {error}; "
                    "files of one stream must have the same"
                ) from None
        try:
            with path.open(encoding="utf-8-sig", newline="") as text:
                table, corrupt = self._rows.read(text, where=str(path))
        except (OSError, UnicodeDecodeError) as error:
            raise EngineError(f"{path} cannot be read as text: {error}") from None
        self.corrupt += corrupt
        return table


class Generated:
    """One stream of a generated workload."""

    corrupt = 0

    def __init__(self, source: Source) -> None:
        self._feed = Feed.read(source.options)
        self._at = 0

    @property
    def schema(self) -> pa.Schema:
        return self._feed.workload.schema(self._feed.stream)

    @property
    def is_over(self) -> bool:
        return self._feed.rows is not None and self._at >= self._feed.rows

    def take(self) -> pa.Table | None:
        if self.is_over:
            return None
        return self._next(self._feed.rows_per_trigger)

    def take_all(self) -> pa.Table:
        if self._feed.rows is None:
            raise SpecError("A batch read of an endless workload needs an end: options = { rows = … }")
        tables = [self.schema.empty_table()]
        while not self.is_over:
            tables.append(self._next(_ROWS))
        return pa.concat_tables(tables)

    def _next(self, rows: int) -> pa.Table:
        stop = self._at + rows if self._feed.rows is None else min(self._at + rows, self._feed.rows)
        table = self._feed.workload.table(self._feed.stream, self._at, stop)
        self._at = stop
        return table


class Socket:
    """Lines that come over a connection."""

    def __init__(self, source: Source) -> None:
        self.corrupt = 0
        where = f"[sources.{source.name}]"
        if source.schema is None:
            raise SpecError(f"{where} has the format 'socket' and needs a schema of its lines: \"ts timestamp, …\"")
        self._schema = arrow_schema(source.schema, what=f"{where} schema")
        drops = source.on_corrupt == "drop"
        self._rows = TextRows(source.name, source.lines, self._schema, drops, False, source.separator)
        self._address = _address(source)
        try:
            self._connection = socket.create_connection(self._address, timeout=10)
        except OSError as error:
            raise EngineError(f"{where} cannot connect to {self._address[0]}:{self._address[1]}: {error}") from None
        self._rest = b""
        self._ended = False

    @property
    def schema(self) -> pa.Schema:
        return self._schema

    @property
    def is_over(self) -> bool:
        return self._ended

    def take(self) -> pa.Table | None:
        received = self._rest
        while not self._ended and select.select([self._connection], [], [], 0)[0]:
            some = self._connection.recv(_RECEIVED)
            self._ended = not some
            received += some
        lines, newline, self._rest = received.rpartition(b"\n")
        if self._ended:
            lines, self._rest = received, b""
        elif not newline:
            return None
        if not lines.strip():
            return None
        text = StringIO(lines.decode("utf-8", errors="replace"), newline="")
        table, corrupt = self._rows.read(text, where=f"the socket {self._address[0]}:{self._address[1]}")
        self.corrupt += corrupt
        return table

    def take_all(self) -> pa.Table:
        raise SpecError('A socket has no end, and a batch needs one; say mode = "stream"')


def _address(source: Source) -> tuple[str, int]:
    path = source.path or ""
    host, _, port = path.removeprefix("tcp://").rpartition(":")
    if not path.startswith("tcp://") or not host or not port.isdigit():
        raise SpecError(f'[sources.{source.name}] needs the address of its socket: path = "tcp://localhost:9999"')
    return host, int(port)


def _parquet(path: Path, read: Callable[[Path], Any]) -> Any:
    try:
        return read(path)
    except (OSError, pa.ArrowInvalid) as error:
        raise EngineError(f"{path} cannot be read as parquet: {error}") from None


# --- sinks ----------------------------------------------------------------------------------------------------------


class LocalSink:
    """Where matches go, or one stream's refused rows: one file for each step that has some."""

    def __init__(self, sink: Sink, show: Callable[[pa.Table], None]) -> None:
        if sink.format not in Sink.KINDS:
            raise UnsupportedError(
                f"{sink.where} has the format {sink.format!r}; the local engine writes {', '.join(Sink.KINDS)}: "
                "run it with --engine spark"
            )
        if sink.options:
            raise UnsupportedError(f"{sink.where} options are those of Spark's writer, and the local engine has none")
        self._format = sink.format
        self._show = show
        self._folder: Path | None = None
        self._number = 0
        if sink.path is not None and sink.keeps:
            self._folder = _prepared(sink)
            self._number = sum(1 for _ in self._folder.iterdir())

    def write(self, rows: pa.Table) -> None:
        """Write some rows."""
        if self._format == "console":
            self._show(rows)
        if self._folder is None or not len(rows):
            return
        name = f"part-{self._number:05d}.{self._format}"
        self._number += 1
        hidden = self._folder / f".{name}"  # whoever reads the folder meanwhile sees whole files only
        _WRITERS[self._format](rows, hidden)
        hidden.rename(self._folder / name)


def _prepared(sink: Sink) -> Path:
    folder = local_path(sink.path or "")
    if folder is None:
        raise UnsupportedError(
            f"{sink.where} writes to {sink.path}; the local engine writes files of this machine only"
        )
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        if sink.if_exists == "fail":
            raise SpecError(
                f"{sink.where} writes to {folder}, and something is there already; take another path, or say "
                'if_exists = "overwrite" or "append"'
            )
        if sink.if_exists == "overwrite":
            shutil.rmtree(folder)
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _write_json(table: pa.Table, path: Path) -> None:
    with path.open("w", encoding="utf-8") as file:
        for row in table.to_pylist():
            file.write(json.dumps({k: v for k, v in row.items() if v is not None}, default=_json_value) + "\n")


def _json_value(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.isoformat(timespec="milliseconds" if value.microsecond % 1_000 == 0 else "microseconds").replace(
            "+00:00", "Z"
        )
    if isinstance(value, date):
        return value.isoformat()
    return float(value) if isinstance(value, Decimal) else str(value)


_WRITERS: Mapping[str, Callable[[pa.Table, Path], None]] = {
    "parquet": lambda table, path: pq.write_table(table, path),
    "csv": lambda table, path: pa_csv.write_csv(table, path),
    "json": _write_json,
}
