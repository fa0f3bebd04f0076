"""Seeded workloads: endless streams `r` and `s` whose every row is a function of seed, stream and row number alone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any, ClassVar, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from numpy.random import Philox

from handfast.errors import SpecError
from handfast.spec.schema import nearest
from handfast.spec.window import parse_duration

STREAMS = ("r", "s")
MAX_ROWS = 1 << 42  # keeps `row * 1_000_000` inside int64
MAX_TABLE = 1 << 26  # rows at a time: keeps the offsets of 20 letters a row inside int32

_SECOND = 1_000_000  # in microseconds, the unit of every time here
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_LETTERS = np.array([ord("a") + octet * 26 // 256 for octet in range(256)], dtype=np.uint8)
_TIME_LANE, _DELAY_LANE, _FIRST_LANE = 0, 1, 2

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Draw:
    """The randomness of rows [`start`, `stop`) of one stream, in independent lanes, one per use.

    Raw words of a counter-based generator: any row is reached at once, and no later numpy changes the numbers
    (the methods of `numpy.random.Generator` give no such promise).
    """

    seed: int
    stream: str
    start: int
    stop: int

    @property
    def rows(self) -> Ints:
        """The row numbers."""
        return np.arange(self.start, self.stop, dtype=np.int64)

    def words(self, lane: int, *, per_row: int = 1) -> npt.NDArray[np.uint64]:
        """`per_row` random words for each row, all rows' in one line."""
        first, last = self.start * per_row, self.stop * per_row
        block, within = divmod(first, 4)  # Philox yields four words for each value of its counter
        key = np.array([self.seed, STREAMS.index(self.stream) << 32 | lane], dtype=np.uint64)
        words: npt.NDArray[np.uint64] = Philox(key=key, counter=block).random_raw(last - 4 * block)
        return words[within:]

    def unit(self, lane: int) -> Floats:
        """A real number in [0, 1) for each row."""
        return (self.words(lane) >> np.uint64(11)).astype(np.float64) * 2.0**-53

    def below(self, lane: int, limit: int | Ints) -> Ints:
        """A whole number in [0, `limit`) for each row; 0 where the limit is 0."""
        return (self.unit(lane) * limit).astype(np.int64)

    def text(self, lane: int, *, length: int) -> pa.StringArray:
        """A text of `length` lower-case letters for each row."""
        per_row = -(-length // 8)
        octets = self.words(lane, per_row=per_row).astype("<u8").view(np.uint8).reshape(-1, 8 * per_row)[:, :length]
        letters = _LETTERS[octets]
        offsets = np.arange(len(letters) + 1, dtype=np.int32) * length
        return pa.StringArray.from_buffers(len(letters), pa.py_buffer(offsets), pa.py_buffer(letters))


class Kind(Protocol):
    """What the rows of a workload hold besides `id` and `ts`, and how the two streams are joined."""

    name: ClassVar[str]

    @property
    def on(self) -> str:
        """The predicate, in SQL over streams r and s."""

    @property
    def match_rate(self) -> float:
        """The chance that the predicate is true for a row of r and a row of s, windows aside."""

    def fields(self, stream: str) -> list[pa.Field]:
        """The columns of `stream`."""

    def columns(self, draw: Draw) -> list[pa.Array]:
        """The values of those columns for the rows of `draw`."""


@dataclass(frozen=True, slots=True)
class CellJoin:
    """CellJoin's band join in two dimensions over uniform values of 1..`domain` [HSJ §5.2].

    The hit rate at 10,000 is close to the paper's 1:250,000; `match_rate` counts both ends of BETWEEN and the borders.
    """

    name: ClassVar[str] = "celljoin"
    BAND: ClassVar[int] = 10

    domain: int = 10_000

    def __post_init__(self) -> None:
        _check_whole("domain", self.domain, 1, 1_000_000_000)  # `s.a + 10` stays inside an int32

    @property
    def on(self) -> str:
        band = self.BAND
        return f"r.x BETWEEN s.a - {band} AND s.a + {band} AND r.y BETWEEN s.b - {band}. AND s.b + {band}."

    @property
    def match_rate(self) -> float:
        values, span = self.domain, self.domain - 1
        band = min(self.BAND, span)
        whole = (values * (2 * band + 1) - band * (band + 1)) / values**2
        real = 1 - (1 - band / span) ** 2 if span else 1.0
        return whole * real

    def fields(self, stream: str) -> list[pa.Field]:
        if stream == "r":
            return [pa.field("x", pa.int32()), pa.field("y", pa.float32()), pa.field("z", pa.string())]
        return [
            pa.field("a", pa.int32()),
            pa.field("b", pa.float32()),
            pa.field("c", pa.float64()),
            pa.field("d", pa.bool_()),
        ]

    def columns(self, draw: Draw) -> list[pa.Array]:
        lane = _FIRST_LANE
        whole = (1 + draw.below(lane, self.domain)).astype(np.int32)
        real = (1 + draw.unit(lane + 1) * (self.domain - 1)).astype(np.float32)
        if draw.stream == "r":
            return [pa.array(whole), pa.array(real), draw.text(lane + 2, length=20)]
        double = 1 + draw.unit(lane + 2) * (self.domain - 1)
        coin = draw.below(lane + 3, 2) == 1
        return [pa.array(whole), pa.array(real), pa.array(double), pa.array(coin)]


@dataclass(frozen=True, slots=True)
class Equality:
    """Equal keys: a row of r and a row of s have the same key with a chance of exactly `match_rate`.

    A row is a stranger, whose negative key no other row has, or has one of `1 / match_rate` (rounded down) common keys;
    strangers are as many as the rounding asks for: none if `1 / match_rate` is whole.
    """

    name: ClassVar[str] = "equality"

    match_rate: float = 0.001

    def __post_init__(self) -> None:
        _check_real("match_rate", self.match_rate, 1e-12, 1.0)

    @property
    def on(self) -> str:
        return "r.key = s.key"

    @property
    def keys(self) -> int:
        """The number of common keys."""
        return int(1 / self.match_rate * (1 + 1e-12))

    def fields(self, stream: str) -> list[pa.Field]:
        return [pa.field("key", pa.int64())]

    def columns(self, draw: Draw) -> list[pa.Array]:
        common = draw.unit(_FIRST_LANE) < (self.match_rate * self.keys) ** 0.5
        strangers = -1 - 2 * draw.rows - STREAMS.index(draw.stream)
        return [pa.array(np.where(common, 1 + draw.below(_FIRST_LANE + 1, self.keys), strangers))]


@dataclass(frozen=True, slots=True)
class Zipf:
    """Equal keys of unequal weight: key `k` of 1..`keys` comes with a chance proportional to `1 / k**exponent`."""

    name: ClassVar[str] = "zipf"

    keys: int = 1_000
    exponent: float = 1.0

    def __post_init__(self) -> None:
        _check_whole("keys", self.keys, 1, 10_000_000)
        _check_real("exponent", self.exponent, 0.0, 20.0)

    @property
    def on(self) -> str:
        return "r.key = s.key"

    @property
    def match_rate(self) -> float:
        return float((np.diff(_zipf(self.keys, self.exponent), prepend=0.0) ** 2).sum())

    def fields(self, stream: str) -> list[pa.Field]:
        return [pa.field("key", pa.int64())]

    def columns(self, draw: Draw) -> list[pa.Array]:
        ranks = np.searchsorted(_zipf(self.keys, self.exponent), draw.unit(_FIRST_LANE), side="right")
        return [pa.array(1 + ranks.astype(np.int64))]


@lru_cache(maxsize=8)
def _zipf(keys: int, exponent: float) -> Floats:
    """The chance of a key of at most 1, 2, … `keys`."""
    sums = np.cumsum(np.arange(1, keys + 1, dtype=np.float64) ** -exponent)
    chances: Floats = sums / sums[-1]
    chances.flags.writeable = False  # every workload of these parameters shares it
    return chances


KINDS: dict[str, type[CellJoin | Equality | Zipf]] = {k.name: k for k in (CellJoin, Equality, Zipf)}


@dataclass(frozen=True, slots=True)
class Workload:
    """Two endless streams of one kind: `rate` rows a second each, from `start` on, at most `disorder` out of order.

    Row `n` has `id` n and a random `ts` in the n-th part of time, each part 1/`rate` seconds long. Rows arrive in the
    order of `ts` plus a random delay of at most `disorder`: so no row arrives after another that is more than
    `disorder` younger, and `lateness=workload.disorder` admits every row.
    """

    kind: Kind = field(default_factory=CellJoin)
    seed: int = 0
    rate: int = 1_000
    start: datetime = datetime(2020, 1, 1, tzinfo=UTC)
    disorder: timedelta = timedelta(0)

    def __post_init__(self) -> None:
        _check_whole("seed", self.seed, 0, 2**64 - 1)
        _check_whole("rate", self.rate, 1, 1_000_000_000)
        if not isinstance(self.start, datetime) or self.start.tzinfo is None:
            raise SpecError(f"A workload's start must be a datetime with a time zone, not '{self.start}'; add '+00:00'")
        if not isinstance(self.disorder, timedelta) or not timedelta(0) <= self.disorder <= timedelta(days=366):
            raise SpecError(f"A workload's disorder must be a timedelta of 0 to 366 days, not '{self.disorder}'")

    @classmethod
    def named(cls, name: str, **parameters: object) -> Workload:
        """Make a workload of the kind called `name`; parameters may be text, as options and files have them."""
        names = cls.parameters(name)
        for parameter in parameters:
            if parameter not in names:
                raise SpecError(f"Workload {name!r} has no parameter {parameter!r}{did_you_mean(parameter, names)}")
        values: dict[str, Any] = {key: _read(key, value) for key, value in parameters.items()}
        own = {f.name: values.pop(f.name) for f in fields(KINDS[name]) if f.name in values}
        return cls(KINDS[name](**own), **values)

    @classmethod
    def parameters(cls, name: str) -> tuple[str, ...]:
        """The parameters of the kind called `name`: its own, then those of every workload."""
        if name not in KINDS:
            raise SpecError(f"No workload is called {name!r}{did_you_mean(name, tuple(KINDS))}")
        return tuple(f.name for f in (*fields(KINDS[name]), *fields(cls)) if f.name != "kind")

    @property
    def name(self) -> str:
        """The name of its kind."""
        return self.kind.name

    @property
    def on(self) -> str:
        """The predicate of its kind, in SQL over streams r and s."""
        return self.kind.on

    @property
    def match_rate(self) -> float:
        """The chance that the predicate is true for a row of r and a row of s, windows aside."""
        return self.kind.match_rate

    def schema(self, stream: str) -> pa.Schema:
        """The columns of `stream`: `id`, `ts` and its kind's."""
        check_stream(stream)
        return pa.schema(
            [pa.field("id", pa.int64()), pa.field("ts", pa.timestamp("us", tz="UTC")), *self.kind.fields(stream)]
        )

    def table(self, stream: str, start: int, stop: int) -> pa.Table:
        """The rows that arrive as number `start` up to, not including, `stop`."""
        schema = self.schema(stream)
        if not 0 <= start <= stop <= MAX_ROWS:
            raise SpecError(f"Rows are numbered upwards from 0 to {MAX_ROWS:,}; there are none from {start} to {stop}")
        # Times rise with row numbers and a delay is at most `bound`. So by the slots of time alone every row before
        # `first` arrives before `start`, and every row from `last` on arrives after all before `stop`.
        bound = self.disorder // _MICROSECOND
        first = max(0, (self._slot(start) - bound) * self.rate // _SECOND) if bound else start
        last = -(-(self._slot(stop) + bound) * self.rate // _SECOND) if bound else stop
        if last - first > MAX_TABLE:
            raise SpecError(
                f"Rows {start} to {stop} take {last - first:,} rows to generate, at a disorder of {self.disorder}; "
                f"the most is {MAX_TABLE:,}; ask for fewer at a time, or a lower rate or disorder"
            )
        draw = Draw(self.seed, stream, first, last)
        table = self._in_order(schema, draw)
        if not bound:
            return table
        arrival = np.argsort(self._times(draw) + draw.below(_DELAY_LANE, bound + 1), kind="stable")
        return table.take(pa.array(arrival[start - first : stop - first]))

    def _in_order(self, schema: pa.Schema, draw: Draw) -> pa.Table:
        """The rows of `draw` in the order of their times."""
        times = pa.array(self._times(draw)).cast(schema.field("ts").type)
        return pa.Table.from_arrays([pa.array(draw.rows), times, *self.kind.columns(draw)], schema=schema)

    def _times(self, draw: Draw) -> Ints:
        """The times of the rows of `draw`, in microseconds since 1970."""
        slots: Ints = np.arange(draw.start, draw.stop + 1, dtype=np.int64) * _SECOND // self.rate
        origin = (self.start - _EPOCH) // _MICROSECOND
        return origin + slots[:-1] + draw.below(_TIME_LANE, np.diff(slots))

    def _slot(self, row: int) -> int:
        """Where the part of time of `row` begins, counted from the start."""
        return row * _SECOND // self.rate


def check_stream(stream: str) -> None:
    """Refuse a name that is no stream of a workload."""
    if stream not in STREAMS:
        raise SpecError(f"A workload has the streams r and s, not {stream!r}")


def _check_whole(name: str, value: int, low: int, high: int) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
        raise SpecError(f"A workload's {name} must be a whole number from {low:,} to {high:,}, not {value!r}")


def _check_real(name: str, value: float, low: float, high: float) -> None:
    if not isinstance(value, (int, float)) or isinstance(value, bool) or not low <= value <= high:
        raise SpecError(f"A workload's {name} must be a number from {low:g} to {high:g}, not {value!r}")


def _read(name: str, value: object) -> object:
    """The value of a parameter that may be text; anything else is left to the value's own check."""
    if not isinstance(value, str):
        return value
    if name == "disorder":
        return timedelta(microseconds=parse_duration(value, what="A workload's disorder"))
    read, what = _FORMS.get(name, (int, "a whole number"))
    try:
        return read(value)
    except ValueError:
        raise SpecError(f"A workload's {name} must be {what}, not {value!r}") from None


_FORMS: dict[str, tuple[Callable[[str], object], str]] = {
    "match_rate": (float, "a number"),
    "exponent": (float, "a number"),
    "start": (datetime.fromisoformat, "a time like '2020-01-01T00:00:00+00:00'"),
}


def did_you_mean(name: str, names: tuple[str, ...]) -> str:
    """The way out of a wrong name: the nearest right one, if one is near, and all of them."""
    near = nearest(name, names)
    return (f"; did you mean {near!r}?" if near else "") + f" (there are {', '.join(names)})"
