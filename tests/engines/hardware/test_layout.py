"""Tuples, steps and results in bits are read by the circuit as they were written."""

from __future__ import annotations

import random
import re
from datetime import date
from decimal import Decimal

import pyarrow as pa
import pytest

from handfast.engines.hardware.layout import JoinLayout, TupleLayout, field_of, lay_out, numbers
from handfast.spec import types
from handfast.spec.expression import Call, Column, Op

K, FLAG, PRICE = Column(0, "k", types.INT16), Column(0, "flag", types.BOOLEAN), Column(0, "p", types.decimal(38, 2))
OTHER = Column(1, "k", types.INT64)


def test_a_tuple_is_read_as_it_was_packed() -> None:
    rng = random.Random(1)
    layout = TupleLayout((K, FLAG, PRICE), seq=7, low=5)
    for _ in range(50):
        values = [
            rng.choice((None, -(2**15), 2**15 - 1, rng.randrange(-(2**15), 2**15))),
            rng.choice((None, 0, 1)),
            rng.choice((None, 10**38 - 1, 1 - 10**38, -1)),
        ]
        seq, low = rng.randrange(2**7), rng.randrange(2**5)
        slot = layout.shape.from_bits(layout.pack(seq, low, values))
        read = [None if slot["columns"][c.name]["null"] else slot["columns"][c.name]["value"] for c in (K, FLAG, PRICE)]
        assert (1, seq, low, values) == (slot["valid"], slot["seq"], slot["low"], read)


def test_a_step_says_which_streams_shift() -> None:
    layout = JoinLayout(TupleLayout((K,), seq=4), TupleLayout((OTHER,), seq=4))
    r, s = layout.r.pack(3, 0, [-2]), layout.s.pack(9, 0, [None])
    both, only_s, flush = (layout.pack_step(*step) for step in ((r, s), (None, s), (0, 0)))
    view = layout.step.from_bits(both)
    assert (1, 3, -2, 1, 9, 1) == (
        view["r_shift"],
        view["r"]["seq"],
        view["r"]["columns"]["k"]["value"],
        view["s_shift"],
        view["s"]["seq"],
        view["s"]["columns"]["k"]["null"],
    )
    assert (0, 1) == tuple(layout.step.from_bits(only_s)[name] for name in ("r_shift", "s_shift"))
    assert (1, 1, 0, 0) == tuple(
        int(bit)
        for bit in (
            layout.step.from_bits(flush)["r_shift"],
            layout.step.from_bits(flush)["s_shift"],
            layout.step.from_bits(flush)["r"]["valid"],
            layout.step.from_bits(flush)["s"]["valid"],
        )
    )


def test_only_what_the_predicate_reads_travels_and_stamps_only_where_they_are_compared() -> None:
    equal = Call(Op.EQ, (K, OTHER), types.BOOLEAN)
    plain = lay_out(equal, (8, 9), compares_stamps=False)
    assert ((K,), (OTHER,)) == (plain.r.columns, plain.s.columns)
    assert (3, 4, 7) == (plain.r.seq, plain.s.seq, plain.result_width)
    assert not plain.compares_stamps
    assert (5, 10) == plain.pair(5 | 10 << 3)
    stamped = lay_out(equal, (8, 9), compares_stamps=True)
    assert (4, 4) == (stamped.r.low, stamped.s.low)  # `low` may be 9 of S, and 8 of R: behind the last


@pytest.mark.parametrize(
    ("column", "type_", "expected"),
    [
        (pa.array([1, None, -5], pa.int8()), types.INT8, [1, None, -5]),
        (pa.array([2**32 - 1, None], pa.uint32()), types.INT64, [2**32 - 1, None]),
        (pa.array([True, None, False]), types.BOOLEAN, [1, None, 0]),
        (pa.array([date(1970, 1, 3), None]), types.DATE, [2, None]),
        (pa.array([1_500, None], pa.timestamp("ms", "UTC")), types.TIMESTAMP, [1_500_000, None]),
        (pa.array([-1, 1_999], pa.timestamp("ns")), types.TIMESTAMP_NTZ, [-1, 1]),
        (pa.array([Decimal("9" * 36 + ".99"), None], pa.decimal128(38, 2)), types.decimal(38, 2), [10**38 - 1, None]),
    ],
)  # fmt: skip
def test_values_become_whole_numbers(column: pa.Array, type_: types.Type, expected: list[int | None]) -> None:
    assert expected == numbers(column, type_)


def test_columns_of_any_name_have_fields_of_their_own() -> None:
    names = ["my col", "my_col", "my$20$col", 'q"t', "ключ", "", "$", "a\nb", "a\\b"]
    fields = [field_of(Column(0, name, types.INT8)) for name in names]
    assert len(names) == len(set(fields))
    assert all(re.fullmatch(r"[A-Za-z0-9_$]+", field) for field in fields)
    assert "my_col" == fields[1]
