"""A difference: there is one just where the multisets differ, and it can be read."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from textwrap import dedent

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import handfast as hf
import handfast.testing as hft

FOUND = """
    match_time | trade_symbol | trade_price | quote_price
    12:00:10   | AB           | 10.02       | 10.00
    12:00:12   | AB           | 10.02       | 10.05
    12:00:30   | CD           | 7.0         | nan
    12:10:00   | ZZ           | 1.0         | 1.0
    12:10:00   | ZZ           | 1.0         | 1.0
    12:10:00   | ZZ           | 1.0         | 1.0
"""
SMALL = st.lists(st.tuples(st.sampled_from([None, 0, 1]), st.sampled_from([float("nan"), 0.0, -0.0, None])), max_size=5)


def failure(found: object, expected: object, **how: bool) -> str:
    with pytest.raises(AssertionError) as error:
        hft.assert_same(found, expected, **how)
    return str(error.value)


def test_the_error_shows_what_is_missing_beside_what_is_there_instead() -> None:
    said = failure(
        hft.table(FOUND),
        """
        trade_symbol | match_time | trade_price | quote_price
        AB           | 12:00:10   | 10.02       | 10
        AB           | 12:00:12   | 10.02       | 10.06
        CD           | 12:00:30   | 7           | nan
        EF           | 12:00:31   | 17.125      | nan
        ZZ           | 12:10:00   | 1           | 1
        """,
    )
    assert (
        dedent("""\
        The rows differ: 2 missing, 3 extra, 3 as expected

                   | trade_symbol | match_time          | trade_price | quote_price
          missing  | AB           | 2026-01-01 12:00:12 |       10.02 |       10.06
          extra    | AB           | 2026-01-01 12:00:12 |       10.02 |       10.05
                                                                              ^^^^^
          missing  | EF           | 2026-01-01 12:00:31 |      17.125 |         nan
          extra ×2 | ZZ           | 2026-01-01 12:10:00 |         1.0 |         1.0""")
        == said
    )


def test_neither_the_order_of_rows_nor_that_of_columns_matters_unless_asked() -> None:
    table = hft.table(FOUND)
    other = table.select(table.column_names[::-1]).take(pa.array([5, 3, 1, 0, 2, 4]))
    hft.assert_same(table, other)
    hft.assert_same(table, table, in_order=True, columns_in_order=True)
    assert "order is not: row 1 of 6 is the first that differs" in failure(table, other, in_order=True)
    assert "The columns are in another order" in failure(table, other, columns_in_order=True)


def test_the_first_row_out_of_order_is_shown() -> None:
    said = failure(pa.table({"k": [1, 3, 2]}), "k\n1\n2\n3", in_order=True)
    assert (
        dedent("""\
        The rows are the same, their order is not: row 2 of 3 is the first that differs

                   | k
          expected | 2
          found    | 3""")
        == said
    )


@given(SMALL, SMALL)
def test_there_is_a_difference_just_where_the_multisets_differ(a: list[tuple], b: list[tuple]) -> None:
    left, right = (
        pa.table({"k": pa.array([k for k, _ in rows], pa.int64()), "v": pa.array([v for _, v in rows], pa.float64())})
        for rows in (a, b)
    )
    differs = hft.difference(left, right)
    said = [sorted(repr(row).replace("-0.0", "0.0") for row in rows) for rows in (a, b)]
    assert (said[0] != said[1]) is bool(differs)
    assert len(right) == differs.alike + len(differs.missing)
    assert len(left) == differs.alike + len(differs.extra)


def test_numbers_are_compared_by_value_whatever_their_type() -> None:
    wide = pa.table({"k": pa.array([1, 2], pa.int64()), "d": pa.array([Decimal("1.50"), None])})
    narrow = pa.table({"k": pa.array([2.0, 1.0]), "d": pa.array([None, 1.5])})
    hft.assert_same(wide, narrow)


MOMENT = datetime(2026, 1, 31, 12, tzinfo=UTC)
ZONED, PARIS, LOCAL = pa.timestamp("us", "UTC"), pa.timestamp("ms", "Europe/Paris"), pa.timestamp("us")
LIST, STRUCT, MAP = pa.list_(pa.int64()), pa.struct([("a", pa.int64())]), pa.map_(pa.string(), pa.int64())
ALIKE = {
    "zeros": (pa.array([-0.0]), pa.array([0.0])),
    "zeros in a list": (pa.array([[-0.0]]), pa.array([[0]])),
    "NaN in a list": (pa.array([[float("nan")]]), pa.array([[float("nan")]], pa.list_(pa.float32()))),
    "decimals in a struct": (pa.array([{"a": Decimal("1.0")}]), pa.array([{"a": 1}])),
    "one moment in two zones": (pa.array([MOMENT], ZONED), pa.array([MOMENT], PARIS)),
    "one moment in lists": (pa.array([[MOMENT]], pa.list_(ZONED)), pa.array([[MOMENT]], pa.large_list(PARIS))),
    "dates": (pa.array([MOMENT.date()], pa.date32()), pa.array([MOMENT.date()], pa.date64())),
    "lists": (pa.array([[1]], LIST), pa.array([[1.0]], pa.list_(pa.float64(), 1))),
    "dictionaries": (pa.array(["a"]).dictionary_encode(), pa.array(["a"], pa.large_string())),
    "NULL": (pa.nulls(1), pa.nulls(1, STRUCT)),
}
UNLIKE = {
    "a moment and a local time": (pa.array([MOMENT], ZONED), pa.array([MOMENT.replace(tzinfo=None)], LOCAL)),
    "those in lists": (
        pa.array([[MOMENT]], pa.list_(ZONED)),
        pa.array([[MOMENT.replace(tzinfo=None)]], pa.list_(LOCAL)),
    ),
    "a date and a time": (pa.array([0], pa.date32()), pa.array([0], LOCAL)),
    "a date and a number": (pa.array([20484], pa.date32()), pa.array([20484])),
    "a time and a number": (pa.array([5], LOCAL), pa.array([5])),
    "a boolean and a number": (pa.array([True]), pa.array([1])),
    "those in structs": (pa.array([{"a": True}]), pa.array([{"a": 1}])),
    "a struct and a map": (pa.array([{"a": 1}], STRUCT), pa.array([[("a", 1)]], MAP)),
    "other names": (pa.array([{"a": 1}]), pa.array([{"b": 1}])),
    "text and bytes": (pa.array(["a"]), pa.array([b"a"])),
    "text and a list": (pa.array(["1"]), pa.array([[1]])),
}


@pytest.mark.parametrize("case", ALIKE)
def test_values_of_one_kind_are_equal_by_value(case: str) -> None:
    one, other = (pa.table({"x": column}) for column in ALIKE[case])
    hft.assert_same(one, other)
    hft.assert_same(other, one)


@pytest.mark.parametrize("case", UNLIKE)
def test_values_of_two_kinds_are_never_equal(case: str) -> None:
    one, other = (pa.table({"x": column}) for column in UNLIKE[case])
    assert "Column 'x' is expected as" in failure(one, other)
    assert "Column 'x' is expected as" in failure(other, one)


def test_columns_that_cannot_be_equal_are_named() -> None:
    said = failure(pa.table({"k": [1]}), pa.table({"k": ["1"]}))
    assert "Column 'k' is expected as string, found as bigint" in said


def test_wrong_columns_are_named_before_any_row() -> None:
    said = failure(pa.table({"k": [1], "v": [2]}), pa.table({"k": [1], "w": [2]}))
    assert "The columns differ, so no rows were compared\n  missing  w\n  extra    v" == said


def test_what_is_too_much_to_read_is_counted() -> None:
    said = failure(pa.table({"k": range(100)}), "k\n1\n2\n3")
    assert said.startswith("The rows differ: 97 extra, 3 as expected\n")
    assert said.endswith("\n  … and 77 more that are extra")
    assert 20 == said.count("  extra |")


def test_any_kind_of_table_will_do() -> None:
    table = pa.table({"k": [1, 2], "s": ["a", None]})
    for other in (table.to_pandas(), pl.from_arrow(table), table.to_batches(), table.to_batches()[0]):
        hft.assert_same(other, table)
        hft.assert_same(table, other)
    with pytest.raises(hf.SpecError, match="found is an empty list, which has no columns"):
        hft.assert_same([], table)
    with pytest.raises(hf.SpecError, match="joins Spark DataFrames, or Arrow, pandas and Polars tables"):
        hft.assert_same({"k": [1]}, pd.DataFrame({"k": [1]}))


def test_a_difference_prints_and_is_false_where_there_is_none() -> None:
    table = pa.table({"k": [1, 2]})
    assert (False, "The same 2 rows") == (bool(hft.difference(table, table)), str(hft.difference(table, table)))
