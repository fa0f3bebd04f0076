"""The packed row, in which tuples and refused rows travel to a core: its columns, how it is made and how it is read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa

from handfast.engines.spark.core_keys import core_key
from handfast.engines.spark.rows import RefusedRows
from handfast.flow.block import Block
from handfast.flow.punctuation import Punctuation

if TYPE_CHECKING:
    import pandas as pd

TUPLES = "tuples"  # the kind of what may join; refused rows are of another


class Packed(NamedTuple):
    """One row on its way to a core. Its columns in Spark have these names, in this order.

    Attributes:
        core: The key of the core that it goes to.
        stream: The stream that its rows are of.
        kind: `TUPLES`, or why its rows were refused.
        punctuation: What the core is told of the stream; refused rows come without one.
        block: The tuples, if there are any for this core; or the refused rows.
    """

    core: int
    stream: int
    kind: str
    punctuation: bytes | None
    block: bytes | None

    @staticmethod
    def of_tuples(core: int, stream: int, punctuation: Punctuation, block: Block | None) -> Packed:
        """What a core, by its number, gets of a run of rows."""
        encoded = block.encoded if block is not None else None
        return Packed(core_key(core), stream, TUPLES, punctuation.encode(), encoded)

    @staticmethod
    def of_refused(core: int, refused: RefusedRows) -> Packed:
        """Refused rows for a core, by its number."""
        return Packed(core_key(core), refused.stream, refused.kind, None, refused.rows)

    @property
    def refused(self) -> RefusedRows | None:
        """The refused rows in it; None if it brings tuples."""
        return RefusedRows(self.kind, self.stream, self.block or b"") if self.kind != TUPLES else None


_ARROW = pa.schema(
    list(zip(Packed._fields, (pa.int64(), pa.int32(), pa.string(), pa.binary(), pa.binary()), strict=True))
)
_SPARK = {pa.int64(): "bigint", pa.int32(): "int", pa.string(): "string", pa.binary(): "binary"}

PACKED = ", ".join(f"{field.name} {_SPARK[field.type]}" for field in _ARROW)  # the schema, as Spark takes it
CORE = "core"  # the column to group by
NOW = "now"  # a column more where an idle_timeout is asked for: the batch's processing time in microseconds


def measure(row: Packed) -> tuple[int, int]:
    """How large a packed row is: one row, and its bytes."""
    return 1, len(row.block or b"")


def as_batch(rows: Sequence[Packed]) -> pa.RecordBatch:
    """Packed rows as Spark takes them from a function on Arrow batches."""
    columns = zip(zip(*rows, strict=True), _ARROW.types, strict=True)
    return pa.RecordBatch.from_arrays([pa.array(column, type_) for column, type_ in columns], schema=_ARROW)


def as_frame(rows: Sequence[Packed]) -> pd.DataFrame:
    """Packed rows as Spark takes them from a stateful operator."""
    import pandas as pd  # here: workers that only pack start faster without it

    return pd.DataFrame(rows, columns=Packed._fields)


def read_batch(batch: pa.RecordBatch) -> Iterator[Packed]:
    """The packed rows that Spark brings to a function on Arrow batches."""
    yield from _read((value.as_py() for value in batch.column(name)) for name in Packed._fields)


def read_frame(frame: pd.DataFrame) -> Iterator[Packed]:
    """The packed rows that Spark brings to a stateful operator."""
    yield from _read(frame[name] for name in Packed._fields)


def time_of(frame: pd.DataFrame) -> int:
    """The processing time that goes with packed rows; 0 where nobody asks for it."""
    return int(frame[NOW].iloc[0]) if NOW in frame else 0


def _read(columns: Iterator[Any]) -> Iterator[Packed]:
    for core, stream, kind, punctuation, block in zip(*columns, strict=True):
        yield Packed(int(core), int(stream), kind, _bytes(punctuation), _bytes(block))


def _bytes(value: Any) -> bytes | None:
    return bytes(value) if value is not None else None
