"""Random joins to judge the engines by: a pool of predicate shapes × constants, schemas, data, windows, disorder, cuts.

A case is drawn from a `random.Random`, so a plain seed names it: `Case.of(seed)`. Hypothesis draws seeds and shapes
(`cases()`), or every single choice, for cases that shrink (`shrinking_cases()`; they are poorer: many values are NULL,
few rows meet). `smallest` cuts a case down to what still fails. What a case covers is measured on its data: `features`.
"""

from __future__ import annotations

import math
import random
import string
import struct
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import timedelta
from functools import cached_property
from itertools import pairwise
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

from handfast import oracle
from handfast.spec.expression import Column, Literal, walk
from handfast.spec.join import BoundJoin, JoinSpec
from handfast.spec.window import CountWindow
from tests.judges.rows import multiset, rows_of, schemas_of, tables_of

R, S = 0, 1
MAX_ROWS = 60


# --- shapes ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Shape:
    """A predicate with holes: columns of both streams by role and type, constants by kind.

    `{rt}` and `{st}` are the streams' own time columns.
    """

    name: str
    on: str
    r: str = ""
    s: str = ""
    holes: str = ""

    @property
    def roles(self) -> dict[str, tuple[int, str]]:
        """Every role's stream and type."""
        return {role: (stream, kind) for stream in (R, S) for role, kind in _pairs((self.r, self.s)[stream])}

    @property
    def constants(self) -> dict[str, str]:
        """Every hole's kind of constant."""
        return dict(_pairs(self.holes))


def _pairs(text: str) -> list[tuple[str, str]]:
    return [(name, kind) for name, _, kind in (part.partition(":") for part in text.split())]


_BETWEEN = "{x} BETWEEN {a} - {d} AND {a} + {d}"

EQUALITIES = (
    Shape("eq int", "{x} = {a}", "x:int", "a:int"),
    Shape("eq bigint", "{a} = {x}", "x:bigint", "a:bigint"),
    Shape("eq int bigint", "{x} = {a}", "x:int", "a:bigint"),
    Shape("eq int double", "{x} = {a}", "x:int", "a:double"),
    Shape("eq double", "{x} = {a}", "x:double", "a:double"),
    Shape("eq float double", "{x} = {a}", "x:float", "a:double"),
    Shape("eq string", "{x} = {a}", "x:string", "a:string"),
    Shape("eq two columns", "{x} = {a} AND {y} = {b}", "x:int y:string", "a:int b:string"),
    Shape("eq boolean", "{x} = {a} AND {y} = {b}", "x:bool y:tinyint", "a:bool b:smallint"),
    Shape("eq timestamp", "{x} = {a}", "x:moment", "a:moment"),
    Shape("eq date", "{x} = {a}", "x:date", "a:date"),
    Shape("eq sum", "{x} + {y} = {a}", "x:int y:int", "a:int"),
    Shape("eq both sums", "{x} - {y} = {a} + {c}", "x:bigint y:int", "a:int", "c:int"),
    Shape("eq small widths", "{x} + 1 = {a}", "x:tinyint", "a:smallint"),
    Shape("eq and one-sided", "{x} = {a} AND {y} < {b}", "x:string y:int", "a:string b:int"),
)

