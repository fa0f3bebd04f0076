"""Random values and constants of one case."""

from __future__ import annotations

import math
import random
import struct
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import pyarrow as pa

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
    "price": pa.decimal128(10, 2),
    "money": pa.decimal128(38, 18),
    "bytes": pa.binary(),
    "pattern": pa.string(),
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
PATTERNS = ("%", "_", "", "a%", "%b", "_b", "é", "%日%", "\\%", "a_b")
TICKS = {1: "microseconds", 1_000: "milliseconds", 1_000_000: "seconds", 60_000_000: "minutes", 3_600_000_000: "hours"}
BASES = (0, -1_000_000_000_000_000, 1_700_000_000_000_000, 951_782_400_000_000)
_SPECIAL_DOUBLES = (math.nan, math.inf, -math.inf, -0.0, 0.0, 1.7976931348623157e308, 5e-324)
_SPECIAL_FLOATS = (math.nan, math.inf, -math.inf, -0.0, 0.0, 3.4028234663852886e38, 1.401298464324817e-45)


@dataclass
class Draw:
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
    def random(cls, rng: random.Random, for_spark: bool) -> Draw:
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

    def _price(self) -> Decimal:
        return Decimal(self._integer()) + Decimal(self.rng.choice(("0", "0.05", "0.50", "0.99")))

    def _money(self) -> Decimal:
        return self._price() + Decimal(self.rng.choice(("0", "0", "0", "0.000000000000000005")))

    def _bytes(self) -> bytes:
        return bytes(self.rng.choice((0, 1, 127, 128, 255)) for _ in range(self.rng.randrange(3)))

    def _pattern(self) -> str:
        return self.rng.choice(PATTERNS)

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
        if kind == "pattern":
            return "'" + rng.choice(PATTERNS).replace("\\", "\\\\") + "'"
        if kind == "string":
            return f"'{rng.choice(self.words)}'"
        assert kind == "gap", kind
        return f"INTERVAL {rng.randrange(1, max(2, self.span // 3))} {TICKS[self.tick].upper()}"
