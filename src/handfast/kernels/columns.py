"""A run of tuples as the kernels read it: arrays of values, of statuses (NULL, error) and of times."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from handfast.errors import EngineError
from handfast.flow.block import Block, Seen
from handfast.flow.time import days, micros
from handfast.kernels.compiler.program import Program
from handfast.kernels.compute import Computation
from handfast.kernels.course import Courses
from handfast.kernels.strings import StringTable, as_text
from handfast.kernels.values import Array, Data, Status, dtype, literal_buffer
from handfast.spec.expression import Column, Literal, walk
from handfast.spec.types import Kind, Type


@dataclass(slots=True)
class Columns:
    """Values and statuses by input, and stamps, of `len(times)` tuples of one stream.

    For the filters of pairs, `codes` are the values with strings as codes of `strings`. `courses` tells how the stamps
    run, where that is known.
    """

    values: list[Array]
    statuses: list[Status | None]
    times: NDArray[np.int64]
    seen: Seen = ()
    codes: list[Array] = field(default_factory=list)
    strings: StringTable | None = None
    courses: Courses | None = None

    def __len__(self) -> int:
        return len(self.times)

    def take(self, rows: NDArray[np.int64] | slice) -> Columns:
        """The tuples at these places; those of a slice are seen in place."""
        statuses = [status[rows] if status is not None else None for status in self.statuses]
        seen = tuple(own[rows] for own in self.seen)
        return Columns([value[rows] for value in self.values], statuses, self.times[rows], seen)

    @property
    def stamps(self) -> Columns:
        """The tuples without their values."""
        return Columns([], [], self.times, self.seen)

    def before(self, stop: int) -> Columns:
        """The tuples before a position, seen in place."""
        statuses = [status[:stop] if status is not None else None for status in self.statuses]
        courses = self.courses.before(stop) if self.courses is not None else None
        seen = tuple(own[:stop] for own in self.seen)
        return Columns([value[:stop] for value in self.values], statuses, self.times[:stop], seen, courses=courses)

    def padded(self, count: int) -> Columns:
        """At least so many tuples: vectors read beyond the last; what is added has no meaning."""
        missing = count - len(self)
        if missing <= 0:
            return self
        values = [np.concatenate([value, np.zeros(missing, value.dtype)]) for value in self.values]
        known = np.zeros(missing, np.uint8)
        statuses = [np.concatenate([own, known]) if own is not None else None for own in self.statuses]
        times, *seen = (np.concatenate([own, np.zeros(missing, np.int64)]) for own in (self.times, *self.seen))
        return Columns(values, statuses, times, tuple(seen))

    @property
    def nullable(self) -> bool:
        return any(status is not None for status in self.statuses)


class Reading:
    """How the inputs of a program are read: what all its readers share."""

    def __init__(self, program: Program, *, ordered_strings: bool, needs_ordinals: bool = False) -> None:
        self.program = program
        self.ordered = ordered_strings
        self.needs_ordinals = needs_ordinals  # kernels may get by without, and filters not
        self.derived = [Computation([known.source for known in own]) for own in program.inputs]
        nodes = (node for tree in program.trees for node in walk(tree) if isinstance(node, Literal))
        self.texts = [as_text(node.value) for node in nodes if isinstance(node.value, str | bytes)]


class ColumnReader:
    """Reads the inputs of each stream's tuples from Arrow: decodes columns, computes the derived ones."""

    def __init__(self, reading: Reading, strings: StringTable) -> None:
        self._program = reading.program
        self._strings = strings
        self._ordered = reading.ordered
        self._needs_ordinals = reading.needs_ordinals
        self._derived = reading.derived
        # at the start, so that no literal is added later and moves the ordinals of strings already read
        for text in reading.texts:
            strings.code(text)

    def read(self, stream: int, block: Block) -> Columns:
        """The columns of a block. Strings are codes: `ordered` turns them into ordinals where order matters."""
        computation, batch = self._derived[stream], block.batch
        sources = {column: self._decode(batch.column(column.name), column.type) for column in computation.sources}
        data = computation.run(sources, self._strings, len(batch))
        return Columns([value for value, _ in data], [status for _, status in data], block.times, block.seen)

    def ordered(self, columns: Sequence[Column], values: list[Array]) -> list[Array]:
        """The columns with strings as ordinals, if the predicate compares their order."""
        if not self._ordered:
            return values
        ordinals = self._strings.ordinals()
        return [
            ordinals[value] if column.type.is_text and len(value) else value
            for column, value in zip(columns, values, strict=True)
        ]

    def settle(self) -> None:
        """Give every string its ordinal now, so that until the next block is read threads only look them up."""
        if self._needs_ordinals:
            self._strings.ordinals()

    @property
    def reads_in_place(self) -> bool:
        """Whether the pair kernels need the columns as they are, so that nothing is made of them for a pair."""
        return not self._ordered and not self._program.filters

    def for_pairs(self, stream: int, columns: Columns) -> Columns:
        """The columns as the pair kernels need them now."""
        if self.reads_in_place:
            return columns
        inputs = [known.column for known in self._program.inputs[stream]]
        ordered = self.ordered(inputs, columns.values)
        return replace(columns, values=ordered, codes=columns.values, strings=self._strings)

    def literals(self, literals: tuple[Literal, ...]) -> NDArray[np.uint8]:
        """The buffer that a kernel reads its literals from."""
        return literal_buffer(literals, self._strings, ordered=self._ordered)

    def _decode(self, column: pa.Array, type_: Type) -> Data:
        if type_.is_text and pa.types.is_dictionary(column.type) and column.dictionary.null_count:
            column = column.dictionary_decode()  # a NULL among the dictionary's own values
        status = None
        if column.null_count:
            status = column.is_null().to_numpy(zero_copy_only=False).astype(np.uint8)
        return np.ascontiguousarray(self._values(column, type_)), status

    def _values(self, column: pa.Array, type_: Type) -> Array:
        if type_.is_text:
            return self._strings.encode(column)
        if type_.is_timestamp:
            return _moments(column)
        if type_.kind is Kind.DECIMAL:
            return _decimals(column, type_)
        if type_.kind is Kind.DATE:
            return days(column).astype(dtype(type_), copy=False)
        if column.null_count:
            column = pc.fill_null(column, False if type_.kind is Kind.BOOLEAN else 0)
        values: Array = column.to_numpy(zero_copy_only=False)
        return values.astype(dtype(type_), copy=False)


def _moments(column: pa.Array) -> Array:
    """A column of timestamps in microseconds; a time that 64 bits cannot hold, after the year 292,000, is an error."""
    moments = micros(column)
    if column.type.unit in ("s", "ms") and len(moments) and int(np.abs(moments).max()) == np.iinfo(np.int64).max:
        raise EngineError(
            f"A column of type {column.type} in the predicate holds a time that is beyond every microsecond; "
            "leave such rows out, or make the time NULL"
        )
    return moments


def _decimals(column: pa.Array, type_: Type) -> Array:
    """The unscaled integers of a column of decimals: of 8 bytes where the type's digits fit, else of 16."""
    wide = column.cast(pa.decimal128(type_.precision, type_.scale))
    words = np.frombuffer(wide.buffers()[1] or b"", np.int64)[2 * wide.offset : 2 * (wide.offset + len(wide))]
    form = dtype(type_)
    return words[::2] if form.kind == "i" else words.view(form)
