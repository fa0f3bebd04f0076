"""Strings as numbers."""

from __future__ import annotations

import random

import numpy as np
import pyarrow as pa
import pytest

from handfast.kernels.strings import StringTable


def test_a_scratch_table_has_the_same_codes_and_keeps_its_own_to_itself() -> None:
    table = StringTable()
    b, a = table.code("b"), table.code("a")
    scratch = table.scratch()
    c = scratch.code("ab")
    assert [b, a, c] == [scratch.code(text) for text in ("b", "a", "ab")]
    assert ["b", "a", "ab"] == [scratch.text(code) for code in (b, a, c)]
    assert [1, 2, 0] == np.argsort(scratch.ordinals()).tolist()
    assert (2, 3) == (len(table), len(scratch))
    assert table.find("ab") is None


def test_binaries_are_ordered_byte_by_byte() -> None:
    table = StringTable()
    codes = table.encode(pa.array([b"\x80", b"", b"\x7f\xff", b"\x7f"]))
    assert [1, 3, 2, 0] == np.argsort(table.ordinals()[codes]).tolist()


@pytest.mark.parametrize("seed", range(20))
def test_ordinals_order_as_the_strings_do_whenever_they_come(seed: int) -> None:
    rng = random.Random(seed)
    table = StringTable()
    for _ in range(60):
        for _ in range(rng.choice([0, 1, 2, 30])):
            # between others again and again, at the ends, and anywhere
            table.code(rng.choice(["m" * rng.randrange(80), str(rng.random()), "a" + "b" * rng.randrange(99) + "a"]))
        for known in (table, scratch := table.scratch()):
            order = np.argsort(known.ordinals(), kind="stable").tolist()
            assert sorted(known.texts()) == [known.text(code) for code in order]
            assert len(set(known.ordinals().tolist())) == len(known)
            scratch.code(str(rng.random()))
        order = np.argsort(scratch.ordinals()).tolist()
        assert sorted(scratch.texts()) == [scratch.text(code) for code in order]


@pytest.mark.parametrize("come", ["anywhere", "one behind the other", "one before the other"])
def test_a_new_string_is_not_compared_with_all_that_are_known(come: str) -> None:
    compared = 0

    class Counted(str):
        def __lt__(self, other: str) -> bool:
            nonlocal compared
            compared += 1
            return str.__lt__(self, other)

    table = StringTable()
    rng = random.Random(7)
    table.code(Counted("\uffff"))  # so that the others come between two
    table.code(Counted(""))
    texts = [f"{rng.random():.12f}" for _ in range(8_000)]
    if come != "anywhere":
        texts.sort(reverse=come == "one before the other")
    for start in range(0, len(texts), 20):
        for text in texts[start : start + 20]:
            table.code(Counted(text))
        table.ordinals()
    assert compared < 8_000 * 60, "it grows with the logarithm of what is known, not with what is known"
