"""A predicate taken apart for the kernels: columns derived once per tuple, and the condition left for each pair.

Whatever depends on one stream alone is computed once per tuple, not once per pair, and exactly as written.
"""

from __future__ import annotations

from dataclasses import dataclass

from handfast.spec.expression import Call, Column, Expr, Literal, Op, rewrite, streams_of, walk
from handfast.spec.types import Kind

_FALLIBLE = frozenset({Op.ADD, Op.SUB, Op.MUL, Op.DIV, Op.MOD, Op.NEG, Op.ABS})


@dataclass(frozen=True, slots=True)
class Slot:
    """What a kernel must know of an input: not where it comes from, so that it serves whatever constants are there."""

    column: Column
    may_fail: bool


@dataclass(frozen=True, slots=True)
class Input:
    """A column that kernels read: one of the stream's own, or an expression over them."""

    column: Column
    source: Expr

    @property
    def is_derived(self) -> bool:
        return isinstance(self.source, Call)

    @property
    def slot(self) -> Slot:
        """The input as a kernel sees it; computing it may fail, as by an overflow."""
        return Slot(self.column, any(_may_fail(node) for node in walk(self.source)))


@dataclass(frozen=True, slots=True)
class Program:
    """The inputs by stream, and the condition of a pair over them."""

    inputs: tuple[tuple[Input, ...], ...]
    condition: Expr

    @property
    def trees(self) -> tuple[Expr, ...]:
        """Everything that is computed: the derived columns and the condition."""
        return (*(known.source for own in self.inputs for known in own), self.condition)

    @property
    def slots(self) -> tuple[tuple[Slot, ...], ...]:
        """The inputs as kernels see them."""
        return tuple(tuple(known.slot for known in own) for own in self.inputs)

    def position(self, expr: Expr) -> int:
        """Where `expr`, a condition's part over one stream, stands among that stream's inputs."""
        (stream,) = streams_of(expr)
        return next(i for i, known in enumerate(self.inputs[stream]) if known.source == expr)


def make_program(predicate: Expr, keys: list[Expr], streams: int) -> Program:
    """Split a predicate; `keys` are further expressions over one stream each that an index needs."""
    inputs: list[list[Input]] = [[] for _ in range(streams)]
    taken = {node.name for tree in (predicate, *keys) for node in walk(tree) if isinstance(node, Column)}

    def place(expr: Expr) -> Column:
        (stream,) = streams_of(expr)
        for known in inputs[stream]:
            if known.source == expr:
                return known.column
        name = expr.name if isinstance(expr, Column) else _free_name(len(inputs[stream]), taken)
        column = Column(stream, name, expr.type)
        inputs[stream].append(Input(column, expr))
        return column

    def hoist(expr: Expr) -> Expr | None:
        if isinstance(expr, Literal) or len(streams_of(expr)) != 1 or expr.type.kind is Kind.DECIMAL:
            return None  # decimals are 128 bits wide: they live in registers, not in columns
        return place(expr)

    condition = rewrite(predicate, hoist)
    for key in keys:
        place(key)
    return Program(tuple(tuple(own) for own in inputs), condition)


def _free_name(number: int, taken: set[str]) -> str:
    """A name for a derived column that no column of the user's has."""
    name = f"#{number}"
    while name in taken:
        name = "#" + name
    return name


def _may_fail(node: Expr) -> bool:
    return (
        isinstance(node, Call)
        and node.op in _FALLIBLE
        and (node.op in (Op.DIV, Op.MOD) or not (node.type.is_floating or node.type.kind is Kind.DECIMAL))
    )
