"""pipeline.toml: a join with its sources and its sink, as a value that is checked when it is read."""

from __future__ import annotations

import inspect
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from glob import has_magic, iglob
from itertools import permutations
from pathlib import Path
from typing import Any, ClassVar

from handfast.errors import SpecError
from handfast.spec.join import JoinSpec
from handfast.spec.schema import nearest
from handfast.spec.window import parse_duration

ENGINES = ("spark", "local")
MODES = ("stream", "batch")
FILES = ("parquet", "csv", "json")  # read and written by both engines
LINES = ("csv", "json")  # files of text, in which a row can be corrupt
AVAILABLE_NOW = "available now"
MAX_CORES = 1024
_REFUSED = ("late_rows", "rejected_rows")
_MAY_BE_UNSAID = ("sequence", "valid_from", "valid_to", "idle_timeout")  # None for a stream, which TOML does not have


@dataclass(frozen=True, slots=True)
class Source:
    """Where the rows of one stream come from.

    Attributes:
        format: parquet, csv, json, socket, rate, handfast (a generated workload), or any format that Spark knows.
        path: A file, a folder or a pattern.
        schema: The columns, `name type, name type`; csv, json and socket need them.
        on_corrupt: What to do with a row of text that does not fit the schema: "fail", or "drop" it and count it.
        header: Whether the first line of a csv file has the names of the columns.
        separator: What stands between the cells of csv.
        lines: What the lines of a socket are: "json" or "csv".
        files_per_trigger: How many files a step of a stream takes at most; all there are, if not said.
        select: SQL expressions over the columns that come, on Spark: `["CAST(value AS STRING) AS name"]`.
        options: Options of Spark's reader, or of the workload.
    """

    name: str
    format: str
    path: str | None = None
    schema: str | None = None
    on_corrupt: str = "fail"
    header: bool = True
    separator: str = ","
    lines: str = "json"
    files_per_trigger: int | None = None
    select: tuple[str, ...] = ()
    options: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        where = f"[sources.{self.name}]"
        _check_one_of(f"{where} on_corrupt", self.on_corrupt, ("fail", "drop"))
        _check_one_of(f"{where} lines", self.lines, LINES)
        if self.format in FILES and self.path is None:
            raise SpecError(f"{where} has the format {self.format!r} and needs a path")
        if self.schema is None and self.format in LINES:
            raise SpecError(
                f"{where} has the format {self.format!r} and needs a schema: "
                'the columns with their types, like schema = "ts timestamp, symbol string, price double"'
            )
        if self.on_corrupt == "drop" and not self.is_text:
            raise SpecError(f"{where} on_corrupt is for csv, json and lines of a socket, not for {self.format!r}")
        if self.files_per_trigger is not None and self.files_per_trigger < 1:
            raise SpecError(f"{where} files_per_trigger must be a positive number, not {self.files_per_trigger}")
        if len(self.separator) != 1:
            raise SpecError(f"{where} separator must be one character, not {self.separator!r}")

    @property
    def is_text(self) -> bool:
        """Whether rows are lines of text that are to be read as `schema` says."""
        return self.format in LINES or (self.format == "socket" and self.schema is not None)


