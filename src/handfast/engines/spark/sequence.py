"""The sequencer: where windows count tuples, one task gives every tuple its place before the cores join them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from functools import reduce
from typing import Any

import pandas as pd
import pyarrow as pa
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from handfast.engines.spark.blocks import BlockStore, gather, value_of
from handfast.engines.spark.pack import Packed, as_batch, packed
from handfast.errors import EngineError
from handfast.flow.admission import Admission
from handfast.flow.block import Block
from handfast.flow.stamper import Stamper
from handfast.flow.time import END, Horizon, Progress
from handfast.plan import Plan

Run = Callable[[tuple[pa.Scalar, ...], Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]


class SequenceProcessor(StatefulProcessor):
    """Admits tuples, holds them until their place is final, stamps them and sends them to their cores."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Open the state."""
        self._state = handle.getValueState("sequencer", "sequencer binary")
        self._blocks = BlockStore(handle)

    def handleInputRows(self, key: Any, rows: Any, timerValues: Any) -> Iterator[pd.DataFrame]:
        """One step of the sequencer."""
        join = self._plan.join
        arrivals, punctuations = gather(rows, len(join.schemas))
        admission, stamper, before = self._recall()
        admitted = admission.admit(arrivals, reduce(Progress.advanced, map(Progress.decode, punctuations)))
        stamped, horizon = stamper.stamp(admitted, admission.watermark)
        for row in send(self._plan, stamped, horizon):
            yield pd.DataFrame([row], columns=["core", "stream", "punctuation", "block"])
        self._remember(admission, stamper, before)

    def close(self) -> None:
        """Nothing to close: the state store is Spark's."""

    def _recall(self) -> tuple[Admission, Stamper, list[str]]:
        state = value_of(self._state)
        stamper = Stamper(self._plan.join)
        if state is None:
            return Admission(self._plan.join), stamper, []
        fingerprint, highest, stamper.counts, waiting = json.loads(state)
        if fingerprint != self._plan.fingerprint:
            raise EngineError(
                "The checkpoint was written by another join or for another number of cores; "
                "go back to the join it was started with, or start with a new checkpointLocation"
            )
        stamper.waiting = [[self._blocks.load(id_) for id_ in ids] for ids in waiting]
        return Admission(self._plan.join, Progress(tuple(highest))), stamper, [id_ for ids in waiting for id_ in ids]

    def _remember(self, admission: Admission, stamper: Stamper, before: list[str]) -> None:
        self._blocks.replace(before, (block for own in stamper.waiting for block in own))
        waiting = [[block.id for block in own] for own in stamper.waiting]
        state = [self._plan.fingerprint, admission.progress.highest, stamper.counts, waiting]
        self._state.update((json.dumps(state).encode(),))


def sequence_bounded(plan: Plan) -> Run:
    """A function, as Spark wants it for `applyInArrow`, that stamps all tuples of bounded inputs."""

    def run(key: tuple[pa.Scalar, ...], batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        pieces: list[list[Block]] = [[] for _ in plan.join.schemas]
        for batch in batches:
            for stream, data in zip(batch.column("stream").to_pylist(), batch.column("block"), strict=True):
                if data.is_valid:
                    pieces[stream].append(Block.decode(data.as_py()))
        stamped, horizon = Stamper(plan.join).stamp([Block.concat(own) if own else None for own in pieces], END)
        for row in send(plan, stamped, horizon):
            yield as_batch([row])

    return run


def send(plan: Plan, stamped: list[Block | None], horizon: Horizon) -> Iterator[Packed]:
    """The stamped tuples on their way to the cores; the punctuation goes to every core, whatever it gets."""
    punctuation = horizon.encode()
    for stream, block in enumerate(stamped):
        yield from packed(plan, stream, block, punctuation)
