"""Corners that were once wrong, each as small as it can be."""

from __future__ import annotations

import decimal
import string
from datetime import date, datetime
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

import handfast as hf
from handfast.flow.batch import schema_of
from handfast.judge import oracle
from handfast.kernels.compiler.program import make_program
from handfast.spec.expression import depth, walk
from tests.judges.rows import plain_values

NOW = pa.array([0], pa.timestamp("us", "UTC"))
SCHEMA = pa.schema([("ts", pa.timestamp("us", "UTC")), ("k", pa.int64())])


def _one(**columns: Any) -> pa.Table:
    """A table of one row at time 0."""
    return pa.table({"ts": NOW, **{name: pa.array([value]) for name, value in columns.items()}})


def _matches(r: pa.Table, s: pa.Table, on: str, **more: Any) -> int:
    asked = {"window": "1 second", "time": "ts", **more}
    counts = {hf.join({"r": r, "s": s}, on=on, **asked, options=hf.LocalOptions(cores=n)).num_rows for n in (1, 3)}
    (count,) = counts
    return count


@pytest.mark.parametrize(
    ("on", "r", "s"),
    [
        ("ABS((r.d + 1e17) - (s.d + 1e17)) <= 1", 0.0, 7.0),
        ("ABS((r.d + 1.7e9) - (s.d + 1.7e9)) <= 1e-9", 0.0, 9e-8),
        ("ABS(CAST(r.d AS FLOAT) - CAST(s.d AS FLOAT)) <= 1e-46D", 2.09e-45, 0.71e-45),
    ],
)
def test_a_band_makes_room_for_the_roundings_of_its_constants(on: str, r: float, s: float) -> None:
    assert 1 == _matches(_one(d=r), _one(d=s), on)


def test_a_column_may_have_the_name_of_a_derived_one() -> None:
    r = pa.table({"ts": NOW, "a": [1], "#0": [5], "#1": [6], "##0": [7]})
    s = pa.table({"ts": NOW, "a": [2], "b": [5], "c": [6], "d": [7]})
    assert 1 == _matches(r, s, "r.a + 1L = s.a AND r.`#0` = s.b AND r.`#1` = s.c AND r.`##0` = s.d")


def test_decimal_literals_are_exact_whatever_the_decimal_context() -> None:
    digits = "1234567890123456789012345678"
    assert 0 == _matches(_one(i=1), _one(i=1), f"{digits}.51 = {digits}.52")
    with decimal.localcontext() as context:
        context.prec = 3
        assert 1 == _matches(_one(i=1234), _one(i=1), "r.i < 1234.6 AND s.i = 1")


def test_a_null_among_the_values_of_a_dictionary_is_null() -> None:
    k = pa.DictionaryArray.from_arrays([0, 1], [None, "a"])
    r = pa.table({"ts": pa.array([0, 0], NOW.type), "k": k})
    s = pa.table({"ts": pa.array([0, 0], NOW.type), "k": ["", "a"]})
    assert 1 == _matches(r, s, "r.k = s.k")
    assert 2 == _matches(r, s, "r.k IS NULL")


def test_ties_of_nanoseconds_are_ties_of_microseconds() -> None:
    nanos = pa.table({"ts": pa.array([1_600, 1_500], pa.timestamp("ns", "UTC")), "x": [1, 2]})
    s = pa.table({"ts": pa.array([5], NOW.type), "x": [0]})
    found = [
        hf.join({"r": r, "s": s}, on="TRUE", window={"r": "1 row", "s": "1 s"}, time="ts")["r_x"].to_pylist()
        for r in (nanos, nanos.set_column(0, "ts", nanos["ts"].cast(pa.timestamp("us", "UTC"), safe=False)))
    ]
    assert found[0] == found[1]