@dataclass(frozen=True, slots=True)
class Sink:
    """Where matches go, or refused rows.

    Attributes:
        format: parquet, csv, json, console, none, or any format that Spark knows; refused rows go to files.
        path: The folder that files are written to; refused rows have one in it for every stream.
        if_exists: What to do if there are rows already, and no checkpoint to go on from: "fail", "append", "overwrite".
        options: Options of Spark's writer.
        table: What it is called in the file.
    """

    KINDS: ClassVar[tuple[str, ...]] = (*FILES, "console", "none")

    format: str
    path: str | None = None
    if_exists: str = "fail"
    options: Mapping[str, str] = field(default_factory=dict)
    table: str = "sink"

    def __post_init__(self) -> None:
        _check_one_of(f"{self.where} if_exists", self.if_exists, ("fail", "append", "overwrite"))
        if self.format in FILES and self.path is None:
            raise SpecError(f"{self.where} has the format {self.format!r} and needs a path")
        if self.table != "sink" and self.format not in FILES:
            raise SpecError(
                f"{self.where} has the format {self.format!r}; refused rows go to files: {', '.join(FILES)}"
            )

    @property
    def where(self) -> str:
        """What errors call it."""
        return f"[{self.table}]"

    @property
    def keeps(self) -> bool:
        """Whether what is written is still there afterwards."""
        return self.format not in ("console", "none")

    def of(self, stream: str) -> Sink:
        """The part of it that takes one stream's rows."""
        return replace(self, path=f"{(self.path or '').rstrip('/')}/{stream}")


@dataclass(frozen=True, slots=True)
class SparkSettings:
    """The Spark session: where it runs, what it loads, how it is set."""

    master: str | None = None
    packages: tuple[str, ...] = ()
    config: Mapping[str, str] = field(default_factory=dict)

    def settings(self) -> dict[str, str]:
        """As settings of the session."""
        named = {"spark.master": self.master, "spark.jars.packages": ",".join(self.packages) or None}
        return {name: value for name, value in named.items() if value is not None} | dict(self.config)


@dataclass(frozen=True, slots=True)
class Pipeline:
    """A join from its sources to its sink.

    Attributes:
        late_rows: Where the rows of a stream go that came too late; rejected_rows: those without a valid time.
        engine: "spark" or "local".
        mode: "stream": rows are joined as they come; "batch": all there are, once.
        trigger: Of a stream: "available now" ends when all there is has been joined; a duration like "10 seconds"
            is the time from one step to the next, until it is stopped.
        checkpoint: The folder that a stream on Spark goes on from.
        cores: How many JoinCores share the windows.
    """

    file: Path
    sources: Mapping[str, Source]
    spec: JoinSpec
    sink: Sink
    late_rows: Sink | None = None
    rejected_rows: Sink | None = None
    engine: str = "spark"
    mode: str = "stream"
    trigger: str = "0 seconds"
    checkpoint: str | None = None
    cores: int = 2
    spark: SparkSettings = field(default_factory=SparkSettings)

    def __post_init__(self) -> None:
        _check_one_of("engine", self.engine, ENGINES)
        _check_one_of("mode", self.mode, MODES)
        if not 1 <= self.cores <= MAX_CORES:
            raise SpecError(f"cores must be a whole number from 1 to {MAX_CORES}, not {self.cores}")
        if self.interval is not None and self.interval < 0:
            raise SpecError(f"trigger cannot be negative: {self.trigger!r}")
        _check_refused(self)
        if self.mode == "stream":
            self.spec.check_unbounded('write lateness = "30 seconds" in [join], or mode = "batch" for all rows at once')

    @property
    def interval(self) -> int | None:
        """The time between two steps in microseconds; None if all there is is joined at once."""
        return None if self.trigger == AVAILABLE_NOW else parse_duration(self.trigger, what="trigger")

    @property
    def refused(self) -> dict[str, Sink]:
        """Where refused rows go, by kind, as far as it is asked for."""
        asked = {"late_rows": self.late_rows, "rejected_rows": self.rejected_rows}
        return {kind: sink for kind, sink in asked.items() if sink is not None}

    @property
    def folders(self) -> list[Sink]:
        """Every sink, one for each stream where rows are refused."""
        return [self.sink, *(sink.of(name) for sink in self.refused.values() for name in self.spec.names)]

    def as_batch(self) -> Pipeline:
        """The same join of all rows there are."""
        return replace(self, mode="batch", late_rows=None, rejected_rows=None)

    @staticmethod
    def read(path: Path, *, engine: str | None = None) -> Pipeline:
        """The pipeline in a file; `engine` outweighs what the file says."""
        return Pipeline.of(path, _parsed(path), engine=engine)

    @staticmethod
    def of(path: Path, text: Mapping[str, Any], *, engine: str | None = None) -> Pipeline:
        """The pipeline that the tables of a file describe."""
        top = ("engine", "mode", "trigger", "checkpoint", "cores")
        _check_keys(path.name, text, (*top, "spark", "sources", "join", "sink", *_REFUSED))
        for needed in ("sources", "join", "sink"):
            if needed not in text:
                example = "sources.r" if needed == "sources" else needed
                raise SpecError(f"{path.name} has no [{example}]; a pipeline needs sources, a join and a sink")
        asked = {
            name: _typed(path.name, name, text[name], int if name == "cores" else str) for name in top if name in text
        }
        if engine is not None:
            asked["engine"] = engine
        home = path.parent
        if "checkpoint" in asked:
            asked["checkpoint"] = _resolved(home, asked["checkpoint"])
        sources = {name: _source(home, name, table) for name, table in _table("[sources]", text["sources"]).items()}
        join = _join(tuple(sources), text["join"])
        sinks: dict[str, Any] = {name: _sink(home, name, text[name]) for name in ("sink", *_REFUSED) if name in text}
        return Pipeline(path, sources, join, spark=_spark(text), **sinks, **asked)