BANDS = (
    Shape("band between int", _BETWEEN, "x:int", "a:int", "d:width"),
    Shape("band between swapped", "{a} BETWEEN {x} - {d} AND {x} + {e}", "x:int", "a:int", "d:width e:width"),
    Shape("band between bigint", _BETWEEN, "x:bigint", "a:bigint", "d:width"),
    Shape("band between float", _BETWEEN, "x:float", "a:float", "d:decimal"),
    Shape("band between double", _BETWEEN, "x:double", "a:double", "d:double"),
    Shape("band between int decimal", _BETWEEN, "x:int", "a:int", "d:decimal"),
    Shape("band int double", _BETWEEN, "x:int", "a:double", "d:decimal"),
    Shape("band abs", "ABS({x} - {a}) <= {d}", "x:int", "a:int", "d:width"),
    Shape("band abs swapped", "{d} > ABS({a} - {x})", "x:bigint", "a:int", "d:width"),
    Shape("band abs double", "ABS({x} - {a}) < {d}", "x:double", "a:double", "d:double"),
    Shape("band abs float", "ABS({x} - {a}) <= CAST({d} AS FLOAT)", "x:float", "a:float", "d:tenths"),
    Shape("band abs tinyint", "ABS({x} - {a}) <= {d}", "x:tinyint", "a:tinyint", "d:width"),
    Shape("band chain", "{x} >= {a} - {d} AND {x} <= {a} + {d}", "x:int", "a:int", "d:width"),
    Shape("band chain strict", "{x} > {a} - {d} AND {a} + {e} > {x}", "x:double", "a:double", "d:decimal e:decimal"),
    Shape("band differences", "{x} - {a} < {d} AND {a} - {x} <= {e}", "x:int", "a:int", "d:width e:width"),
    Shape("band one difference", "{x} - {a} > -{d} AND {x} - {a} < {e}", "x:bigint", "a:bigint", "d:width e:width"),
    Shape("band off centre", "{x} BETWEEN {a} + {c} AND {a} + {d}", "x:int", "a:int", "c:int d:width"),
    Shape("band sum", "{x} + {y} BETWEEN {a} - {d} AND {a} + {d}", "x:int y:int", "a:int", "d:width"),
    Shape("band sums", "ABS(({x} - {y}) - ({a} + {b})) <= {d}", "x:double y:float", "a:double b:int", "d:decimal"),
    Shape("band timestamp", _BETWEEN, "x:moment", "a:moment", "d:gap"),
    Shape("band event time", "{st} - {rt} < {d} AND {rt} - {st} <= {e}", holes="d:gap e:gap"),
    Shape("band interval", "ABS({x} - {a}) <= {d}", "x:moment", "a:moment", "d:gap"),
    Shape(
        "band two dimensions",
        _BETWEEN + " AND {y} BETWEEN {b} - {e} AND {b} + {e}",
        "x:int y:float",
        "a:int b:float",
        "d:wide e:wide",
    ),
    Shape(
        "band two abs",
        "ABS({x} - {a}) <= {d} AND ABS({y} - {b}) < {e}",
        "x:double y:double",
        "a:double b:double",
        "d:wide e:wide",
    ),
    Shape("band and eq", "{y} = {b} AND ABS({x} - {a}) <= {d}", "x:int y:string", "a:int b:string", "d:wide"),
    Shape("band and rest", "{y} <> {b} AND " + _BETWEEN, "x:double y:int", "a:double b:int", "d:decimal"),
)

RESIDUALS = (
    Shape("less", "{x} < {a}", "x:int", "a:int"),
    Shape("unequal", "{x} <> {a}", "x:bigint", "a:int"),
    Shape("or", "{x} = {a} OR {y} = {b}", "x:int y:string", "a:int b:string"),
    Shape("or band", "ABS({x} - {a}) < {d} OR {y} < {b}", "x:int y:double", "a:int b:double", "d:width"),
    Shape("not between", "NOT ({x} BETWEEN {a} - {d} AND {a} + {d})", "x:int", "a:int", "d:width"),
    Shape("in", "{x} IN ({a}, {b}, {c})", "x:int", "a:int b:smallint", "c:int"),
    Shape("product", "{x} * {a} > {c}", "x:int", "a:int", "c:int"),
    Shape("quotient", "{x} / {a} >= {c}", "x:int", "a:int", "c:double"),
    Shape("guarded quotient", "{a} <> 0 AND {x} / {a} < {c}", "x:double", "a:int", "c:double"),
    Shape("remainder", "({x} + {a}) % {d} = {c}", "x:bigint", "a:int", "d:divisor c:rest"),
    Shape("remainder by column", "{x} % {a} < {c}", "x:double", "a:double", "c:double"),
    Shape("is null", "{x} IS NULL OR {x} = {a}", "x:string", "a:string"),
    Shape("null-safe", "{x} <=> {a}", "x:double", "a:double"),
    Shape("is not true", "({x} < {a}) IS NOT TRUE AND {y} = {b}", "x:int y:tinyint", "a:int b:tinyint"),
    Shape("booleans", "{x} AND NOT {a} OR {y} = {b}", "x:bool y:int", "a:bool b:int"),
    Shape("string order", "{x} < {a} AND {x} <> {c}", "x:string", "a:string", "c:string"),
    Shape("one stream alone", "{x} > {c} AND {a} = {d}", "x:int", "a:string", "c:int d:string"),
    Shape("every pair", "TRUE"),
    Shape("negative", "-{x} <= {a} + {c}", "x:int", "a:int", "c:int"),
)

