"""The rows of a result, from the places of the tuples that match."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import pyarrow as pa

from handfast.engines.hardware.steps import Places
from handfast.flow.block import Block
from handfast.flow.wide import narrowed
from handfast.spec.join import BoundJoin


def table_of(join: BoundJoin, blocks: Sequence[Block], places: Iterable[Places], schema: pa.Schema) -> pa.Table:
    """The rows of the result for these matches: by stream, the places of their tuples."""
    members = [block.take(own) for block, own in zip(blocks, places, strict=True)]
    ranks = np.array([np.sum(own.seen, axis=0) for own in members])
    last = ranks.argmax(axis=0)  # the member that came last
    times = np.array([own.times for own in members])[last, np.arange(len(last))]
    columns = [
        pa.array(times).cast(schema.field(f.name).type)
        if f.stream is None
        else members[f.stream].batch.column(f.column)
        for f in join.fields
    ]
    rows = pa.RecordBatch.from_arrays(columns, names=list(join.output_names))
    return pa.Table.from_batches(narrowed([rows], schema), schema)