def _check_refused(pipeline: Pipeline) -> None:
    """Refuse places for refused rows that there are no rows for, or that cannot be kept apart."""
    for sink in pipeline.refused.values():
        if pipeline.mode == "batch":
            raise SpecError(
                f'{sink.where} is for mode = "stream"; a batch has no late rows, and only counts the rejected ones'
            )
        if pipeline.sink.format not in Sink.KINDS:
            raise SpecError(
                f"[sink] has the format {pipeline.sink.format!r}, and {sink.where} goes with {', '.join(Sink.KINDS)} "
                "only: no other can be written together with it so that every row comes once"
            )
    kept = [sink for sink in (pipeline.sink, *pipeline.refused.values()) if sink.format in FILES]
    for one, other in permutations(kept, 2):
        if f"{other.path}/".startswith(f"{one.path}/"):
            raise SpecError(f"{other.where} writes into the folder of {one.where}; give each a folder of its own")


def local_path(path: str) -> Path | None:
    """A path on this machine, or None for one on another file system."""
    if path.startswith("file:"):
        return Path("/" + path.removeprefix("file:").lstrip("/"))
    return None if "://" in path else Path(path)


def check_there(source: Source) -> None:
    """Refuse a path on this machine where nothing is."""
    path = local_path(source.path) if source.path is not None else None
    if path is None:
        return
    there = any(True for _ in iglob(str(path))) if has_magic(str(path)) else path.exists()
    if not there:
        raise SpecError(f"[sources.{source.name}] reads {path}, and there is no such file or folder")


# --- reading --------------------------------------------------------------------------------------------------------


