"""What a user calls: join, explain, configure, session, write, metrics."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from importlib import import_module
from os import PathLike
from time import monotonic
from typing import TYPE_CHECKING, Any

from handfast.errors import SpecError, missing_extra
from handfast.spec.join import JoinSpec, On
from handfast.spec.moment import Moment
from handfast.spec.schema import nearest
from handfast.spec.window import Duration, Window

if TYPE_CHECKING:
    from handfast.engines.hardware.options import HardwareOptions
    from handfast.engines.local.options import LocalOptions
    from handfast.engines.local.session import Session
    from handfast.engines.spark.options import SparkOptions
    from handfast.engines.spark.write import Place, Places
    from handfast.flow.metrics import Metrics
    from handfast.plan import Plan
    from handfast.spec.python_predicate import PythonPredicate

_DEFAULTS = {"how": "inner", "in_order": False, "order": "event"}  # of the keywords of `join`; None of all others
_LOCAL, _SPARK, _HARDWARE = _ENGINES = ("local", "spark", "hardware")
_NEEDED = {
    "on": "A join needs a predicate: on='r.x = s.x'",
    "window": "A join needs windows: window='10 minutes', or one by stream: {'r': '10 minutes', 's': '1 minute'}",
    "time": "A join needs the event-time column: time='ts', or one by stream: {'r': 'ts', 's': 'at'}",
}


def join(
    inputs: Mapping[str, Any],
    spec: JoinSpec | None = None,
    *,
    on: On | list[str | PythonPredicate] | None = None,
    window: Duration | Window | Mapping[str, Duration | Window] | None = None,
    time: str | Mapping[str, str] | None = None,
    lateness: Duration | Mapping[str, Duration | None] | None = None,
    how: str = "inner",
    sequence: str | Mapping[str, str | None] | None = None,
    in_order: bool = False,
    select: str | None = None,
    order: str = "event",
    valid_from: Moment | Mapping[str, Moment | None] | None = None,
    valid_to: Moment | Mapping[str, Moment | None] | None = None,
    idle_timeout: Duration | Mapping[str, Duration | None] | None = None,
    engine: str | None = None,
    options: LocalOptions | SparkOptions | HardwareOptions | None = None,
) -> Any:
    """Join streams over sliding windows.

    Args:
        inputs: The streams by name, in their order: Spark DataFrames, all batch or all streaming; or Arrow, pandas
            and Polars tables, which may be mixed.
        spec: The join as a value, instead of the keywords that follow.
        on: The predicate: a SQL condition over `stream.column`, an `hf.predicate`, or a list of these that must all
            hold.
        window: How long a row can be matched, like "10 minutes" or "500 rows": one for all streams, or one by stream.
        time: The event-time column: one name for all streams, or one by stream.
        lateness: How far a row may lag behind its stream's newest; streaming inputs need it: one, or one by stream.
        how: "inner" gives the matches. Of two streams also: "left", "right", "full" (the matches, and the rows of the
            first, the second, or both that match nothing, each as soon as that is certain), "semi" (rows of the first
            that match something), "anti" (rows of the first that match nothing). Spark's other names for them, like
            "left_outer", mean the same.
        sequence: The column that orders rows of one stream that have the same time: one name, or one by stream.
        in_order: Give the result in the order of `match_time`: each row when no earlier one can follow any more.
        select: The result's columns, a SQL list like "r.price, s.price AS bid, match_time"; every column when None.
        order: What decides which row came first: "event", their times; or "arrival", for count windows only, the
            order in which Spark's batches bring them (for bounded inputs, the `sequence` columns).
        valid_from: The earliest time that a row may have, a datetime or microseconds since 1970: one, or one by
            stream. Earlier rows are rejected, as are rows without a time.
        valid_to: The latest time that a row may have, in the same way.
        idle_timeout: How long, by the clock, the watermark waits for a stream that sends nothing, for streaming
            inputs: one, or one by stream. Without it, the watermark waits for ever.
        engine: What runs the join: "spark" for Spark DataFrames, "local" for tables, or "hardware" for tables, a
            simulated circuit. When None, "spark" or "local" by the kind of the inputs. The result is the same.
        options: How the engine runs: `LocalOptions`, `SparkOptions` or `HardwareOptions`.

    Returns:
        A Spark DataFrame for Spark inputs (a streaming one for streaming inputs), a `pyarrow.Table` otherwise: every
        column as `<stream>_<column>`, and `match_time`, the time of a match's last row. For a row that matches nothing,
        and in a semi join without `in_order`, it is the row's own time.
    """
    asked = {
        "on": on,
        "window": window,
        "time": time,
        "lateness": lateness,
        "how": how,
        "sequence": sequence,
        "in_order": in_order,
        "select": select,
        "order": order,
        "valid_from": valid_from,
        "valid_to": valid_to,
        "idle_timeout": idle_timeout,
    }
    wanted = spec_of(inputs, spec, {name: value for name, value in asked.items() if not _is_default(name, value)})
    chosen = _chosen_engine(inputs, engine, options)
    if chosen == _SPARK:
        return _spark().join(dict(inputs), wanted, _spark_options(options))
    if chosen == _HARDWARE:
        return _by_circuit("join_tables", inputs, wanted, options)
    plan, tables = _local_plan(inputs, wanted, options)
    from handfast.engines.local.engine import join_tables
    from handfast.engines.local.planning import checked_options

    return join_tables(plan, tables, checked_options(options))


def explain(
    inputs: Mapping[str, Any],
    spec: JoinSpec | None = None,
    *,
    engine: str | None = None,
    options: LocalOptions | SparkOptions | HardwareOptions | None = None,
    **asked: Any,
) -> str:
    """The plan of a join and the reason for each choice, as text; the arguments are those of `join`."""
    wanted = spec_of(inputs, spec, asked)
    chosen = _chosen_engine(inputs, engine, options)
    if chosen == _HARDWARE:
        return str(_by_circuit("explain_tables", inputs, wanted, options))
    from handfast.core.describe import describe

    if chosen == _SPARK:
        return str(_spark().explain(dict(inputs), wanted, _spark_options(options)))
    from handfast.engines.local.engine import described, sampled
    from handfast.engines.local.planning import checked_options

    plan, tables = _local_plan(inputs, wanted, options)
    algorithm = sampled(plan, tables, checked_options(options))
    return describe(plan, engine="local", cores=described(plan), algorithm=algorithm)


def session(
    spec: JoinSpec,
    schemas: Mapping[str, Any],
    *,
    options: LocalOptions | None = None,
    clock: Callable[[], float] = monotonic,
) -> Session:
    """A join in this process that is fed by hand: push batches, read matches, late rows and metrics.

    Args:
        spec: The join; every stream needs a lateness.
        schemas: The Arrow schema of every stream.
        options: How the local engine runs.
        clock: The clock that `idle_timeout` is measured by: a function that gives seconds and never goes back.
    """
    from handfast.engines.local.session import Session

    return Session(spec, schemas, options, clock)


def write(
    matches: Any,
    *,
    to: Place,
    late_rows: Places | None = None,
    rejected_rows: Places | None = None,
    checkpoint: str | PathLike[str],
    trigger: str | Mapping[str, Any] | None = None,
    name: str | None = None,
) -> Any:
    """Start one streaming query that writes matches to one place and refused rows to others.

    A place is a path, under which every batch gets a folder of Parquet files; or a function that takes the rows as a
    DataFrame and the batch's number. After a crash the last batch may run again, with the same number and the same
    rows: a path still has every row once; a function has to make sure of that by the number. A path belongs to the
    checkpoint that filled it, and is refused with another one.

    Args:
        matches: The streaming DataFrame that `join` returned, as it is.
        to: Where the matches go.
        late_rows: Where late rows go, with the columns of their stream: a path, under which every stream gets a folder
            of its name; or places by stream.
        rejected_rows: Where rejected rows go, in the same way.
        checkpoint: The folder in which Spark keeps how far the query has come.
        trigger: When a batch starts: "10 seconds", or the arguments of Spark's `trigger`, like {"availableNow": True}.
        name: The query's name.

    Returns:
        The StreamingQuery.
    """
    return _spark().write(
        matches,
        to=to,
        late_rows=late_rows,
        rejected_rows=rejected_rows,
        checkpoint=checkpoint,
        trigger=trigger,
        name=name,
    )


def metrics(query: Any) -> Metrics:
    """What became of every row of a streaming query so far: the same counters as a session's.

    For a query that has failed it raises the error that the query failed with.

    Args:
        query: The StreamingQuery that runs a join; or one progress of it, as a StreamingQueryListener gets it.
    """
    found: Metrics = _spark().metrics(query)
    return found


def configure(spark: Any, *, cores: int | None = None, quiet: bool = False) -> None:
    """Prepare a Spark session for joins: its state store, its number of shuffle partitions, the Python of its workers.

    On a local master the workers run the Python of this program, unless PYSPARK_PYTHON names another; anywhere else a
    tiny job finds out whether they have handfast, in the same version.

    Args:
        spark: The session, classic or Connect.
        cores: How many JoinCores share the windows; when None, as many as Spark runs tasks at a time.
        quiet: Do not print the line that says what was set.
    """
    _spark().configure(spark, cores=cores, quiet=quiet)


def spec_of(inputs: Mapping[str, Any], spec: JoinSpec | None, asked: Mapping[str, Any]) -> JoinSpec:
    """The join that is asked for, as a value or by the keywords of `join` that are given."""
    if not isinstance(inputs, Mapping):
        raise SpecError(
            f"The inputs must be a mapping of names to streams like {{'r': trades, 's': quotes}}, not {inputs!r}"
        )
    if spec is not None:
        if not isinstance(spec, JoinSpec):
            raise SpecError(f"The second argument must be a JoinSpec, not {spec!r}; the predicate goes to on=…")
        if asked:
            raise SpecError("The join is given twice, as a JoinSpec and by keywords; leave one out")
        if set(spec.names) != set(inputs):
            raise SpecError(f"The JoinSpec joins {', '.join(spec.names)}, but the inputs are {', '.join(inputs)}")
        return spec
    for name, sentence in _NEEDED.items():
        if asked.get(name) is None:
            raise SpecError(sentence)
    known = tuple(inspect.signature(JoinSpec).parameters)
    unknown = [name for name in asked if name not in known]
    if unknown:
        near = nearest(unknown[0], known)
        raise SpecError(f"A join has no {unknown[0]}=…" + (f"; did you mean {near}=…?" if near else ""))
    return JoinSpec(tuple(inputs), **asked)


def _is_default(name: str, value: Any) -> bool:
    return value is None or (name in _DEFAULTS and value == _DEFAULTS[name])  # only these: a Column has no plain ==


def _chosen_engine(inputs: Mapping[str, Any], engine: str | None, options: Any) -> str:
    """The engine that is asked for, or that the inputs are for; what does not go together is refused."""
    if engine is not None and engine not in _ENGINES:
        raise SpecError(f"engine={engine!r} is not an engine; it is one of {', '.join(map(repr, _ENGINES))}, or None")
    is_spark = _is_spark(inputs)
    if is_spark and engine not in (None, _SPARK):
        raise SpecError(
            f"engine={engine!r} joins tables in this process, and the inputs are Spark DataFrames; leave out engine=…, "
            "or collect them with toArrow()"
        )
    if not is_spark and engine == _SPARK:
        raise SpecError(
            "engine='spark' joins Spark DataFrames, and the inputs are tables in this process; make them DataFrames "
            "with spark.createDataFrame(…), or leave out engine=…"
        )
    chosen = engine or (_SPARK if is_spark else _LOCAL)
    kind = type(options).__name__
    if chosen == _SPARK and kind in ("LocalOptions", "HardwareOptions"):
        raise SpecError(
            f"{kind} are for tables in this process; Spark DataFrames have hf.SparkOptions(…), and hf.configure(spark, "
            "cores=…)"
        )
    if chosen != _SPARK and kind == "SparkOptions":
        raise SpecError("SparkOptions are for Spark DataFrames; leave them out, or make the inputs DataFrames")
    if chosen == _LOCAL and kind == "HardwareOptions":
        raise SpecError("HardwareOptions are for the hardware engine; write engine='hardware' beside them")
    return chosen


def _is_spark(inputs: Mapping[str, Any]) -> bool:
    kinds = {name: type(data).__module__.startswith("pyspark.") for name, data in inputs.items()}
    if len(set(kinds.values())) > 1:
        here = next(name for name, is_spark in kinds.items() if not is_spark)
        raise SpecError(
            f"Stream {here!r} is a table in this process and another one is a Spark DataFrame; "
            f"make it one with spark.createDataFrame({here})"
        )
    return bool(kinds) and all(kinds.values())


def _spark() -> Any:
    try:
        import_module("google.protobuf")  # Spark's state client needs it, and would miss it in a worker only
        from handfast.engines.spark import engine
    except ImportError as error:
        raise missing_extra("Joins on Spark need", "spark", error.name or "pyspark") from error
    return engine


def _spark_options(options: Any) -> SparkOptions:
    from handfast.engines.spark.options import checked_options

    return checked_options(options)


def _by_circuit(what: str, inputs: Mapping[str, Any], spec: JoinSpec, options: Any) -> Any:
    """What a function of the hardware engine gives for tables in this process."""
    try:
        from handfast.engines.hardware import engine
    except ImportError as error:
        raise missing_extra("Joins in hardware need", "hardware", error.name or "amaranth") from error
    from handfast.engines.hardware.options import HardwareOptions

    if options is not None and not isinstance(options, HardwareOptions):
        raise SpecError(f"options must be hf.HardwareOptions(…) with engine='hardware', not {options!r}")
    spec.check_bounded()
    return getattr(engine, what)(spec, _tables(inputs, spec), options or HardwareOptions())


def _tables(inputs: Mapping[str, Any], spec: JoinSpec) -> dict[str, Any]:
    from handfast.flow.batch import as_table

    return {name: as_table(inputs[name], name) for name in spec.names}


def _local_plan(inputs: Mapping[str, Any], spec: JoinSpec, options: Any) -> tuple[Plan, dict[str, Any]]:
    from handfast.engines.local.planning import checked_options, lay_out

    wanted = checked_options(options)
    spec.check_bounded()
    tables = _tables(inputs, spec)
    return lay_out(spec, {name: table.schema for name, table in tables.items()}, wanted), tables
