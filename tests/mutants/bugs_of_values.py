"""Bugs of values: NULL, NaN, errors, strings, keys."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from llvmlite import ir

from handfast.flow import admission
from handfast.kernels import columns, compute, filters, strings
from handfast.kernels.compiler import codegen
from handfast.kernels.index import keys
from handfast.spec.expression import Op
from tests.mutants.registry import mutant


@mutant
def a_null_matched(patch: pytest.MonkeyPatch) -> None:
    decode = columns.ColumnReader._decode
    patch.setattr(columns.ColumnReader, "_decode", lambda self, column, type_: (decode(self, column, type_)[0], None))


@mutant
def a_row_without_a_time_taken_in(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(admission, "_invalid", lambda *_: None)


@mutant
def an_overflow_taken_for_a_number(patch: pytest.MonkeyPatch) -> None:
    arithmetic = codegen.Emitter._arithmetic
    patch.setattr(codegen.Emitter, "_arithmetic", lambda self, *args: (arithmetic(self, *args)[0], None))


@mutant
def an_error_on_the_right_of_or_counts_always(patch: pytest.MonkeyPatch) -> None:
    lazy = codegen.Emitter._lazy

    def eager(self: Any, op: Op, a: Any, b: Any) -> Any:
        value = lazy(self, op, a, b)
        return replace(value, error=self._either(a.error, b.error))

    patch.setattr(codegen.Emitter, "_lazy", eager)


@mutant
def nan_equal_to_nothing(patch: pytest.MonkeyPatch) -> None:
    compare = codegen.Emitter._compare

    def ieee(self: Any, op: Op, a: ir.Value, b: ir.Value, type_: Any) -> ir.Value:
        if type_.is_floating:
            return self._b.fcmp_ordered({Op.EQ: "==", Op.LT: "<", Op.LE: "<="}[op], a, b)
        return compare(self, op, a, b, type_)

    patch.setattr(codegen.Emitter, "_compare", ieee)


@mutant
def minus_zero_in_another_cell_than_zero(patch: pytest.MonkeyPatch) -> None:
    canonical = keys.canonical

    def raw(values: Any) -> Any:
        return values.astype(np.float64).view(np.uint64) if values.dtype.kind == "f" else canonical(values)

    patch.setattr(keys, "canonical", raw)


@mutant
def what_no_kernel_can_say_forgotten(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(filters.Filters, "holding", lambda self, runs, at: np.arange(len(at[0])))


@mutant
def an_error_counts_though_its_value_is_not_chosen(patch: pytest.MonkeyPatch) -> None:
    choice = codegen.Emitter._choice

    def eager(self: Any, op: Op, args: list[Any], type_: Any) -> Any:
        value = choice(self, op, args, type_)
        return replace(value, error=self._either(*(arg.error for arg in args)))

    patch.setattr(codegen.Emitter, "_choice", eager)


@mutant
def a_function_of_null_has_a_value(patch: pytest.MonkeyPatch) -> None:
    run = compute._Rule.run

    def careless(self: Any, known: Any, table: Any, count: int) -> Any:
        return {column: (values, None) for column, (values, _) in run(self, known, table, count).items()}

    patch.setattr(compute._Rule, "run", careless)


@mutant
def wild_tuples_forgotten(patch: pytest.MonkeyPatch) -> None:
    make = keys.KeyMaker.make

    def tame(self: Any, own: Any) -> Any:
        made = make(self, own)
        return replace(made, wild=np.zeros(len(made.wild), np.bool_))

    patch.setattr(keys.KeyMaker, "make", tame)


@mutant
def partners_sought_in_their_own_bucket_only(patch: pytest.MonkeyPatch) -> None:
    from handfast.kernels.index.bands import BandScale

    patch.setattr(BandScale, "partners", lambda self, side, own: (self.buckets(own), self.buckets(own)))


@mutant
def strings_ordered_by_when_they_came(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(strings.StringTable, "ordinals", lambda self: np.arange(len(self)))
