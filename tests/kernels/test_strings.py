"""Strings as numbers."""

from __future__ import annotations

import pyarrow as pa

from handfast.kernels.strings import StringTable


def test_a_scratch_table_has_the_same_codes_and_keeps_its_own_to_itself() -> None:
    table = StringTable()
    b, a = table.code("b"), table.code("a")
    scratch = table.scratch()
    c = scratch.code("ab")
    assert [b, a, c] == [scratch.code(text) for text in ("b", "a", "ab")]
    assert ["b", "a", "ab"] == [scratch.text(code) for code in (b, a, c)]
    assert [2, 0, 1] == scratch.ranks().tolist()
    assert (2, 3) == (len(table), len(scratch))
    assert table.find("ab") is None


def test_binaries_are_ranked_byte_by_byte() -> None:
    table = StringTable()
    codes = table.encode(pa.array([b"\x80", b"", b"\x7f\xff", b"\x7f"]))
    assert [3, 0, 2, 1] == table.ranks()[codes].tolist()