def _parsed(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise SpecError(f"There is no file {path}") from None
    except (OSError, UnicodeDecodeError) as error:
        raise SpecError(f"{path} cannot be read: {error}") from None
    except tomllib.TOMLDecodeError as error:
        hint = "; a stream can be named only once" if "twice" in str(error) or "overwrite" in str(error) else ""
        raise SpecError(f"{path} is not valid TOML: {error}{hint}") from None


def _source(home: Path, name: str, table: Any) -> Source:
    where = f"[sources.{name}]"
    table = _table(where, table)
    kinds: dict[str, type | tuple[type, ...]] = {
        "format": str,
        "path": str,
        "schema": str,
        "on_corrupt": str,
        "header": bool,
        "separator": str,
        "lines": str,
        "files_per_trigger": int,
        "select": list,
        "options": dict,
    }
    _check_keys(where, table, kinds)
    if "format" not in table:
        raise SpecError(f'{where} has no format; say format = "parquet", "csv", "json", "kafka"…')
    asked = {key: _typed(where, key, value, kinds[key]) for key, value in table.items()}
    if "path" in asked:
        asked["path"] = _resolved(home, asked["path"])
    if "select" in asked:
        asked["select"] = tuple(_typed(where, "select", part, str) for part in asked["select"])
    return Source(name, **{**asked, "options": _options(asked.get("options", {}))})


def _sink(home: Path, name: str, table: Any) -> Sink:
    where = f"[{name}]"
    table = _table(where, table)
    kinds: dict[str, type] = {"format": str, "path": str, "if_exists": str, "options": dict}
    _check_keys(where, table, kinds)
    if "format" not in table:
        raise SpecError(f'{where} has no format; say format = "parquet", "csv", "json"…')
    asked = {key: _typed(where, key, value, kinds[key]) for key, value in table.items()}
    if "path" in asked:
        asked["path"] = _resolved(home, asked["path"])
    return Sink(**{**asked, "options": _options(asked.get("options", {}))}, table=name)


def _join(names: tuple[str, ...], table: Any) -> JoinSpec:
    """The join: its keys are `hf.join`'s keywords, whatever they are."""
    table = _table("[join]", table)
    parameters = [p for p in inspect.signature(JoinSpec).parameters.values() if p.name != "streams"]
    _check_keys("[join]", table, [p.name for p in parameters])
    for parameter in parameters:
        if parameter.default is inspect.Parameter.empty and parameter.name not in table:
            raise SpecError(f"[join] has no {parameter.name!r}, and a join needs it")
    _typed("[join]", "in_order", table.get("in_order", False), bool)
    by_stream = {key: table[key] for key in _MAY_BE_UNSAID if isinstance(table.get(key), dict)}
    return JoinSpec(names, **table | {key: dict.fromkeys(names) | own for key, own in by_stream.items()})


def _spark(text: Mapping[str, Any]) -> SparkSettings:
    table = _table("[spark]", text.get("spark", {}))
    kinds: dict[str, type] = {"master": str, "packages": list, "config": dict}
    _check_keys("[spark]", table, kinds)
    asked = {key: _typed("[spark]", key, value, kinds[key]) for key, value in table.items()}
    packages = tuple(_typed("[spark]", "packages", part, str) for part in asked.get("packages", ()))
    return SparkSettings(asked.get("master"), packages, _options(asked.get("config", {})))


def _resolved(home: Path, path: str) -> str:
    """A path as the file means it: relative to the folder that the file is in."""
    return path if "://" in path or path.startswith("file:") else str((home / path).resolve())


def _options(table: Mapping[str, Any], prefix: str = "") -> dict[str, str]:
    """Options as Spark takes them; `a.b = 1` in TOML is a table in a table."""
    flat: dict[str, str] = {}
    for name, value in table.items():
        if isinstance(value, Mapping):
            flat |= _options(value, f"{prefix}{name}.")
        else:
            flat[prefix + name] = str(value).lower() if isinstance(value, bool) else str(value)
    return flat


def _table(where: str, value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise SpecError(f"{where} must be a table, not {value!r}")
    return value


def _check_keys(where: str, table: Mapping[str, Any], known: Iterable[str]) -> None:
    names = tuple(known)
    for key in table:
        if key not in names:
            near = nearest(key, names)
            hint = f"; did you mean {near!r}?" if near else ""
            raise SpecError(f"{where} has no key {key!r}{hint} (it can have {', '.join(names)})")


def _typed(where: str, key: str, value: Any, kind: Any) -> Any:
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        words = {str: "text in quotes", int: "a whole number", bool: "true or false", list: "a list", dict: "a table"}
        raise SpecError(f"{key} in {where} must be {words[kind]}, not {value!r}")
    return value


def _check_one_of(what: str, value: str, known: tuple[str, ...]) -> None:
    if value not in known:
        near = nearest(value, known)
        hint = f"; did you mean {near!r}?" if near else ""
        raise SpecError(f"{what} must be one of {', '.join(known)}, not {value!r}{hint}")
