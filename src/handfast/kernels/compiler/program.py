"""A predicate taken apart for the kernels: columns derived once per tuple, and the condition left for each pair.

Whatever depends on one stream alone is computed once per tuple, not once per pair, and exactly as written.
"""

from __future__ import annotations

from dataclasses import dataclass

from handfast.kernels.compiler.operators import is_native_throughout
from handfast.spec.expression import Call, Column, Expr, Literal, Op, conjunction, conjuncts, rewrite, streams_of, walk
from handfast.spec.meaning import SAFE
from handfast.spec.types import Kind

_SAFE = SAFE | {
    *(Op.AND, Op.OR, Op.NOT, Op.EQ, Op.LT, Op.LE, Op.SAME, Op.IS_NULL),
    *(Op.CASE, Op.COALESCE, Op.GREATEST, Op.LEAST, Op.CODE),
}


@dataclass(frozen=True, slots=True)
class Slot:
    """What a kernel must know of an input: not how it is computed, so that one kernel serves any constants in it."""

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
        return Slot(self.column, any(may_fail(node) for node in walk(self.source)))


@dataclass(frozen=True, slots=True)
class Program:
    """The inputs by stream, and the condition of a pair over them.

    `filters` are conditions that no kernel can compute. The whole is true where the condition and every filter are: so
    they are left for the pairs that the kernels find.
    """

    inputs: tuple[tuple[Input, ...], ...]
    condition: Expr
    filters: tuple[Expr, ...] = ()

    @property
    def trees(self) -> tuple[Expr, ...]:
        """Everything that is computed: the derived columns and the condition."""
        return (*(known.source for own in self.inputs for known in own), self.condition, *self.filters)

    @property
    def slots(self) -> tuple[tuple[Slot, ...], ...]:
        """The inputs as kernels see them."""
        return tuple(tuple(known.slot for known in own) for own in self.inputs)

    def position(self, expr: Expr) -> int:
        """Where `expr`, a condition's part over one stream, stands among that stream's inputs."""
        (stream,) = streams_of(expr)
        return next(i for i, known in enumerate(self.inputs[stream]) if known.source == expr)

    def column(self, expr: Expr) -> Column:
        """The column that `expr`, a condition's part over one stream, is computed as."""
        (stream,) = streams_of(expr)
        return self.inputs[stream][self.position(expr)].column


def make_program(predicate: Expr, keys: list[Expr], streams: int) -> Program:
    """Split a predicate; `keys` are further expressions over one stream each that an index needs."""
    inputs: list[list[Input]] = [[] for _ in range(streams)]
    taken = {node.name for tree in (predicate, *keys) for node in walk(tree) if isinstance(node, Column)}

    some_stream = min(streams_of(predicate), default=0)

    def place(expr: Expr) -> Column:
        stream = next(iter(streams_of(expr)), some_stream)
        for known in inputs[stream]:
            if known.source == expr:
                return known.column
        name = expr.name if isinstance(expr, Column) else _free_name(len(inputs[stream]), taken)
        column = Column(stream, name, expr.type)
        inputs[stream].append(Input(column, expr))
        return column

    def hoist(expr: Expr) -> Expr | None:
        if isinstance(expr, Literal) or len(streams_of(expr)) > 1:
            return None
        # what is made of constants alone is a constant of the kernel, or else a column
        return place(expr) if streams_of(expr) or not is_native_throughout(expr) else None

    condition = rewrite(predicate, hoist)
    for key in keys:
        place(key)
    parts = conjuncts(condition)
    native = [part for part in parts if is_native_throughout(part)]
    if len(native) < len(parts):
        condition = conjunction(native)
    filters = tuple(part for part in parts if not is_native_throughout(part))
    return Program(tuple(tuple(own) for own in inputs), condition, filters)


def _free_name(number: int, taken: set[str]) -> str:
    """A name for a derived column that no column of the user's has."""
    name = f"#{number}"
    while name in taken:
        name = "#" + name
    return name


def may_fail(node: Expr) -> bool:
    """Whether computing this node can fail, its arguments aside."""
    if not isinstance(node, Call) or node.op in _SAFE:
        return False
    exact = node.op in (Op.ADD, Op.SUB, Op.NEG, Op.ABS) and node.type.kind in (Kind.DECIMAL, Kind.DATE)
    return not exact and (node.op in (Op.DIV, Op.MOD) or not node.type.is_floating)