@pytest.mark.parametrize(
    "column",
    [
        pa.nulls(2),
        pa.array([1.5, 2.5], pa.float16()),
        pa.array([(1, 2, 3), (1, 2, 2)], pa.month_day_nano_interval()),
        pa.array([[1], None]),
        pa.array([{"a": None}, {"a": 1}]),
        pa.array([b"a", b"b"], pa.binary_view()),
        pa.array(["a", "b"], pa.string_view()),
        pa.RunEndEncodedArray.from_arrays([1, 2], ["a", "b"]),
        pa.array([1, None], pa.decimal128(10, 2)),
        pa.array([1, None], pa.decimal256(50, 2)),
        pa.array([100, 200], pa.decimal128(5, -2)),
        pa.array([1, 2], pa.time64("us")),
        pa.array([1, 2], pa.duration("us")),
        pa.array([[("a", 1)], [("a", None)]], pa.map_(pa.string(), pa.int64())),
        pa.array([[{"a": [1]}], None], pa.list_(pa.struct([("a", pa.list_(pa.int8()))]))),
        pa.array([b"ab", b"cd"], pa.binary(2)),
        pa.array([["b"], ["a"]], pa.list_(pa.string_view())),
        pa.array([["b"], ["a"]], pa.list_view(pa.string())),
        pa.array([{"a": b"b"}, {"a": b"a"}], pa.struct([("a", pa.binary_view())])),
        pa.array([[("a", "b")], []], pa.map_(pa.string_view(), pa.string_view())),
        pa.UnionArray.from_sparse(pa.array([0, 1], pa.int8()), [pa.array([1, 2]), pa.array(["a", "b"])]),
        pa.UnionArray.from_dense(
            pa.array([0, 1], pa.int8()), pa.array([0, 0], pa.int32()), [pa.array([1]), pa.array(["a"])]
        ),
    ],
    ids=lambda column: str(column.type),
)
def test_payload_of_any_layout_rides_along_and_breaks_ties(column: pa.Array) -> None:
    r = pa.table({"ts": pa.array([0, 0], NOW.type), "p": column})
    assert 2 == _matches(r, _one(k=1), "TRUE")
    assert 1 == _matches(r, _one(k=1), "TRUE", window={"r": "1 row", "s": "1 s"})
    spec = hf.JoinSpec(("r", "s"), "r.ts = s.ts", window="1 s", time="ts", lateness="1 s")
    with hf.session(spec, {"r": r.schema, "s": r.schema}) as session:
        assert 0 == sum(batch.num_rows for batch in session.push("r", r))
        assert 4 == sum(batch.num_rows for batch in session.push("s", r))


@pytest.mark.parametrize(
    ("r", "s"),
    [
        (pa.uint32(), pa.int64()),
        (pa.string(), pa.large_string()),
        (pa.string(), pa.dictionary(pa.int8(), pa.string())),
        (pa.binary(), pa.large_binary()),
        (pa.timestamp("ms"), pa.timestamp("ns")),
        (pa.date32(), pa.date64()),
        (pa.decimal128(10, 2), pa.decimal64(10, 2)),
    ],
    ids=str,
)
def test_arrival_goes_by_sequences_of_any_layout_of_one_type(r: pa.DataType, s: pa.DataType) -> None:
    def rows(kind: pa.DataType, *numbers: int) -> pa.Table:
        value = kind.value_type if pa.types.is_dictionary(kind) else kind
        if pa.types.is_string(value) or pa.types.is_large_string(value):
            values = pa.array([str(n) for n in numbers]).cast(value)
        elif pa.types.is_binary(value) or pa.types.is_large_binary(value):
            values = pa.array([bytes([n]) for n in numbers]).cast(value)
        elif pa.types.is_date(value):
            values = pa.array([date(2026, 1, n) for n in numbers], value)
        elif pa.types.is_timestamp(value):
            values = pa.array([datetime(2026, 1, n) for n in numbers], value)
        elif pa.types.is_decimal(value):
            values = pa.array([decimal.Decimal(n) for n in numbers], value)
        else:
            values = pa.array(numbers, value)
        return pa.table({"ts": pa.array([0] * len(numbers), NOW.type), "q": values.cast(kind), "n": list(numbers)})

    asked = {"on": "TRUE", "window": "1 row", "time": "ts", "order": "arrival", "sequence": "q"}
    found = hf.join({"r": rows(r, 1, 4), "s": rows(s, 2, 3)}, **asked)
    assert [(1, 2), (1, 3), (4, 3)] == sorted(zip(*(found[name].to_pylist() for name in ("r_n", "s_n")), strict=True))


