"""Ties: which of two tuples of one stream with the same time comes first. Nowhere else is this decided."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import date, time, timedelta
from decimal import Decimal
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from handfast.flow.block import Block
from handfast.flow.gather import gather
from handfast.flow.pieces import LIMIT
from handfast.flow.size import content_bytes
from handfast.flow.time import days, micros

RANK = "#handfast rank"  # a column of matches on their way into order


def by_time(block: Block, sequence: str | None) -> Block:
    """The block's tuples by time, then by the `sequence` column if there is one, then by all columns as Spark sorts.

    Rows equal in every column are interchangeable.
    """
    return block.take(_order(block.batch, block.times, sequence))


def by_sequence(
    blocks: Sequence[Block | None], sequences: Sequence[str | None]
) -> tuple[list[Block | None], list[NDArray[np.int64]]]:
    """Each block's tuples by their `sequence` column, then by all columns; and the places of the values among all."""
    named = [b.batch.column(n) for b, n in zip(blocks, sequences, strict=True) if b is not None and n is not None]
    columns = [_widest(column) for column in named]
    places = np.split(_ordinals(pa.concat_arrays(columns)), np.cumsum([len(c) for c in columns])) if columns else []
    ordered: list[Block | None] = []
    keys: list[NDArray[np.int64]] = []
    for block in blocks:
        own = places.pop(0) if block is not None else np.empty(0, np.int64)
        order = _order(block.batch, own, None) if block is not None else own
        ordered.append(block.take(order) if block is not None else None)
        keys.append(own[order])
    return ordered, keys


def _widest(column: pa.Array) -> pa.Array:
    """A column in the layout that all columns of its type fit in, so that those of several streams can be ordered."""
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    kind = column.type
    if pa.types.is_timestamp(kind):
        return pa.array(micros(column), mask=column.is_null().to_numpy(zero_copy_only=False))
    if pa.types.is_integer(kind) and not pa.types.is_uint64(kind):  # those stand among themselves
        return column.cast(pa.int64())
    if pa.types.is_string(kind):
        return column.cast(pa.large_string())
    if pa.types.is_binary(kind) or pa.types.is_fixed_size_binary(kind):
        return column.cast(pa.large_binary())
    if pa.types.is_date64(kind):
        numbers = days(column).astype(np.int32)
        return pa.array(numbers, pa.date32(), mask=column.is_null().to_numpy(zero_copy_only=False))
    if pa.types.is_decimal(kind):
        return column.cast(pa.decimal128(max(kind.precision, kind.scale), kind.scale))
    return column


def _order(batch: pa.RecordBatch, keys: NDArray[np.int64], sequence: str | None) -> NDArray[np.int64]:
    """The positions of rows by their keys, then by the `sequence` column, then by all columns."""
    order = np.argsort(keys, kind="stable")
    sorted_keys = keys[order]
    same = sorted_keys[1:] == sorted_keys[:-1]
    if same.any():
        tied = np.flatnonzero(np.append(same, False) | np.insert(same, 0, False))
        rows = batch.take(pa.array(order[tied]))
        first = [rows.column(sequence)] if sequence is not None else []
        ordinals = [_ordinals(column) for column in (*first, *rows.columns)]
        order[tied] = order[tied][np.lexsort((*reversed(ordinals), sorted_keys[tied]))]
    return order


def ranked(rows: Block) -> pa.RecordBatch:
    """Rows of the result, stamped as their `at` is, with its rank: how many tuples of all streams came before."""
    return rows.batch.append_column(RANK, pa.array(np.sum(rows.seen, axis=0)))


def by_rank(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Rows that carry the rank of their `at`, all together in its order and without it."""
    rows = [batch for batch in batches if batch.num_rows]
    if not rows:
        return
    ranks = np.concatenate([batch.column(RANK).to_numpy() for batch in rows])
    counts = [batch.num_rows for batch in rows]
    order = np.argsort(ranks, kind="stable")
    owners = np.repeat(np.arange(len(rows)), counts)[order]
    places = np.concatenate([np.arange(count) for count in counts])[order]
    given = [batch.drop_columns([RANK]) for batch in rows]
    step = LIMIT.step(len(order), sum(map(content_bytes, given)))
    for start in range(0, len(order), step):
        yield gather(given, owners[start : start + step], places[start : start + step])


def _ordinals(column: pa.Array) -> NDArray[np.int64]:
    """Each value's place in Spark's order: NULL first, NaN last."""
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if pa.types.is_boolean(column.type):
        column = column.cast(pa.int8())
    if pa.types.is_timestamp(column.type):
        column = pa.array(
            micros(column), mask=column.is_null().to_numpy(zero_copy_only=False)
        )  # Spark has no finer ones
    try:
        ordinals: NDArray[np.int64] = (
            pc.rank(column, tiebreaker="dense").to_numpy(zero_copy_only=False).astype(np.int64)
        )
    except (pa.ArrowNotImplementedError, TypeError):
        return _ordinals_of_values(column)
    ordinals[column.is_null().to_numpy(zero_copy_only=False)] = 0
    if pa.types.is_floating(column.type):
        nan = pc.fill_null(pc.is_nan(column), False).to_numpy(zero_copy_only=False)
        ordinals[nan] = len(column) + 1  # Arrow puts NaN beside NULL
    return ordinals


def _ordinals_of_values(column: pa.Array) -> NDArray[np.int64]:
    # of a union's values, which have no order among each other, any order will do
    key = repr if pa.types.is_union(column.type) else _key
    keys: list[Any] = [key(value) for value in column.to_pylist()]
    order = sorted(range(len(keys)), key=keys.__getitem__)
    ordinals = np.zeros(len(keys), np.int64)
    ordinal = 0
    for before, at in pairwise(order):
        ordinal += keys[before] != keys[at]
        ordinals[at] = ordinal
    return ordinals


def _key(value: Any) -> tuple[Any, ...]:
    """A key that sorts as Spark does, item by item."""
    if value is None:
        return (0,)
    if isinstance(value, float):
        return (1, value != value, 0.0 if value != value else value)
    if isinstance(value, dict):
        return (1, [_key(item) for item in value.values()])
    if isinstance(value, list | tuple):
        return (1, [_key(item) for item in value])
    if isinstance(value, str | bytes | bool | int | Decimal | date | time | timedelta):
        return (1, value)
    return (1, repr(value))  # Spark has no such type: any order will do, as long as it is one
