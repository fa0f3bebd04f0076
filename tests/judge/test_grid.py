"""Tables as text: what is written is what is read, and what cannot be read is named."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import handfast as hf
import handfast.testing as hft

NEW_YEAR = datetime(2026, 1, 1, tzinfo=UTC)
COLUMNS: dict[pa.DataType, st.SearchStrategy[Any]] = {
    pa.bool_(): st.booleans(),
    pa.int8(): st.integers(-128, 127),
    pa.int64(): st.integers(-(2**63), 2**63 - 1),
    pa.float32(): st.floats(width=32),
    pa.float64(): st.floats(),
    pa.string(): st.text(st.characters(exclude_categories=("Cs", "Cc", "Zl", "Zp"))),
    pa.date32(): st.dates(),
    pa.timestamp("us", "UTC"): st.datetimes().map(lambda moment: moment.replace(tzinfo=UTC)),
    pa.timestamp("us"): st.datetimes(),
    pa.decimal128(9, 3): st.integers(-(10**9) + 1, 10**9 - 1).map(lambda n: Decimal(n).scaleb(-3)),
}


@st.composite
def tables(draw: st.DrawFn) -> pa.Table:
    types = draw(st.lists(st.sampled_from(list(COLUMNS)), min_size=1, max_size=4))
    rows = draw(st.integers(0, 4))
    columns = [draw(st.lists(st.none() | COLUMNS[t], min_size=rows, max_size=rows)) for t in types]
    arrays = [pa.array(values, type_) for values, type_ in zip(columns, types, strict=True)]
    return pa.Table.from_arrays(arrays, names=[f"c{k}" for k in range(len(types))])


@given(tables())
def test_what_is_written_is_read_again(table: pa.Table) -> None:
    again = hft.table(hft.text(table))
    assert table.schema == again.schema
    hft.assert_same(again, table, in_order=True)


def test_a_column_without_a_type_is_what_its_cells_look_like() -> None:
    table = hft.table("""
        n  | x    | b     | d          | t        | s   | q   | nothing
        1  | 1.5  | true  | 2026-01-31 | 12:00:05 | 1a  | '1' | NULL
        -2 | nan  | NULL  | NULL       | +5s      | b c | '2' | NULL
    """)
    kinds = [pa.int64(), pa.float64(), pa.bool_(), pa.date32(), pa.timestamp("us", "UTC"), pa.string(), pa.string()]
    assert [*kinds, pa.null()] == table.schema.types
    assert [date(2026, 1, 31), None] == table["d"].to_pylist()
    assert ["1a", "b c"] == table["s"].to_pylist()


@pytest.mark.parametrize(
    ("cell", "after"),
    [
        ("12:00:05", timedelta(hours=12, seconds=5)),
        ("9:30", timedelta(hours=9, minutes=30)),
        ("00:00:00.000001", timedelta(microseconds=1)),
        ("+5s", timedelta(seconds=5)),
        ("+1 min 30 s", timedelta(seconds=90)),
        ("-1 min 30 s", timedelta(seconds=-90)),
        ("-0.5 ms", timedelta(microseconds=-500)),
        ("2.5", timedelta(seconds=2.5)),
        ("-3", timedelta(seconds=-3)),
        ("2026-01-02", timedelta(days=1)),
        ("2026-01-02 00:00:01", timedelta(days=1, seconds=1)),
        ("2026-01-01T01:00:00+01:00", timedelta(0)),
    ],
)
def test_a_time_is_read_as_people_say_it(cell: str, after: timedelta) -> None:
    assert [NEW_YEAR + after] == hft.table(f"ts: timestamp\n{cell}")["ts"].to_pylist()


def test_the_base_moves_the_day_and_the_start() -> None:
    table = hft.table("ts\n12:00:00\n+1s", base="2020-02-29 23:00:00")
    assert [
        datetime(2020, 2, 29, 12, tzinfo=UTC),
        datetime(2020, 2, 29, 23, 0, 1, tzinfo=UTC),
    ] == table["ts"].to_pylist()


def test_borders_rules_comments_and_quotes() -> None:
    table = hft.table("""
        # a person's table
        | name     | k |
        |----------|---|
        | 'NULL'   | 1 |
        | NULL     | 2 |
        | ''       | 3 |
        | 'a | b'  | 4 |
        | 'it''s'  | 5 |
        | it's     | 6 |
    """)
    assert ["NULL", None, "", "a | b", "it's", "it's"] == table["name"].to_pylist()


def test_types_given_aside_are_for_columns_that_say_none() -> None:
    table = hft.table("a | b: double\n1 | 2", types={"a": "int", "b": "int", "c": "int"})
    assert [pa.int32(), pa.float64()] == table.schema.types


def test_a_header_alone_is_a_table_without_rows() -> None:
    assert (0, ["a", "b"]) == (len(hft.table("a: int | b")), hft.table("a: int | b").column_names)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "A table needs at least a line with the names of its columns"),
        ("a | a\n1 | 2", "The table has the column 'a' twice; rename one of the two"),
        ("a | b\n1", "Row 1 of the table has 1 cells, its header has 2: 1"),
        ("a |\n1 | 2", "A column of the table has no name; write it like 'price' or 'price: double'"),
        ("a: itn\n1", "There is no type 'itn'; did you mean 'int'?"),
        ("a: int\n1\nx", "'x' in row 2, column 'a', is not of type int"),
        ("a: tinyint\n300", "'300' in row 1, column 'a', is not of type tinyint"),
        ("a: decimal(3,1)\n1.25", "'1.25' in row 1, column 'a', is not of type decimal(3,1)"),
        ("a: decimal(39,1)\n1", "A decimal has at most 38 digits"),
        ("a: boolean\nmaybe", "'maybe' in row 1, column 'a', is not of type boolean"),
        ("a: date\n2026-02-30", "'2026-02-30' in row 1, column 'a', is not of type date"),
        ("ts: timestamp\n25:00:00", "'25:00:00' in row 1, column 'ts', is not of type timestamp"),
        ("ts\n+5 parsecs", "The time '+5 parsecs' must be a duration like"),
        ("a\n'x", 'A quote is not closed, or text stands behind it, in the line "\'x" of the table'),
        ("a\n'x' y", "A quote is not closed, or text stands behind it"),
    ],
)
def test_what_cannot_be_read_is_named(text: str, message: str) -> None:
    with pytest.raises(hf.SpecError) as error:
        hft.table(text)
    assert str(error.value).startswith(message)
