"""Computes expressions over a run of rows: by kernels; where none can, in Python once for every distinct value."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from handfast.kernels.compiler.codegen import ERROR_STATUS, NULL_STATUS
from handfast.kernels.compiler.compile import blank, derive_kernel
from handfast.kernels.compiler.operators import is_native
from handfast.kernels.compiler.program import Slot
from handfast.kernels.strings import StringTable
from handfast.kernels.values import Array, Data, Status, address, addresses, decoded, dtype, encoded, literal_buffer
from handfast.spec.expression import Call, Column, Expr, Literal, Op, number_literals, rewrite, walk
from handfast.spec.meaning import AnsiError, Rule, rule
from handfast.spec.python_predicate import PythonPredicate


def compares_order_of_strings(tree: Expr) -> bool:
    """Whether strings are compared by order, which needs their ordinals: codes only tell whether they are equal."""
    return any(
        isinstance(node, Call) and node.op in (Op.LT, Op.LE) and node.args[0].type.is_text for node in walk(tree)
    )


def needs_ordinals(tree: Expr) -> bool:
    """Whether strings are ordered anywhere in a tree: compared, or the greatest or the least of them chosen."""
    return compares_order_of_strings(tree) or any(
        isinstance(node, Call) and node.op in (Op.GREATEST, Op.LEAST) and node.type.is_text for node in walk(tree)
    )


class Computation:
    """How some expressions are computed from columns."""

    def __init__(self, targets: Sequence[Expr]) -> None:
        named = [node for target in targets for node in walk(target) if isinstance(node, Column)]
        self.sources: tuple[Column, ...] = tuple(dict.fromkeys(named))
        self._steps: list[_Kernel | _Rule | _Choice | _Python] = []
        self._made: dict[Expr, Column] = {}
        self._count = 0
        trees = [self._with_native_calls(target) for target in targets]
        self._outputs = [tree if isinstance(tree, Column) else self._name(tree) for tree in trees]
        calls = [(out, tree) for out, tree in zip(self._outputs, trees, strict=True) if not isinstance(tree, Column)]
        if calls:
            self._steps.append(_Kernel(calls))

    def run(self, sources: Mapping[Column, Data], strings: StringTable, count: int) -> list[Data]:
        """Values and statuses of every expression; strings are codes, in what is given and in what is returned."""
        known = dict(sources)
        for step in self._steps:
            known.update(step.run(known, strings, count))
        return [known[column] for column in self._outputs]

    def _with_native_calls(self, expr: Expr) -> Expr:
        """The tree with every call that no kernel can compute replaced by a column, which an earlier step computes."""

        def replace(node: Expr) -> Expr | None:
            return self._column(node) if isinstance(node, Call) and not is_native(node) else None

        return rewrite(expr, replace)

    def _column(self, call: Call) -> Column:
        """The column of a call that no kernel can compute."""
        if call in self._made:
            return self._made[call]
        args = tuple(self._argument(arg) for arg in call.args)
        column = self._made[call] = self._name(call)
        # the constants of an IN list are part of its rule
        plain = Call(call.op, args[:1] if call.op is Op.IN else args, call.type)
        if call.function is not None:
            self._steps.append(_Python(column, args, call.function))
        elif call.op in (Op.CASE, Op.COALESCE, Op.GREATEST, Op.LEAST):
            self._steps.append(_Choice(column, plain))
        else:
            self._steps.append(_Rule(column, plain, rule(call)))
        return column

    def _argument(self, expr: Expr) -> Expr:
        """An argument of such a call: a column or a constant."""
        tree = self._with_native_calls(expr)
        if not isinstance(tree, Call):
            return tree
        column = self._name(tree)
        self._steps.append(_Kernel([(column, tree)]))
        return column

    def _name(self, expr: Expr) -> Column:
        self._count += 1
        return Column(-1, f"#{self._count}", expr.type)


class _Kernel:
    """Columns that one kernel computes."""

    def __init__(self, calls: Sequence[tuple[Column, Expr]]) -> None:
        self._columns = tuple(column for column, _ in calls)
        named = [node for _, tree in calls for node in walk(tree) if isinstance(node, Column)]
        self._sources = tuple(dict.fromkeys(named))
        shapes: list[Expr] = []
        literals: list[Literal] = []
        for _, tree in calls:
            numbered, found = number_literals(tree, first=len(literals))
            shapes.append(blank(numbered))
            literals.extend(found)
        slots = tuple(Slot(column, True) for column in self._sources)
        self._kernel = cache(partial(derive_kernel, tuple(shapes), slots))
        self._literals = tuple(literals)
        texts = any(literal.type.is_text for literal in literals)
        self._constants = None if texts else literal_buffer(self._literals, StringTable(), ordered=False)
        self._ordered = any(compares_order_of_strings(tree) for _, tree in calls)

    def run(self, known: Mapping[Column, Data], strings: StringTable, count: int) -> dict[Column, Data]:
        """Values and statuses of the columns."""
        literals = self._constants
        if literals is None:
            literals = literal_buffer(self._literals, strings, ordered=self._ordered)
        zeros = np.zeros(count, np.uint8)
        values, statuses = [], []
        for column in self._sources:
            value, status = known[column]
            if self._ordered and column.type.is_text:
                value = strings.ordinals()[value]
            values.append(np.ascontiguousarray(value))
            statuses.append(status if status is not None else zeros)
        out = [np.empty(count, dtype(column.type)) for column in self._columns]
        out_status = [np.empty(count, np.uint8) for _ in self._columns]
        tables = addresses([*values, *statuses, *out, *out_status])
        first = address(tables)
        second, third = first + 8 * len(values), first + 16 * len(values)
        self._kernel()(first, second, address(literals), third, third + 8 * len(out), count)
        return {
            column: (value, status if np.count_nonzero(status) else None)
            for column, value, status in zip(self._columns, out, out_status, strict=True)
        }


@dataclass(frozen=True, slots=True)
class _Rule:
    """A column that a function's rule makes of every distinct combination of its arguments."""

    column: Column
    call: Call
    rule: Rule

    def run(self, known: Mapping[Column, Data], strings: StringTable, count: int) -> dict[Column, Data]:
        """Values and statuses of the column. An error outweighs a NULL."""
        status = np.zeros(count, np.uint8)
        for arg in self.call.args:
            if isinstance(arg, Column):
                given = known[arg][1]
                if given is not None:
                    status = np.maximum(status, given)
            elif isinstance(arg, Literal) and arg.value is None:
                status = np.maximum(status, np.uint8(NULL_STATUS))
        # the value where the status says NULL has no meaning, but for text it must be a code that exists
        under = strings.code("") if self.column.type.is_text else 0
        values: Array = np.zeros(count, dtype(self.column.type))
        if under:
            values.fill(under)
        live = np.flatnonzero(status == 0)
        if len(live):
            picked = {arg: known[arg][0][live] for arg in self.call.args if isinstance(arg, Column)}
            firsts, inverse = _distinct(list(picked.values()), len(live))
            given_values = [
                decoded(picked[arg][firsts], arg.type, strings)
                if isinstance(arg, Column)
                else [arg.value] * len(firsts)
                for arg in self.call.args
                if not isinstance(arg, Call)
            ]
            made, made_status = encoded(self._results(given_values), self.column.type, strings)
            values[live], status[live] = made[inverse], made_status[inverse]
        return {self.column: (values, status if status.any() else None)}

    def _results(self, given: list[list[Any]]) -> list[Any]:
        return [self._result(values) for values in zip(*given, strict=True)]

    def _result(self, values: tuple[Any, ...]) -> Any:
        try:
            return self.rule(*values)
        except AnsiError:
            return AnsiError