SHAPES = EQUALITIES + BANDS + RESIDUALS


# --- values ---------------------------------------------------------------------------------------------------------

INTEGER_BITS = {"tinyint": 8, "smallint": 16, "int": 32, "bigint": 64}
ARROW_TYPES: dict[str, pa.DataType] = {
    "tinyint": pa.int8(),
    "smallint": pa.int16(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "bool": pa.bool_(),
    "date": pa.date32(),
    "list": pa.list_(pa.int32()),
    "struct": pa.struct([("u", pa.int64()), ("v", pa.string())]),
    "binary": pa.binary(),
    "decimal": pa.decimal128(10, 2),
}
PAYLOADS = ("int", "double", "string", "bool", "list", "struct", "binary", "decimal", "date")
WORDS = (
    "",
    "a",
    "b",
    "ab",
    "B",
    "é",
    "日本",
    "\uff5a",
    "\U0001f600",
    "a b",
)  # the last but one sorts by UTF-8, not UTF-16
TICKS = {1: "microseconds", 1_000: "milliseconds", 1_000_000: "seconds", 60_000_000: "minutes", 3_600_000_000: "hours"}
BASES = (0, -1_000_000_000_000_000, 1_700_000_000_000_000, 951_782_400_000_000)
_SPECIAL_DOUBLES = (math.nan, math.inf, -math.inf, -0.0, 0.0, 1.7976931348623157e308, 5e-324)
_SPECIAL_FLOATS = (math.nan, math.inf, -math.inf, -0.0, 0.0, 3.4028234663852886e38, 1.401298464324817e-45)


@dataclass
class _Draw:
    """The random choices that all values of one case share."""

    rng: random.Random
    for_spark: bool
    tick: int = 1
    span: int = 1  # the times of a case lie on this many ticks
    base: int = 0
    zone: str | None = "UTC"
    reach: int = 4  # numbers lie between -reach and reach
    nulls: float = 0.0
    specials: float = 0.0
    favourites: tuple[int, ...] = ()
    words: tuple[str, ...] = WORDS

    @classmethod
    def random(cls, rng: random.Random, for_spark: bool) -> _Draw:
        draw = cls(rng, for_spark)
        draw.tick = rng.choice(tuple(TICKS))
        draw.span = rng.randrange(8, 60)
        draw.base = rng.choice(BASES) // draw.tick * draw.tick
        draw.zone = rng.choice(("UTC", "UTC", "UTC", None) if for_spark else ("UTC", "UTC", "Europe/Berlin", None))
        draw.reach = rng.choice((3, 4, 5, 8))
        draw.nulls = rng.choice((0.0, 0.05, 0.15))
        draw.specials = rng.choice((0.0, 0.05, 0.2))
        draw.favourites = tuple(rng.sample(range(len(_SPECIAL_DOUBLES)), 3))  # few, so that they meet their like
        draw.words = tuple(rng.sample(WORDS, rng.randrange(2, 6)))
        return draw

    def arrow_type(self, kind: str) -> pa.DataType:
        """The Arrow type of a column."""
        if kind != "moment":
            if kind == "string" and not self.for_spark and self.rng.random() < 0.2:
                return self.rng.choice((pa.large_string(), pa.dictionary(pa.int32(), pa.string())))
            return ARROW_TYPES[kind]
        units = ["us"] * 4
        if not self.for_spark:
            units += ["ns"] + [unit for unit, micros in (("ms", 1_000), ("s", 1_000_000)) if self.tick % micros == 0]
        return pa.timestamp(self.rng.choice(units), self.zone)

    def moment(self) -> int:
        """A time in microseconds."""
        return self.base + self.tick * self.rng.randrange(self.span)

    def value(self, kind: str) -> Any:
        """A value of a column, as `pa.array` takes it (moments: microseconds)."""
        if self.rng.random() < self.nulls:
            return None
        if self.specials and self.rng.random() < self.specials and kind in (*INTEGER_BITS, "double", "float"):
            return self._special(kind)
        return getattr(self, f"_{'integer' if kind in INTEGER_BITS else kind}")()

    def _special(self, kind: str) -> Any:
        if kind in INTEGER_BITS:
            half = 2 ** (INTEGER_BITS[kind] - 1)
            return self.rng.choice((-half, half - 1, 1 - half))
        return (_SPECIAL_DOUBLES if kind == "double" else _SPECIAL_FLOATS)[self.rng.choice(self.favourites)]

    def _integer(self) -> int:
        return self.rng.randint(-self.reach, self.reach)

    def _double(self) -> float:
        if self.rng.random() < 0.5:
            return float(self._integer())
        return self.rng.randint(-10 * self.reach, 10 * self.reach) / 10

    def _float(self) -> float:
        tenths = self.rng.randint(-10 * self.reach, 10 * self.reach) / 10
        return float(struct.unpack("f", struct.pack("f", tenths))[0])

    def _string(self) -> str:
        return self.rng.choice(self.words)

    def _bool(self) -> bool:
        return self.rng.random() < 0.5

    def _date(self) -> int:
        return 19_700 + self.rng.randrange(5)

    def _moment(self) -> int:
        return self.moment()

    def _list(self) -> list[int | None]:
        return [self.rng.choice((None, 1, 2)) for _ in range(self.rng.randrange(3))]

    def _struct(self) -> dict[str, Any]:
        return {"u": self._integer(), "v": self.rng.choice((None, *self.words))}

    def _binary(self) -> bytes:
        return bytes(self.rng.randrange(256) for _ in range(self.rng.randrange(3)))

    def _decimal(self) -> str:
        return f"{self._integer()}.{self.rng.randrange(100):02}"

    def constant(self, kind: str) -> str:
        """A constant as SQL."""
        rng = self.rng
        if kind == "int":
            return str(rng.randint(-self.reach, self.reach))
        if kind == "width":
            return str(rng.randrange(4))
        if kind == "wide":
            return str(rng.randrange(1, self.reach + 1))
        if kind == "divisor":
            return str(rng.choice((2, 3, 4, -3)))
        if kind == "rest":
            return str(rng.choice((0, 1, -1)))
        if kind == "decimal":
            return f"{rng.randrange(1, 4)}.{rng.randrange(100):02}"  # always three digits: one type, so one kernel
        if kind == "tenths":
            return f"{rng.randrange(1, 10)}e-1"
        if kind == "double":
            return rng.choice(("0.5D", "1e0", "1.5D", "0.1D", "2.3e0"))
        if kind == "string":
            return f"'{rng.choice(self.words)}'"
        assert kind == "gap", kind
        return f"INTERVAL {rng.randrange(1, max(2, self.span // 3))} {TICKS[self.tick].upper()}"


# --- cases ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Case:
    """One join with its data, and the way the data arrives.

    Attributes:
        kwargs: What `hf.join` takes beside the inputs, for bounded inputs.
        lateness: What it takes besides for unbounded ones.
        tables: Every stream's rows in the order of arrival.
        steps: The same rows as they arrive, batch by batch; a stream may be missing from a step, or empty in it.
        cores: On how many cores to run it.
    """

    shape: Shape
    streams: tuple[str, str]
    kwargs: dict[str, Any]
    lateness: str | dict[str, str]
    tables: dict[str, pa.Table]
    steps: list[dict[str, pa.Table]]
    cores: int
    origin: str = field(default="", compare=False)

    def __repr__(self) -> str:
        data = {name: table.to_pylist() for name, table in self.tables.items()}
        sizes = [{name: len(table) for name, table in step.items()} for step in self.steps]
        asked = ", ".join(f"{name}={value!r}" for name, value in {**self.kwargs, "lateness": self.lateness}.items())
        return f"{self.origin or 'Case'}: {self.shape.name}, {asked}, cores={self.cores}, steps={sizes}, tables={data}"

    @classmethod
    def of(cls, seed: int, *, for_spark: bool = False, shape: Shape | None = None) -> Case:
        """The case with this number."""
        case = cls.random(random.Random(seed), for_spark=for_spark, shape=shape)
        return replace(case, origin=f"Case.of({seed}, for_spark={for_spark}, shape={shape and shape.name!r})")

    @classmethod
    def random(cls, rng: random.Random, *, for_spark: bool = False, shape: Shape | None = None) -> Case:
        """A random case; `for_spark` keeps to columns that a Spark DataFrame can hold."""
        return _Maker(rng, for_spark, shape or rng.choice(SHAPES)).case()

    @cached_property
    def spec(self) -> JoinSpec:
        return JoinSpec(self.streams, **self.kwargs, lateness=self.lateness)

    @cached_property
    def join(self) -> BoundJoin:
        return self.spec.bind(schemas_of(self.tables))

    @cached_property
    def admission(self) -> oracle.Admission:
        """What the oracle lets in when the steps arrive one by one."""
        return oracle.admit(self.join, [tables_of(step) for step in self._numbered_steps()])

    @cached_property
    def admitted(self) -> dict[str, pa.Table]:
        """The rows that the oracle lets in when the steps arrive one by one."""
        rows = {name: [row["#"] for row in self.admission.admitted[name]] for name in self.streams}
        return {name: self.tables[name].take(pa.array(rows[name], pa.int64())) for name in self.streams}

    def _numbered_steps(self) -> list[dict[str, pa.Table]]:
        count = dict.fromkeys(self.streams, 0)
        numbered = []
        for step in self.steps:
            tables = {}
            for name, table in step.items():
                numbers = pa.array(range(count[name], count[name] + len(table)), pa.int64())
                tables[name] = table.append_column("#", numbers)
                count[name] += len(table)
            numbered.append(tables)
        return numbered

    def expected(self) -> Counter[tuple[Any, ...]]:
        """The oracle's result for the bounded tables."""
        return multiset(oracle.result(self.join, tables_of(self.tables)))

    def expected_of_steps(self) -> Counter[tuple[Any, ...]]:
        """What the oracle says is decided when the steps have arrived one by one, and more may come."""
        final = oracle.final(self.join, self.admission)
        rows = {name: [{c: row[c] for c in row if c != "#"} for row in final[name]] for name in self.streams}
        return multiset(oracle.result(self.join, rows))

    def expected_at_close(self) -> Counter[tuple[Any, ...]]:
        """The oracle's result when the steps have arrived one by one, and no more will come."""
        return multiset(oracle.result(self.join, tables_of(self.admitted)))

    def counted(self, rng: random.Random) -> Case:
        """The same case with count windows, for one stream or both, and a column that orders ties."""
        numbers = {name: rng.sample(range(len(table)), len(table)) for name, table in self.tables.items()}
        tables = {n: t.append_column("turn", pa.array(numbers[n], pa.int64())) for n, t in self.tables.items()}
        steps, start = [], dict.fromkeys(self.streams, 0)
        for step in self.steps:
            steps.append({name: tables[name].slice(start[name], len(table)) for name, table in step.items()})
            for name, table in step.items():
                start[name] += len(table)
        asked = self.kwargs["window"]
        windows = dict(asked) if isinstance(asked, dict) else dict.fromkeys(self.streams, asked)
        for name in rng.choice((self.streams, self.streams[:1], self.streams[1:])):
            rows = rng.randint(1, 12)
            windows[name] = rng.choice((f"{rows} rows", CountWindow(rows)))
        sequence = rng.choice(("turn", dict.fromkeys(self.streams, "turn")))
        kwargs = {**self.kwargs, "window": windows, "sequence": sequence}
        return replace(self, kwargs=kwargs, tables=tables, steps=steps, origin=f"{self.origin}.counted(…)")

    def features(self) -> set[str]:
        """What this case covers, measured on its bounded tables (and, for lateness and steps, on its steps)."""
        return measure(self)


def cases(*, for_spark: bool = False, shapes: tuple[Shape, ...] = SHAPES) -> st.SearchStrategy[Case]:
    """Random cases by seed and shape."""
    return st.builds(
        lambda seed, shape: Case.of(seed, for_spark=for_spark, shape=shape),
        st.integers(0, 2**32 - 1),
        st.sampled_from(shapes),
    )


def shrinking_cases(*, for_spark: bool = False, shapes: tuple[Shape, ...] = SHAPES) -> st.SearchStrategy[Case]:
    """Random cases of which Hypothesis makes every choice, so that it can shrink them."""
    return st.builds(
        lambda rng, shape: Case.random(rng, for_spark=for_spark, shape=shape),
        st.randoms(use_true_random=False),
        st.sampled_from(shapes),
    )


def smallest(case: Case, fails: Callable[[Case], bool]) -> Case:
    """A case with as few rows and steps as one can take away from it so that it still fails."""
    sizes = [len(table) for step in case.steps for table in step.values()]
    cut = max(sizes, default=0)
    while cut:
        for at, step in enumerate(case.steps):
            for name in step:
                start = 0
                while start < len(case.steps[at][name]):
                    shorter = _without(case, at, name, start, cut)
                    if fails(shorter):
                        case = shorter
                    else:
                        start += cut
        cut //= 2
    steps = [step for step in case.steps if any(len(table) for table in step.values())]
    fewer = replace(case, steps=steps)
    return fewer if fails(fewer) else case


def _without(case: Case, at: int, name: str, start: int, count: int) -> Case:
    """The case without some rows of one stream in one step."""
    steps = [dict(step) for step in case.steps]
    table = steps[at][name]
    steps[at][name] = pa.concat_tables([table.slice(0, start), table.slice(start + count)])
    arrived = {n: pa.concat_tables([case.tables[n].slice(0, 0), *(s[n] for s in steps if n in s)]) for n in case.tables}
    return replace(case, steps=steps, tables=arrived)


class _Maker:
    """Draws one case."""

    def __init__(self, rng: random.Random, for_spark: bool, shape: Shape) -> None:
        self.rng = rng
        self.shape = shape
        self.draw = _Draw.random(rng, for_spark)

    def case(self) -> Case:
        rng, draw = self.rng, self.draw
        streams = rng.choice((("r", "s"), ("r", "s"), ("trades", "quotes"), ("Left", "b_2")))
        columns = [self._columns(stream) for stream in (R, S)]
        tables = [self._table(columns[stream], self._size()) for stream in (R, S)]
        one_time = columns[R]["time"][0] == columns[S]["time"][0]
        times = [columns[stream]["time"][0] for stream in (R, S)]
        kwargs = {
            "on": self._predicate(streams, columns),
            "window": self._windows(streams),
            "time": times[0] if one_time else dict(zip(streams, times, strict=True)),
        }
        lags, jitters = self._lags()
        steps, tables = self._arrive(tables, times, jitters)
        lateness: str | dict[str, str] = {
            name: f"{lag} {TICKS[draw.tick]}" for name, lag in zip(streams, lags, strict=True)
        }
        if lags[0] == lags[1] and rng.random() < 0.5:
            lateness = lateness[streams[0]]
        named = [{streams[i]: table for i, table in step.items()} for step in steps]
        return Case(
            self.shape,
            streams,
            kwargs,
            lateness,
            dict(zip(streams, tables, strict=True)),
            named,
            cores=rng.randint(1, 5),
        )

    def _columns(self, stream: int) -> dict[str, tuple[str, str, pa.DataType]]:
        """Role → name, kind, Arrow type, in the order of the schema."""
        rng = self.rng
        kinds = {role: kind for role, (owner, kind) in self.shape.roles.items() if owner == stream}
        kinds |= {"time": "moment"}
        kinds |= {f"payload{i}": rng.choice(PAYLOADS) for i in range(rng.choice((0, 0, 1, 2, 3)))}
        roles = list(kinds)
        if rng.random() < 0.5:
            rng.shuffle(roles)
        plain = rng.random() < 0.6
        names: dict[str, str] = {}
        for role in roles:
            name = ("ts" if role == "time" else role) if plain else self._name(names)
            names[role] = name
        return {role: (names[role], kinds[role], self.draw.arrow_type(kinds[role])) for role in roles}

    def _name(self, taken: dict[str, str]) -> str:
        while True:
            name = self.rng.choice(("price", "Volume", "k_1", "zone", "x9", "select", "my col")) + self.rng.choice(
                ("", "", *string.digits)
            )
            if name.lower() not in [other.lower() for other in taken.values()]:
                return name

    def _size(self) -> int:
        rng = self.rng
        return rng.choice((rng.randrange(1, 5), *(rng.randrange(15, MAX_ROWS + 1) for _ in range(12)), 0))

    def _table(self, columns: dict[str, tuple[str, str, pa.DataType]], size: int) -> pa.Table:
        lost_times = 0.05 if self.rng.random() < 0.15 else 0.0
        arrays = {}
        for role, (name, kind, type_) in columns.items():
            if role == "time":
                values: list[Any] = [
                    None if self.rng.random() < lost_times else self.draw.moment() for _ in range(size)
                ]
            else:
                values = [self.draw.value(kind) for _ in range(size)]
            arrays[name] = self._array(values, kind, type_)
        return pa.table(arrays)

    def _array(self, values: list[Any], kind: str, type_: pa.DataType) -> pa.Array:
        if kind == "moment":
            scale: Callable[[int], int] = {
                "ns": lambda t: t * 1_000 + self.rng.randrange(1_000),
                "us": lambda t: t,
                "ms": lambda t: t // 1_000,
                "s": lambda t: t // 1_000_000,
            }[type_.unit]
            return pa.array([None if t is None else scale(t) for t in values], pa.int64()).cast(type_)
        if kind == "decimal":
            return pa.array(values, pa.string()).cast(type_)
        if pa.types.is_dictionary(type_):
            return pa.array(values, pa.string()).cast(type_)
        return pa.array(values, type_)

    def _predicate(self, streams: tuple[str, str], columns: list[dict[str, tuple[str, str, pa.DataType]]]) -> str:
        rng = self.rng
        texts: dict[str, str] = {}
        every = [name.lower() for by_role in columns for name, _, _ in by_role.values()]

        def write(stream: int, role: str) -> str:
            name = columns[stream][role][0]
            text = name if name.isidentifier() and name != "select" else f"`{name}`"
            if every.count(name.lower()) == 1 and rng.random() < 0.1:
                return text
            if rng.random() < 0.1:
                return f"{streams[stream].upper()}.{text.upper()}"
            return f"{streams[stream]}.{text}"

        for role, (stream, _) in self.shape.roles.items():
            texts[role] = write(stream, role)
        texts |= {"rt": write(R, "time"), "st": write(S, "time")}
        texts |= {hole: self.draw.constant(kind) for hole, kind in self.shape.constants.items()}
        return self.shape.on.format(**texts)

    def _windows(self, streams: tuple[str, str]) -> Any:
        rng, draw = self.rng, self.draw

        def window() -> Any:
            ticks = rng.choice((rng.randrange(1, draw.span // 2 + 1), rng.randrange(1, draw.span // 2 + 1), draw.span))
            if rng.random() < 0.2:
                return timedelta(microseconds=ticks * draw.tick)
            return f"{ticks} {TICKS[draw.tick]}"

        return window() if rng.random() < 0.4 else {name: window() for name in streams}

    def _lags(self) -> tuple[list[int], list[int]]:
        """Each stream's lateness in ticks, and how far its rows really are out of order."""
        rng, span = self.rng, self.draw.span
        lags = [rng.choice((0, rng.randrange(1, span // 2 + 1), rng.randrange(1, span // 2 + 1))) for _ in (R, S)]
        if rng.random() < 0.2:
            return [lag // 4 for lag in lags], [max(2, span // 2)] * 2
        return lags, [lag if rng.random() < 0.8 else 0 for lag in lags]

    def _arrive(
        self, tables: list[pa.Table], times: list[str], jitters: list[int]
    ) -> tuple[list[dict[int, pa.Table]], list[pa.Table]]:
        """The steps in which the rows arrive: in the order of time plus a jitter, so none lags by more than that."""
        rng, tick = self.rng, self.draw.tick
        arrivals = []
        for stream, table in enumerate(tables):
            for row, time in enumerate(
                table[times[stream]].cast(pa.timestamp("us"), safe=False).cast(pa.int64()).to_pylist()
            ):
                moment = self.draw.moment() if time is None else time
                arrivals.append((moment + rng.randint(0, jitters[stream]) * tick, rng.random(), stream, row))
        arrivals.sort()
        order: list[list[int]] = [[row for _, _, origin, row in arrivals if origin == stream] for stream in (R, S)]
        arrived = [table.take(pa.array(rows, pa.int64())) for table, rows in zip(tables, order, strict=True)]
        cuts = sorted(rng.randrange(len(arrivals) + 1) for _ in range(rng.choice((0, 1, 2, 3, 5))))
        steps: list[dict[int, pa.Table]] = []
        done = [0, 0]
        for low, high in zip([0, *cuts], [*cuts, len(arrivals)], strict=True):
            step: dict[int, pa.Table] = {}
            for stream in (R, S):
                count = sum(1 for arrival in arrivals[low:high] if arrival[2] == stream)
                if count or rng.random() < 0.5:
                    step[stream] = arrived[stream].slice(done[stream], count)
                done[stream] += count
            if len(step) == 2 and rng.random() < 0.2:
                steps += [{stream: step[stream]} for stream in rng.sample((R, S), 2)]
            else:
                steps.append(step)
        return steps, arrived


# --- what a case covers ---------------------------------------------------------------------------------------------


def measure(case: Case) -> set[str]:
    """The facts about a case: see the names below."""
    join = case.join
    rows = [rows_of(case.tables[name]) for name in case.streams]
    stamps = oracle.stamp(join, tables_of(case.tables))
    predicate = oracle.compile(join.predicate)
    windows = [stream.window for stream in case.spec.streams]
    found: set[str] = set()
    for i, r in enumerate(stamps[R]):
        for j, s in enumerate(stamps[S]):
            if r is None or s is None:
                continue
            try:
                truth = predicate((rows[R][i], rows[S][j])) is True
            except oracle.Refused:
                found.add("refused arithmetic")
                truth = False
            first = r.rank < s.rank
            held = oracle.holds(windows[R], r, s, stream=R) if first else oracle.holds(windows[S], s, r, stream=S)
            found.add(
                {(True, True): "matches", (False, True): "non-matches", (True, False): "expiry"}.get(
                    (truth, held), "far"
                )
            )
            if r.time == s.time:
                found.add("ties")
    named = [(node.stream, node.name) for node in walk(join.predicate) if isinstance(node, Column)]
    values = [row[name] for stream, name in named for row in rows[stream]]
    if None in values:
        found.add("nulls")
    if any(isinstance(value, float) and (not math.isfinite(value) or str(value) == "-0.0") for value in values):
        found.add("special floats")
    if any(isinstance(node, Literal) for node in walk(join.predicate)):
        found.add("constants")
    for name, time in zip(case.streams, join.times, strict=True):
        seen = [row[time] for row in rows[case.streams.index(name)] if row[time] is not None]
        if any(earlier > later for earlier, later in pairwise(seen)):
            found.add("disorder")
    if any(case.admission.late.values()):
        found.add("late")
    if any(case.admission.rejected.values()):
        found.add("rejected")
    if len(case.steps) > 1:
        found.add("several steps")
    if any(sum(len(table) > 0 for table in step.values()) == 1 for step in case.steps):
        found.add("a step of one stream")
    if any(not any(len(table) for table in step.values()) for step in case.steps):
        found.add("an empty step")
    return found
