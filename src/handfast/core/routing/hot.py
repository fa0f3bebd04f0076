"""Hot keys and hot ranges: named by the user, as the routing finds them among the keys of tuples."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from handfast.core.recipe import recipe
from handfast.core.routing.outgoing import Outgoing
from handfast.errors import SpecError
from handfast.flow.block import HOME, Block
from handfast.kernels.index.bands import BandScale
from handfast.kernels.index.keys import equal_keys
from handfast.plan import Plan
from handfast.spec.expression import Call, Column, Expr, Op
from handfast.spec.shown import shown


@lru_cache(maxsize=32)
def hot_groups(plan: Plan) -> NDArray[np.uint64]:
    """The numbers that `equal_keys` gives tuples with a hot key."""
    keys = plan.keys[plan.anchor]
    columns = [_column(plan, key, "hot_keys") for key in keys]
    rows = [key if len(columns) > 1 else (key,) for key in plan.hot]
    for row, key in zip(rows, plan.hot, strict=True):
        if not isinstance(row, tuple) or len(row) != len(columns):
            raise SpecError(f"hot_keys: a key is a tuple of values of {', '.join(columns)}, not {key!r}")
    values = {column: [row[at] for row in rows] for at, column in enumerate(columns)}
    tuples = _as_tuples(plan, values, len(rows), "hot_keys")
    groups, keyless = equal_keys(tuples.columns, recipe(plan).keys[plan.anchor])
    return groups[~keyless]


@lru_cache(maxsize=32)
def hot_buckets(plan: Plan) -> tuple[tuple[int, int], ...]:
    """The first and the last bucket of each hot range."""
    band = plan.pairs[0].bands[0]
    terms = band.keys[plan.anchor]
    column = _column(plan, terms[0][1] if len(terms) == 1 else None, "hot_ranges")
    for span in plan.hot:
        if not isinstance(span, tuple) or len(span) != 2 or not _is_below(*span):
            raise SpecError(f"hot_ranges: a range is a tuple of its lowest and its highest {column}, not {span!r}")
    values = {column: [end for span in plan.hot for end in span]}
    tuples = _as_tuples(plan, values, 2 * len(plan.hot), "hot_ranges")
    scale = BandScale(band, recipe(plan).program)
    keys = scale.keys(plan.anchor, tuples.columns)
    if (keys.wild | keys.dead).any():
        raise SpecError(f"hot_ranges: {plan.hot} are no numbers that can be told apart beside the band's width")
    ends = scale.buckets(keys).reshape(-1, 2)
    return tuple((int(low), int(high)) for low, high in np.sort(ends, axis=1))


def _is_below(low: Any, high: Any) -> bool:
    """Whether a range goes from one value to another; not, if the two cannot be compared."""
    try:
        return bool(low <= high)
    except (TypeError, ValueError):
        return False


def _column(plan: Plan, key: Expr | None, option: str) -> str:
    """The column that a key is, as it stands or converted to another type."""
    while isinstance(key, Call) and key.op is Op.CAST:
        key = key.args[0]
    if not isinstance(key, Column):
        what = shown(key, plan.join.spec.names) if key is not None else "a sum of columns"
        raise SpecError(
            f"SparkOptions({option}=…) names values of a column, and the key of {plan.name_of(plan.anchor)!r} is {what}"
            "; make it a column of the input"
        )
    return key.name


def _as_tuples(plan: Plan, values: Mapping[str, Sequence[Any]], count: int, option: str) -> Outgoing:
    """Tuples of the anchor with these values, and NULL in all other columns."""
    schema = plan.arrow[plan.anchor]
    try:
        arrays = [
            pa.array(values[field.name], field.type) if field.name in values else pa.nulls(count, field.type)
            for field in schema
        ]
    except (TypeError, ValueError, OverflowError, pa.ArrowException) as error:  # of Arrow's, some are none of its own
        raise SpecError(f"SparkOptions({option}=…): {plan.hot} do not fit {', '.join(values)}: {error}") from error
    batch = pa.RecordBatch.from_arrays(arrays, names=schema.names)
    block = Block(batch, np.zeros(count, np.int64), np.full(count, HOME, np.uint8))
    return Outgoing(plan, recipe(plan), plan.anchor, block, in_turn=False)
