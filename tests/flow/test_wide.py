"""Text beyond 2 GiB: wide inside, as narrow as it came at the exit, cut where it would not fit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import handfast as hf
from handfast.flow.batch import as_batch
from handfast.flow.block import Block
from handfast.flow.wide import narrowed, wide_schema

NESTED = pa.struct([("a", pa.list_(pa.string())), ("b", pa.map_(pa.string(), pa.binary()))])
NARROW = pa.schema([("n", pa.int64()), ("t", pa.string()), ("b", pa.binary()), ("x", NESTED), ("l", pa.large_string())])


def rows(count: int) -> pa.Table:
    return pa.Table.from_pylist(
        [
            {"n": k, "t": f"text {k}" * (k % 5), "b": b"\x00" * k if k % 3 else None, "x": _nested(k), "l": f"l{k}"}
            for k in range(count)
        ],
        NARROW,
    )


def _nested(k: int) -> dict[str, Any] | None:
    return {"a": [f"a{k}", None] * (k % 3), "b": [("k", b"v" * k)]} if k % 4 else None


def test_inside_all_text_is_wide() -> None:
    wide = wide_schema(NARROW)
    assert [pa.int64(), pa.large_string(), pa.large_binary(), pa.large_string()] == [
        wide.types[k] for k in (0, 1, 2, 4)
    ]
    inner = pa.struct([("a", pa.list_(pa.large_string())), ("b", pa.map_(pa.large_string(), pa.large_binary()))])
    assert inner == wide.field("x").type
    table = pa.concat_tables([rows(3), rows(0), rows(4)])
    assert (wide, table.to_pylist()) == (as_batch(table).schema, as_batch(table).to_pylist())


@pytest.mark.parametrize("most", [1, 60, 500, 5_000, 1_000_000])
def test_at_the_exit_batches_are_cut_to_what_fits(most: int) -> None:
    table = rows(50)
    inside = as_batch(table)
    given = list(narrowed([inside.slice(0, 20), inside.slice(20)], NARROW, most))
    assert all(batch.schema == NARROW for batch in given)
    assert table.to_pylist() == pa.Table.from_batches(given).to_pylist()
    wide = [wide_schema(NARROW).get_field_index(name) for name in ("t", "b", "x")]
    sizes = [[inside.slice(start, len(b)).column(k).nbytes for k in wide] for start, b in _placed(given)]
    assert all(max(own) <= most or len(b) == 1 for own, b in zip(sizes, given, strict=True))
    assert (len(given) > 2) is (max(inside.column(k).nbytes for k in wide) > 2 * most)


def _placed(batches: list[pa.RecordBatch]) -> list[tuple[int, pa.RecordBatch]]:
    starts = np.cumsum([0, *map(len, batches)])[:-1]
    return list(zip(starts.tolist(), batches, strict=True))


def test_a_part_of_a_column_far_behind_its_start_is_narrow_again() -> None:
    far = 2**31 + 5
    data = np.zeros(far + 6, np.uint8)  # pages that nobody touches take no memory
    data[far:] = np.frombuffer(b"abcdef", np.uint8)
    offsets = pa.py_buffer(np.array([0, far, far + 3, far + 6], np.int64))
    column = pa.LargeStringArray.from_buffers(3, offsets, pa.py_buffer(data))
    schema = pa.schema([("t", pa.string())])
    part = pa.record_batch([column.slice(1)], ["t"])
    assert [["abc", "def"]] == [batch["t"].to_pylist() for batch in narrowed([part], schema)]


SPEC = hf.JoinSpec(("r", "s"), "r.k = s.k", window="1 hour", time="ts", lateness="0 s", how="left")


def test_users_see_the_types_they_gave() -> None:
    tables = {"r": _texts(range(5), "x"), "s": _texts(range(1, 3), "y")}
    joined = hf.join(tables, SPEC)
    assert (pa.string(), pa.string()) == (joined.schema.field("r_t").type, joined.schema.field("s_t").type)
    with hf.session(SPEC, {name: table.schema for name, table in tables.items()}) as session:
        given = [*session.push_together(tables), *session.push("r", _texts(range(-1, 0), "late"))]
        assert [session.schema] * len(given) == [batch.schema for batch in given]
        assert pa.string() == session.late_rows()["r"].schema.field("t").type
        last = session.close()
        assert [session.schema] * len(last) == [batch.schema for batch in last]


def _texts(ks: range, text: str) -> pa.Table:
    times = pa.array([k * 1_000_000 for k in ks], pa.timestamp("us"))
    return pa.table({"ts": times, "k": pa.array(ks, pa.int64()), "t": pa.array([text] * len(ks), pa.string())})


MEGABYTE = 1 << 20
MANY = 2_560  # of them


def _megabytes(ks: range) -> pa.Table:
    """Rows of a megabyte, in chunks that 32-bit offsets can count."""
    return pa.concat_tables([_texts(ks[start : start + 900], "x" * MEGABYTE) for start in range(0, len(ks), 900)])


@pytest.mark.slow
def test_an_input_of_more_than_2_gib_of_text_joins() -> None:
    found = hf.join(
        {"r": _megabytes(range(MANY)), "s": _texts(range(0, MANY, 500), "y")}, on="r.k = s.k", window="1 s", time="ts"
    )
    assert pa.string() == found.schema.field("r_t").type
    assert list(range(0, MANY, 500)) == sorted(found["r_k"].to_pylist())
    assert {"x" * MEGABYTE} == set(found["r_t"].to_pylist())


@pytest.mark.slow
def test_a_session_holds_more_than_2_gib_of_text() -> None:
    schemas = {"r": _texts(range(0), "").schema, "s": _texts(range(0), "").schema}
    spec = hf.JoinSpec(("r", "s"), "r.k = s.k", window="1 hour", time="ts", lateness="0 s")
    with hf.session(spec, schemas) as session:
        for ks in (range(100), range(100, 200), range(200, MANY)):  # the last of them alone is more than 2 GiB
            session.push("r", _megabytes(ks))
        given = session.push("s", _texts(range(MANY - 1, MANY), "y"))
        assert [(MANY - 1, "x" * MEGABYTE)] == [
            row for batch in given for row in zip(batch["r_k"].to_pylist(), batch["r_t"].to_pylist(), strict=True)
        ]


@pytest.mark.slow
def test_blocks_of_more_than_2_gib_are_gathered_and_cut() -> None:
    pieces = [as_batch(_megabytes(range(k, k + 320))) for k in range(0, MANY, 320)]
    blocks = [Block(b, b["k"].to_numpy() * 1_000_000, np.zeros(len(b), np.uint8)) for b in pieces]
    whole = Block.concat(blocks)
    del pieces, blocks
    assert MANY == len(whole)
    assert [MANY - 2, MANY - 1] == whole.slice(MANY - 2, MANY).batch["k"].to_pylist()
    few = whole.take(np.arange(MANY - 1, -1, -1_000))
    assert [MANY - 1, MANY - 1_001, MANY - 2_001] == few.batch["k"].to_pylist()
    assert {"x" * MEGABYTE} == set(few.batch["t"].to_pylist())
