"""A predicate taken apart for the kernels: columns derived once per tuple, and the condition left for each pair.

Whatever depends on one stream alone is computed once per tuple, not once per pair, and exactly as written.
"""

from __future__ import annotations

from dataclasses import dataclass

from handfast.spec.expression import Call, Column, Expr, Literal, Op, rewrite, streams_of, walk
from handfast.spec.types import Kind

_FALLIBLE = frozenset({Op.ADD, Op.SUB, Op.MUL, Op.DIV, Op.MOD, Op.NEG, Op.ABS})


@dataclass(frozen=True, slots=True)
class Input:
    """A column that kernels read: one of the stream's own, or an expression over them."""

    column: Column
    source: Expr

    @property
    def is_derived(self) -> bool:
        return isinstance(self.source, Call)

    @property
    def may_fail(self) -> bool:
        """Whether computing it can meet an error, such as an overflow."""
        return any(_may_fail(node) for node in walk(self.source))


@dataclass(frozen=True, slots=True)
class Program:
    """The inputs by stream, and the condition of a pair over them."""

    inputs: tuple[tuple[Input, ...], ...]
    condition: Expr

    @property
    def trees(self) -> tuple[Expr, ...]:
        """Everything that is computed: the derived columns and the condition."""
        return (*(known.source for own in self.inputs for known in own), self.condition)

    def position(self, expr: Expr) -> int:
        """Where `expr`, a condition's part over one stream, stands among that stream's inputs."""
        (stream,) = streams_of(expr)
        return next(i for i, known in enumerate(self.inputs[stream]) if known.source == expr)


def make_program(predicate: Expr, keys: list[Expr], streams: int) -> Program:
    """Split a predicate; `keys` are further expressions over one stream each that an index needs."""
    inputs: list[list[Input]] = [[] for _ in range(streams)]

    def place(expr: Expr) -> Column:
        (stream,) = streams_of(expr)
        for known in inputs[stream]:
            if known.source == expr:
                return known.column
        name = expr.name if isinstance(expr, Column) else f"#{len(inputs[stream])}"
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


def _may_fail(node: Expr) -> bool:
    return (
        isinstance(node, Call)
        and node.op in _FALLIBLE
        and (node.op in (Op.DIV, Op.MOD) or not (node.type.is_floating or node.type.kind is Kind.DECIMAL))
    )
