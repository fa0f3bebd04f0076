"""Layouts of columns: whatever the layout, a join and a session give the values."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

import handfast as hf
from handfast.flow.batch import as_table

VALUES: dict[str, tuple[pa.DataType, list[Any]]] = {
    "string": (pa.string(), ["a", "b", "c"]),
    "large_string": (pa.large_string(), ["a", "b", "c"]),
    "string_view": (pa.string_view(), ["a", "b", "c"]),
    "binary": (pa.binary(), [b"a", b"b", b"c"]),
    "fixed": (pa.binary(2), [b"aa", b"bb", b"cc"]),
    "int64": (pa.int64(), [1, 2, 3]),
    "double": (pa.float64(), [1.0, 2.0, 3.0]),
    "boolean": (pa.bool_(), [True, False, True]),
    "date": (pa.date32(), [date(2026, 1, 1), date(2026, 1, 2), date(2026, 1, 3)]),
    "timestamp": (pa.timestamp("us"), [datetime(2026, 1, 1), datetime(2026, 1, 2), datetime(2026, 1, 3)]),
    "decimal": (pa.decimal128(5, 2), [Decimal("1.00"), Decimal("2.00"), Decimal("3.00")]),
    "list": (pa.list_(pa.int64()), [[1], [2, None], []]),
    "struct": (pa.struct([("a", pa.string())]), [{"a": "x"}, {"a": None}, {"a": "y"}]),
}
INDICES = (pa.int8(), pa.uint8(), pa.int16(), pa.int32(), pa.uint32(), pa.int64(), pa.uint64())
SPEC = hf.JoinSpec(("r", "s"), "r.k = s.k", window="1 s", time="ts", lateness="0 s")


def dictionary(kind: str, index: pa.DataType, *, turned: bool, null: bool) -> pa.DictionaryArray:
    """Three values and a NULL, by a dictionary whose values stand in one order or the other, a NULL among them."""
    arrow, values = VALUES[kind]
    values = [*(reversed(values) if turned else values), *([None] if null else [])]
    last = 3 if null else None
    return pa.DictionaryArray.from_arrays(pa.array([0, 1, 2, last, None], index), pa.array(values, arrow))


def in_list(array: pa.Array) -> pa.Array:
    return pa.ListArray.from_arrays(pa.array([0, 2, 2, 3, 4, 5], pa.int32()), array)


def in_struct(array: pa.Array) -> pa.Array:
    return pa.StructArray.from_arrays([array], ["f"])


def in_map(array: pa.Array) -> pa.Array:
    keys = pa.array([f"k{k}" for k in range(5)])
    return pa.MapArray.from_arrays(pa.array([0, 2, 2, 3, 4, 5], pa.int32()), keys, array)


def in_dictionary(array: pa.Array) -> pa.Array:
    return pa.DictionaryArray.from_arrays(pa.array([4, 3, 2, 1, 0], pa.int8()), array)


WITHIN = ((in_list,), (in_struct,), (in_map,), (in_dictionary,), (in_struct, in_list), (in_list, in_dictionary))


def table(column: pa.Array, start: int = 0) -> pa.Table:
    rows = range(start, start + len(column))
    return pa.table(
        {
            "ts": pa.array([k * 1_000_000 for k in rows], pa.timestamp("us")),
            "k": pa.array(rows, pa.int64()),
            "x": column,
        }
    )


def pushed(columns: list[pa.Array]) -> list[Any]:
    """What a session gives for a stream of this column, push by push."""
    found: list[Any] = []
    schemas = {"r": table(columns[0]).schema, "s": table(pa.nulls(0)).drop_columns("x").schema}
    with hf.session(SPEC, schemas) as session:
        start = 0
        for column in columns:
            session.push("r", table(column, start))
            start += len(column)
        # one probe of all that is stored
        for batch in session.push("s", table(pa.nulls(start)).drop_columns("x")):
            found += zip(batch["r_k"].to_pylist(), batch["r_x"].to_pylist(), strict=True)
    return [value for _, value in sorted(found, key=lambda row: row[0])]


@pytest.mark.parametrize("null", [False, True], ids=["", "null"])
@pytest.mark.parametrize("index", INDICES, ids=str)
@pytest.mark.parametrize("kind", VALUES)
def test_a_session_gives_the_values_of_every_dictionary(kind: str, index: pa.DataType, null: bool) -> None:
    columns = [dictionary(kind, index, turned=turned, null=null) for turned in (False, True, False)]
    assert [value for column in columns for value in column.to_pylist()] == pushed(columns)


@pytest.mark.parametrize("null", [False, True], ids=["", "null"])
@pytest.mark.parametrize("within", WITHIN, ids=lambda steps: " ".join(step.__name__ for step in steps))
@pytest.mark.parametrize("kind", ["string", "int64"])
def test_a_session_gives_the_values_of_dictionaries_inside_of_others(kind: str, within: Any, null: bool) -> None:
    columns = [dictionary(kind, pa.int8(), turned=turned, null=null) for turned in (False, True, False)]
    for step in within:
        columns = [step(column) for column in columns]
    assert [value for column in columns for value in column.to_pylist()] == pushed(columns)


@pytest.mark.parametrize("within", [in_list, in_struct, in_map])
@pytest.mark.parametrize("kind", ["string_view", "list"])
def test_a_column_that_arrow_cannot_resolve_is_named(kind: str, within: Any) -> None:
    rows = table(within(dictionary(kind, pa.int8(), turned=False, null=False)))
    with pytest.raises(
        hf.SpecError, match=r"Column 'x' of stream 'r' has the type .*, which cannot be joined"
    ) as error:
        hf.join({"r": rows, "s": rows}, on="r.k = s.k", window="1 s", time="ts")
    assert str(error.value).endswith("convert it, or leave it out")


def test_more_values_inside_than_their_narrow_indices_can_count() -> None:
    narrow = pa.dictionary(pa.int8(), pa.string())
    texts = [[f"{push} {k}" for k in range(100)] for push in range(4)]
    columns = [in_struct(pa.array(own).dictionary_encode().cast(narrow)) for own in texts]
    assert [{"f": text} for own in texts for text in own] == pushed(columns)


def test_many_rows_with_a_dictionary_that_holds_null() -> None:
    count = 70_000
    places = pa.array([k % 3 for k in range(count)], pa.int8())
    column = pa.DictionaryArray.from_arrays(places, pa.array(["a", None, "b"]))
    found = hf.join({"r": table(column), "s": table(pa.nulls(count))}, on="r.k = s.k", window="1 s", time="ts")
    rows = sorted(zip(found["r_k"].to_pylist(), found["r_x"].to_pylist(), strict=True))
    assert [(k, ("a", None, "b")[k % 3]) for k in range(count)] == rows


@pytest.mark.parametrize("chunks", [0, 1, 2])
def test_the_type_does_not_depend_on_the_rows(chunks: int) -> None:
    column = dictionary("string", pa.int8(), turned=False, null=True)
    given = pa.table({"x": pa.chunked_array([column] * chunks, column.type)})
    assert pa.dictionary(pa.int32(), pa.string()) == as_table(given, "r").schema.field("x").type


def test_an_ordered_dictionary_stays_one() -> None:
    column = pa.DictionaryArray.from_arrays(pa.array([1, 0], pa.int8()), pa.array([None, "b"]), ordered=True)
    found = as_table(pa.table({"x": column}), "r")["x"]
    assert (True, ["b", None]) == (found.type.ordered, found.to_pylist())
