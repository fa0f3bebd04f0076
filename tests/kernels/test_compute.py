"""What is computed of a run of rows is what the oracle makes of each."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from handfast.flow.batch import as_batch, schema_of
from handfast.flow.block import Block
from handfast.judge import evaluation
from handfast.kernels.columns import ColumnReader, Reading
from handfast.kernels.compiler.program import Input, Program
from handfast.kernels.strings import StringTable
from handfast.spec.expression import Call, Column, Expr, Literal
from handfast.spec.meaning import AnsiError
from handfast.spec.predicate import bind
from handfast.spec.types import BOOLEAN, Kind
from tests.judges.rows import rows_of
from tests.strategies.expressions import EXPRESSIONS, rows

TABLE = rows()
PLAIN = rows_of(TABLE)
FAILED = "fails"


def value_of(sql: str) -> Expr:
    """The typed tree of any expression, taken from a comparison with itself."""
    tree = bind(f"({sql}) <=> ({sql})", {"r": schema_of(TABLE.schema)})
    assert isinstance(tree, Call)
    return tree.args[0]


def expected(tree: Expr) -> list[Any]:
    """What the oracle makes of every row."""
    evaluate = evaluation.compile(tree)

    def of(row: dict[str, Any]) -> Any:
        try:
            return evaluate([row])
        except AnsiError:
            return FAILED

    return [of(row) for row in PLAIN]


def computed(tree: Expr) -> list[Any]:
    """What the kernels make of every row."""
    strings = StringTable()
    program = Program(((Input(Column(0, "#", tree.type), tree),),), Literal(True, BOOLEAN))
    batch = as_batch(TABLE)
    block = Block(batch, np.zeros(len(batch), np.int64), np.zeros(len(batch), np.uint8))
    columns = ColumnReader(Reading(program, ordered_strings=False), strings).read(0, block)
    (values,), (status,) = columns.values, columns.statuses
    plain: list[Any] = values.tolist()
    if tree.type.kind is Kind.BOOLEAN:
        plain = [bool(value) for value in plain]
    elif tree.type.is_text:
        texts = [strings.text(code) for code in plain]
        plain = [text.encode("latin-1") for text in texts] if tree.type.kind is Kind.BINARY else texts
    elif values.dtype.kind == "V":
        plain = [int.from_bytes(value, "little", signed=True) for value in plain]
    if status is None:
        return plain
    return [(value, None, FAILED)[state] for value, state in zip(plain, status, strict=True)]


@pytest.mark.parametrize("sql", EXPRESSIONS)
def test_every_expression_is_computed_as_the_oracle_does(sql: str) -> None:
    tree = value_of(sql)
    assert [repr(value) for value in expected(tree)] == [repr(value) for value in computed(tree)]


def test_the_expressions_have_values_of_every_sort() -> None:
    of = {sql: expected(value_of(sql)) for sql in EXPRESSIONS}
    assert [] == [sql for sql, values in of.items() if all(value in (None, FAILED) for value in values)]
    assert 40 < sum(FAILED in values for values in of.values())
    assert 100 < sum(None in values for values in of.values())