def test_dictionaries_with_more_values_together_than_their_indices_can_count() -> None:
    def chunk(prefix: str) -> pa.Array:
        return pa.DictionaryArray.from_arrays(pa.array(range(100), pa.int8()), [f"{prefix}{n}" for n in range(100)])

    k = pa.chunked_array([chunk("a"), chunk("b")])
    r = pa.table({"ts": pa.array([0] * 200, NOW.type), "k": k})
    assert 1 == _matches(r, _one(k="b7"), "r.k = s.k")


def test_the_sequence_column_is_found_whatever_the_case() -> None:
    r = pa.table({"ts": pa.array([0, 0], NOW.type), "q": [2, 1], "x": [1, 2]})
    found = hf.join({"r": r, "s": _one(q=1)}, on="TRUE", window={"r": "1 row", "s": "1 s"}, time="TS", sequence="Q")
    assert [1] == found["r_x"].to_pylist()
    with pytest.raises(hf.SpecError, match="sequence must name a column"):
        hf.JoinSpec(("r", "s"), "TRUE", window="1 row", time="ts", sequence=5)  # type: ignore[arg-type]


@pytest.mark.parametrize("shape", ["IN", "OR", "AND"])
def test_long_lists_are_no_deep_trees(shape: str) -> None:
    on = {
        "IN": f"r.k + s.k IN ({', '.join(map(str, range(2_000)))})",
        "OR": " OR ".join(f"r.k + s.k = {n}" for n in range(600)),
        "AND": " AND ".join(f"r.k + s.k <> {n}" for n in range(3, 600)),
    }[shape]
    columns = schema_of(SCHEMA)
    bound = hf.JoinSpec(("r", "s"), on, window="1 s", time="ts").bind({"r": columns, "s": columns})
    rows = {name: [{"ts": 0, "k": 1}] for name in ("r", "s")}
    assert [(0, 0)] == oracle.matches(bound, rows)
    assert depth(bound.predicate) < 20


def test_a_long_list_is_a_set_and_not_compiled() -> None:
    on = f"r.k IN ({', '.join(map(str, range(2_000)))}) AND s.k NOT IN ({', '.join(map(str, range(-500, 0)))}, NULL)"
    columns = schema_of(SCHEMA)
    bound = hf.JoinSpec(("r", "s"), on, window="1 s", time="ts").bind({"r": columns, "s": columns})
    assert 3 == len(list(walk(make_program(bound.predicate, [], 2).condition)))
    assert 0 == _matches(_one(k=1), _one(k=1), on)  # NULL is in the list
    assert 1 == _matches(_one(k=1), _one(k=1), on.replace(", NULL", ""))


def test_a_list_of_some_length_compiles() -> None:
    assert 1 == _matches(_one(k=1), _one(k=1), f"r.k + s.k IN ({', '.join(map(str, range(40)))})")


def test_a_predicate_nested_too_deep_is_refused_in_words() -> None:
    deep = "(" * 300 + "r.k" + " + 1)" * 300 + " = s.k"
    with pytest.raises(hf.SpecError, match="nested more than"):
        _matches(_one(k=1), _one(k=1), deep)


def test_names_that_clash_in_the_result_are_refused_before_anything_is_taken_in() -> None:
    spec = hf.JoinSpec(("a", "a_b"), "TRUE", window="1 s", time="ts", lateness="1 s")
    clash = pa.schema([("ts", NOW.type), ("b_ts", pa.int64())])
    with pytest.raises(hf.SpecError, match="would be called 'a_b_ts'"):
        hf.session(spec, {"a": clash, "a_b": SCHEMA})


def test_a_session_keeps_its_own_copy() -> None:
    spec = hf.JoinSpec(("r", "s"), "r.k = s.k", window="1 s", time="ts", lateness="1 s")
    frame = pd.DataFrame({"ts": pd.to_datetime([0], utc=True), "k": [1]})
    session = hf.session(spec, {"r": SCHEMA, "s": SCHEMA})
    session.push("r", frame)
    frame.loc[0, "k"] = 99
    (batch,) = session.push("s", _one(k=1))
    assert [1] == batch["r_k"].to_pylist()


def test_leaving_a_session_loses_nothing() -> None:
    spec = hf.JoinSpec(("r", "s"), "TRUE", window="1 row", time="ts", lateness="1 s")
    with hf.session(spec, {"r": SCHEMA, "s": SCHEMA}) as session:
        session.push("r", _one(k=1))
        session.push("s", _one(k=1))
    with pytest.raises(hf.EngineError, match="closed"):
        session.push("r", _one(k=1))
    assert 1 == sum(batch.num_rows for batch in session.close())