class _Python:
    """A column that a Python function of the user computes."""

    def __init__(self, column: Column, args: tuple[Expr, ...], function: PythonPredicate) -> None:
        from handfast.kernels.compiler import python

        self._column = column
        self._args = [arg for arg in args if isinstance(arg, Column)]
        self._kinds = tuple(arg.type for arg in self._args)
        self._function = function
        self._loops = python
        python.compiled(function, self._kinds)  # compiled now, so that an error of Numba does not wait for rows

    def run(self, known: Mapping[Column, Data], strings: StringTable, count: int) -> dict[Column, Data]:
        """Values and statuses of the column. An error outweighs a NULL."""
        given = [status for _, status in map(known.__getitem__, self._args) if status is not None]
        status = np.maximum.reduce(given) if given else np.zeros(count, np.uint8)
        live = np.flatnonzero(status == 0)
        truth, refused = self._loops.run(self._function, self._kinds, [known[arg][0][live] for arg in self._args])
        values = np.zeros(count, np.uint8)
        values[live] = truth
        status[live[refused]] = ERROR_STATUS
        return {self._column: (values, status if status.any() else None)}


@dataclass(frozen=True, slots=True)
class _Choice:
    """A column of text that is chosen from others."""

    column: Column
    call: Call

    def run(self, known: Mapping[Column, Data], strings: StringTable, count: int) -> dict[Column, Data]:
        """Values and statuses of the column; an error counts only where its value is looked at."""
        args = [self._data(arg, known, strings, count) for arg in self.call.args]
        if self.call.op is Op.CASE:
            *branches, chosen = args
            for (condition, failed), value in zip(branches[-2::-2], branches[::-2], strict=True):
                chosen = _where((condition != 0) & (failed == 0), value, chosen)
                chosen = chosen[0], np.where(failed == ERROR_STATUS, np.uint8(ERROR_STATUS), chosen[1])
        elif self.call.op is Op.COALESCE:
            *firsts, chosen = args
            for value in reversed(firsts):
                chosen = _where(value[1] != NULL_STATUS, value, chosen)
        else:
            chosen = self._extreme(args, strings)
        values, status = chosen
        return {self.column: (values, status if status.any() else None)}

    def _extreme(self, args: list[tuple[Array, Status]], strings: StringTable) -> tuple[Array, Status]:
        ordinals = strings.ordinals()
        errors = np.maximum.reduce([np.where(status == ERROR_STATUS, status, 0) for _, status in args])
        chosen = args[0]
        for value in args[1:]:
            new, old = ordinals[value[0]], ordinals[chosen[0]]
            better = new > old if self.call.op is Op.GREATEST else new < old
            chosen = _where((value[1] == 0) & (better | (chosen[1] != 0)), value, chosen)
        return chosen[0], np.maximum(chosen[1], errors).astype(np.uint8)

    @staticmethod
    def _data(arg: Expr, known: Mapping[Column, Data], strings: StringTable, count: int) -> tuple[Array, Status]:
        if isinstance(arg, Column):
            value, status = known[arg]
            return value, np.zeros(count, np.uint8) if status is None else status
        assert isinstance(arg, Literal)
        values, statuses = encoded([arg.value], arg.type, strings)
        return np.repeat(values, count), np.repeat(statuses, count)


def _where(chosen: NDArray[np.bool_], a: tuple[Array, Status], b: tuple[Array, Status]) -> tuple[Array, Status]:
    return np.where(chosen, a[0], b[0]), np.where(chosen, a[1], b[1])


def _distinct(columns: list[Array], count: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Where each distinct combination of values comes first, and the number of each row's combination."""
    inverse = np.zeros(count, np.int64)
    firsts = np.zeros(1, np.int64)
    for column in columns:
        bits = np.ascontiguousarray(column)
        # compared by their bits: a function may tell -0.0 from 0.0
        parts = bits.view(np.uint64).reshape(count, -1).T if bits.dtype.kind == "V" else [_bits(bits)]
        for part in parts:
            _, codes = np.unique(part, return_inverse=True)
            combined = inverse * (int(codes.max()) + 1) + codes
            _, firsts, inverse = np.unique(combined, return_index=True, return_inverse=True)
    return firsts, inverse


def _bits(values: Array) -> Array:
    return values.view(f"u{values.dtype.itemsize}") if values.dtype.kind == "f" else values
