"""The types a column or an expression can have: those of Spark SQL, as far as a predicate can use them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from handfast.errors import SpecError

MAX_PRECISION = 38  # digits of a decimal; only sums on their way to a result have more
_LEAST_SCALE = 6  # digits behind the point that Spark keeps when a result has too many


class Kind(Enum):
    """A family of types; the value is Spark's name for it."""

    BOOLEAN = "boolean"
    INT8 = "tinyint"
    INT16 = "smallint"
    INT32 = "int"
    INT64 = "bigint"
    FLOAT = "float"
    DOUBLE = "double"
    DECIMAL = "decimal"
    STRING = "string"
    BINARY = "binary"
    DATE = "date"
    TIMESTAMP = "timestamp"
    TIMESTAMP_NTZ = "timestamp_ntz"
    INTERVAL = "interval day to second"
    NULL = "void"
    PAYLOAD = "payload"  # any other type: it rides along, a predicate cannot name it


_INTEGERS = (Kind.INT8, Kind.INT16, Kind.INT32, Kind.INT64)
_BITS = {Kind.INT8: 8, Kind.INT16: 16, Kind.INT32: 32, Kind.INT64: 64}
_DIGITS = {Kind.INT8: 3, Kind.INT16: 5, Kind.INT32: 10, Kind.INT64: 20}


@dataclass(frozen=True, slots=True)
class Type:
    """One type; `precision` and `scale` matter for decimals only."""

    kind: Kind
    precision: int = 0
    scale: int = 0
    label: str = ""

    def __str__(self) -> str:
        if self.kind is Kind.DECIMAL:
            return f"decimal({self.precision},{self.scale})"
        return self.label or self.kind.value

    @property
    def is_integer(self) -> bool:
        return self.kind in _INTEGERS

    @property
    def is_floating(self) -> bool:
        return self.kind in (Kind.FLOAT, Kind.DOUBLE)

    @property
    def is_numeric(self) -> bool:
        return self.is_integer or self.is_floating or self.kind is Kind.DECIMAL

    @property
    def is_timestamp(self) -> bool:
        return self.kind in (Kind.TIMESTAMP, Kind.TIMESTAMP_NTZ)

    @property
    def is_text(self) -> bool:
        """Strings and binaries: kernels know them by codes and ranks."""
        return self.kind in (Kind.STRING, Kind.BINARY)

    @property
    def bits(self) -> int:
        """The width of an integer type."""
        return _BITS[self.kind]


BOOLEAN = Type(Kind.BOOLEAN)
INT8, INT16, INT32, INT64 = (Type(kind) for kind in _INTEGERS)
FLOAT = Type(Kind.FLOAT)
DOUBLE = Type(Kind.DOUBLE)
STRING = Type(Kind.STRING)
BINARY = Type(Kind.BINARY)
DATE = Type(Kind.DATE)
TIMESTAMP = Type(Kind.TIMESTAMP)
TIMESTAMP_NTZ = Type(Kind.TIMESTAMP_NTZ)
INTERVAL = Type(Kind.INTERVAL)
NULL = Type(Kind.NULL)


def decimal(precision: int, scale: int) -> Type:
    """A decimal type of a column, a literal or a cast."""
    if not 0 <= scale <= precision <= MAX_PRECISION:
        raise SpecError(
            f"decimal({precision},{scale}) is beyond the {MAX_PRECISION} digits of Spark's decimals; "
            "write fewer digits, or a double: 0.5D"
        )
    return Type(Kind.DECIMAL, precision, scale)


def exact_decimal(whole: int, scale: int) -> Type:
    """The type of an exact intermediate value, with so many digits before and behind the point; it has no limit."""
    return Type(Kind.DECIMAL, whole + scale, scale)


def adjusted_decimal(precision: int, scale: int) -> Type:
    """The type that Spark gives a result of so many digits: what is too much is taken from behind the point."""
    if precision <= MAX_PRECISION:
        return Type(Kind.DECIMAL, precision, scale)
    kept = max(MAX_PRECISION - (precision - scale), min(scale, _LEAST_SCALE))
    return Type(Kind.DECIMAL, MAX_PRECISION, kept)


def as_decimal(type_: Type) -> Type:
    """The decimal type that holds every value of an integer or decimal type."""
    return type_ if type_.kind is Kind.DECIMAL else Type(Kind.DECIMAL, _DIGITS[type_.kind], 0)


def comparison_type(a: Type, b: Type) -> Type | None:
    """The type in which two sides are compared in Spark's ANSI mode, or None when they are not."""
    if {a.kind, b.kind} == {Kind.DATE, Kind.TIMESTAMP_NTZ}:
        return TIMESTAMP_NTZ
    return common_type(a, b)


def common_type(a: Type, b: Type) -> Type | None:
    """The type that values of two types are brought to in Spark's ANSI mode, or None when there is none."""
    if a == b:
        return a
    if a.kind is Kind.NULL or b.kind is Kind.NULL:
        return b if a.kind is Kind.NULL else a
    if not (a.is_numeric and b.is_numeric):
        return None
    if a.is_integer and b.is_integer:
        return a if a.bits >= b.bits else b
    if a.is_floating or b.is_floating:
        # float with anything but float is double, as Spark's ANSI mode has it
        return FLOAT if a.kind is Kind.FLOAT and b.kind is Kind.FLOAT else DOUBLE
    a, b = as_decimal(a), as_decimal(b)
    whole, scale = max(a.precision - a.scale, b.precision - b.scale), max(a.scale, b.scale)
    # what is too much is taken from behind the point, and rounded
    return Type(Kind.DECIMAL, min(whole + scale, MAX_PRECISION), min(scale, MAX_PRECISION - whole))