def test_waiting_rows_count_against_the_memory_limit() -> None:
    spec = hf.JoinSpec(("r", "s"), "TRUE", window="5 rows", time="ts", lateness="1 s")
    session = hf.session(spec, {"r": SCHEMA, "s": SCHEMA}, options=hf.LocalOptions(memory_limit=10_000))
    rows = pa.table({"ts": pa.array(range(200), NOW.type), "k": range(200)})
    with pytest.raises(hf.EngineError, match="memory_limit"):
        for _ in range(10):
            session.push("r", rows)


@pytest.mark.parametrize("bad", ["2020-01-01", None, 1.5, True, 2**63])
def test_advance_takes_times_only(bad: Any) -> None:
    spec = hf.JoinSpec(("r", "s"), "TRUE", window="1 s", time="ts", lateness="1 s")
    with pytest.raises(hf.SpecError, match="The time that a stream has come to must"):
        hf.session(spec, {"r": SCHEMA, "s": SCHEMA}).advance("r", bad)


def test_strings_of_every_kind_order_as_their_bytes_do() -> None:
    words = ["", "\0", "a", "a\0", "ä", "z", "😀", "\ufffd", *string.punctuation]
    r = pa.table({"ts": pa.array([0] * len(words), NOW.type), "w": words})
    found = hf.join({"r": r, "s": r}, on="r.w < s.w", window="1 s", time="ts")
    expected = sorted((a, b) for a in words for b in words if a.encode() < b.encode())
    assert expected == sorted(zip(found["r_w"].to_pylist(), found["s_w"].to_pylist(), strict=True))


@pytest.mark.parametrize(
    "arrow",
    [pa.decimal32(5, 2), pa.decimal64(12, 2), pa.decimal128(18, 2), pa.decimal128(19, 2), pa.decimal256(30, 2)],
    ids=str,
)
@pytest.mark.parametrize(
    "on", ["r.p = s.p", "r.p BETWEEN s.p - 0.05 AND s.p + 0.05", "r.p < s.p + 0.01", "r.p <=> s.p"]
)
def test_decimals_of_every_width_are_found_by_their_value(arrow: pa.DataType, on: str) -> None:
    prices = [decimal.Decimal(text) for text in ("-3.25", "1.50", "2.00")]
    table = pa.table({"ts": pa.array([0] * 4, NOW.type), "p": pa.array([*prices, None], pa.decimal128(38, 2))})
    table = table.set_column(1, "p", table["p"].cast(arrow)).slice(1)
    s = _one(k=1).append_column("p", pa.array([decimal.Decimal("1.50")], pa.decimal128(4, 2)))
    assert 1 == _matches(table, s, on)


def test_a_decimal_beyond_64_bits_is_wild_and_still_found() -> None:
    r = pa.table({"ts": NOW, "p": pa.array([decimal.Decimal("9" * 30)], pa.decimal128(32, 2))})
    assert 1 == _matches(r, r, "r.p BETWEEN s.p - 0.05 AND s.p + 0.05")
    assert 1 == _matches(r, r, "r.p = s.p")


@pytest.mark.parametrize("shift", ["0.000000000000000004", "0.000000000000000005", "0.000000000000000014"])
def test_a_band_makes_room_for_the_roundings_of_wide_decimals(shift: str) -> None:
    """With 38 digits s.p - 0.05 has 17 behind the point, and r.p is rounded to as many."""
    money = pa.decimal128(38, 18)
    for below, above in (("0.05", "0.05"), ("0", "0")):
        on = f"r.p BETWEEN s.p - {below} AND s.p + {above}"
        for sign in (1, -1):
            r = pa.table({"ts": NOW, "p": pa.array([decimal.Decimal(shift) * sign + decimal.Decimal(above)], money)})
            s = pa.table({"ts": NOW, "p": pa.array([decimal.Decimal(0)], money)})
            bound = hf.JoinSpec(("r", "s"), on, window="1 s", time="ts").bind(
                {name: schema_of(t.schema) for name, t in (("r", r), ("s", s))}
            )
            rows = {name: [{"ts": 0, "p": plain_values(t["p"])[0]}] for name, t in (("r", r), ("s", s))}
            assert len(oracle.matches(bound, rows)) == _matches(r, s, on)


