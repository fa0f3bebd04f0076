"""The sequencer: where windows count tuples, one task gives every tuple its place before the cores join them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pandas as pd
import pyarrow as pa
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from handfast.engines.spark.arrivals import Refused, gather, read_blocks
from handfast.engines.spark.blocks import BlockStore
from handfast.engines.spark.bounded import Run
from handfast.engines.spark.checkpoint import about, another_join
from handfast.engines.spark.output import LATE, pack_rows
from handfast.engines.spark.pack import as_batch, packed, refused
from handfast.flow.admission import Admission
from handfast.flow.block import Block
from handfast.flow.punctuation import Punctuation
from handfast.flow.stamper import Stamper
from handfast.flow.time import END, Attention, Progress
from handfast.plan import Plan

_COLUMNS = ["core", "stream", "kind", "punctuation", "block"]


class SequenceProcessor(StatefulProcessor):
    """Admits tuples, holds them until their place is final, stamps them and sends them to their cores."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._about = about(plan)

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Open the state."""
        self._state = handle.getValueState("sequencer", "sequencer string, about string")
        self._blocks = BlockStore(handle)

    def handleInputRows(self, key: Any, rows: Any, timerValues: Any) -> Iterator[pd.DataFrame]:
        """One step of the sequencer."""
        join = self._plan.join
        arrivals = gather(rows, len(join.schemas))
        admission, stamper, before = self._recall()
        admitted, late = admission.admit(arrivals.blocks, arrivals.progress, arrivals.now)
        stamped, horizon = stamper.stamp(admitted, admission.watermark)
        for stream, block in enumerate(stamped):
            waiting = sum(map(len, stamper.waiting[stream]))
            told = Punctuation(arrivals.rows(stream), admission.progress, horizon=horizon, waiting=waiting)
            for row in packed(self._plan, stream, block, told):
                yield pd.DataFrame([row], columns=_COLUMNS)
        left_out: list[Refused] = [*arrivals.refused]
        left_out += [(LATE, k, pack_rows(block.batch)) for k, block in enumerate(late) if block is not None]
        for kind, stream, data in left_out:
            yield pd.DataFrame([refused(self._plan.cores, stream, kind, data)], columns=_COLUMNS)
        self._remember(admission, stamper, before)

    def close(self) -> None:
        """Nothing to close: the state store is Spark's."""

    def _recall(self) -> tuple[Admission, Stamper, list[str]]:
        state = self._state.get()
        stamper = Stamper(self._plan.join)
        if state is None:
            return Admission(self._plan.join), stamper, []
        fingerprint, highest, attention, stamper.counts, waiting = json.loads(state[0])
        if fingerprint != self._plan.fingerprint:
            raise another_join(state[1], self._plan)
        stamper.waiting = [[self._blocks.load(id_) for id_ in ids] for ids in waiting]
        admission = Admission(self._plan.join, Progress(tuple(highest)), Attention.decode(attention))
        return admission, stamper, [id_ for ids in waiting for id_ in ids]

    def _remember(self, admission: Admission, stamper: Stamper, before: list[str]) -> None:
        self._blocks.replace(before, (block for own in stamper.waiting for block in own))
        waiting = [[block.id for block in own] for own in stamper.waiting]
        attention = Attention.encode(admission.attention)
        state = [self._plan.fingerprint, admission.progress.highest, attention, stamper.counts, waiting]
        self._state.update((json.dumps(state), self._about))


def sequence_bounded(plan: Plan) -> Run:
    """A function, as Spark wants it for `applyInArrow`, that stamps all tuples of bounded inputs."""

    def run(key: tuple[pa.Scalar, ...], batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        pieces = read_blocks(batches, len(plan.join.schemas))
        stamped, horizon = Stamper(plan.join).stamp([Block.concat(own) if own else None for own in pieces], END)
        for stream, block in enumerate(stamped):
            told = Punctuation(sum(map(len, pieces[stream])), Progress.start(len(pieces)), horizon=horizon)
            for row in packed(plan, stream, block, told):
                yield as_batch([row])

    return run