@pytest.mark.parametrize(
    "arrow", [pa.binary(), pa.large_binary(), pa.binary(2), pa.dictionary(pa.int32(), pa.binary())], ids=str
)
def test_binaries_of_every_layout_compare_byte_by_byte(arrow: pa.DataType) -> None:
    codes = pa.array([b"\x00\x80", b"\x00\x7f", b"\xff\x00", None], pa.binary())
    r = pa.table({"ts": pa.array([0] * 4, NOW.type), "x": codes.cast(arrow)})
    s = pa.table({"ts": NOW, "x": pa.array([b"\x00\x80"], pa.binary())})
    assert 1 == _matches(r, s, "r.x = s.x")
    assert 1 == _matches(r, s, "r.x < s.x")
    assert 2 == _matches(r, s, "r.x >= X'0080' AND s.x IS NOT NULL")


@pytest.mark.parametrize(
    ("on", "r", "s"),
    [
        ("CAST(ABS(r.d - s.d) AS INT) <= 3", 3.9, 0.0),
        ("CAST(r.d AS INT) BETWEEN s.d - 1 AND s.d + 1", 3.9, 2.0),
        ("CAST(r.d - s.d AS INT) = 0", -0.9, 0.0),
        ("FLOOR(r.d) BETWEEN s.d - 1 AND s.d", 2.9, 2.0),
    ],
)
def test_a_band_is_not_read_through_what_cuts_off_digits(on: str, r: float, s: float) -> None:
    assert 1 == _matches(_one(d=r), _one(d=s), on)


def test_a_function_of_constants_alone_is_a_condition_like_any_other() -> None:
    assert 1 == _matches(_one(k=1), _one(k=2), "r.k = s.k OR UPPER('a') = 'A'")
    assert 1 == _matches(_one(k=1), _one(k=2), "UPPER('a') = 'A'")
    assert 0 == _matches(_one(k=1), _one(k=2), "r.k < s.k AND LENGTH(CONCAT('a', NULL)) = 1")


def test_a_date64_with_a_time_of_day_is_its_day() -> None:
    def table(millis: int) -> pa.Table:
        return pa.table({"ts": pa.array([0], NOW.type), "day": pa.array([millis], pa.int64()).cast(pa.date64())})

    def joined(r: int, s: int) -> int:
        return len(hf.join({"r": table(r), "s": table(s)}, on="r.day = s.day", window="1 s", time="ts"))

    assert [1, 0, 1] == [joined(86_400_001, 86_400_000), joined(86_400_000, 86_399_999), joined(-1, -86_400_000)]


@pytest.mark.parametrize("unit", ["s", "ms"])
def test_a_time_beyond_every_microsecond_is_refused_and_not_bent(unit: str) -> None:
    def table(count: int) -> pa.Table:
        return pa.table({"ts": pa.array([0], NOW.type), "q": pa.array([count], pa.timestamp(unit, "UTC"))})

    with pytest.raises(hf.EngineError, match="beyond every microsecond"):
        hf.join({"r": table(10**17), "s": table(10**18)}, on="r.q = s.q", window="1 s", time="ts")


def test_a_session_that_fails_is_closed_with_its_error() -> None:
    schema = pa.schema([("ts", NOW.type), ("q", pa.timestamp("s", "UTC"))])
    spec = hf.JoinSpec(("r", "s"), "r.q = s.q", window="1 s", time="ts", lateness="0 s")
    session = hf.session(spec, {"r": schema, "s": schema})
    with pytest.raises(hf.EngineError, match="The session failed and is closed"):
        session.push("r", pa.table({"ts": pa.array([0], NOW.type), "q": pa.array([10**17], schema.field("q").type)}))
    with pytest.raises(hf.EngineError, match="The session is closed"):
        session.push("r", schema.empty_table())


def test_a_column_may_have_any_name_in_order() -> None:
    table = pa.table({"ts": pa.array([0], NOW.type), "k": [1]})
    named = hf.join(
        {"r": table, "s": table}, on="TRUE", window="1 s", time="ts", in_order=True, select="r.k AS `#rank`"
    )
    assert {"#rank": [1]} == named.to_pydict()
