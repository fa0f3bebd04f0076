"""The sequencer: where windows count tuples, or the result is in order, one task stamps all tuples before they join."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import zip_longest
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from handfast.engines.spark.arrivals import admit, gather, read_blocks
from handfast.engines.spark.blocks import BlockStore
from handfast.engines.spark.bounded import Run
from handfast.engines.spark.checkpoint import about, check
from handfast.engines.spark.deferred import VALUE_OF_SEQUENCER
from handfast.engines.spark.pack import for_cores, for_one_core
from handfast.engines.spark.packed import Packed, as_batch, as_frame
from handfast.engines.spark.residents import settle
from handfast.engines.spark.rows import LATE, RefusedRows, pack_rows
from handfast.flow.admission import Admission
from handfast.flow.block import Block
from handfast.flow.pieces import LIMIT, Limit, gathered_blocks
from handfast.flow.punctuation import Punctuation
from handfast.flow.stamper import Stamper
from handfast.flow.time import END, NEVER, Horizon, LastHeard, Progress
from handfast.plan import Plan


class SequenceProcessor(StatefulProcessor):
    """Admits tuples, holds them until their place is final, stamps them and sends them to their cores."""

    def __init__(self, plan: Plan, limit: Limit = LIMIT) -> None:
        self._plan = plan
        self._limit = limit
        self._about = about(plan)

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Open the state."""
        self._state = handle.getValueState(*VALUE_OF_SEQUENCER)
        self._blocks = BlockStore(handle)

    def handleInputRows(self, key: Any, rows: Any, timerValues: Any) -> Iterator[pd.DataFrame]:
        """One step of the sequencer."""
        join = self._plan.join
        arrivals = gather(rows, len(join.schemas), self._limit)
        admission, stamper, before = self._recall()
        admitted, late = admit(admission, arrivals)
        dispatch = Dispatch(self._plan)
        for stream, block in stamp(stamper, admitted, admission.watermark, self._limit):
            for row in dispatch.piece(stream, block):
                yield as_frame([row])
        horizon = Horizon(admission.watermark, tuple(stamper.counts))
        for stream, waiting in enumerate(stamper.waiting):
            count = sum(map(len, waiting))
            told = Punctuation(arrivals.rows(stream), admission.progress, horizon=horizon, waiting=count)
            for row in dispatch.last(stream, told):
                yield as_frame([row])
        late_rows = [RefusedRows(LATE, k, pack_rows(block.batch)) for k, own in enumerate(late) for block in own]
        for refused in (*arrivals.refused, *late_rows):
            yield as_frame([for_one_core(self._plan.cores, refused)])
        self._remember(admission, stamper, before)
        settle()

    def close(self) -> None:
        """Nothing to close: the state store is Spark's."""

    def _recall(self) -> tuple[Admission, Stamper, list[str]]:
        state = self._state.get()
        stamper = Stamper(self._plan.join)
        if state is None:
            return Admission(self._plan.join), stamper, []
        fingerprint, highest, last_heard, stamper.counts, waiting = json.loads(state[0])
        check(fingerprint, state[1], self._plan)
        stamper.waiting = [[self._blocks.load(id_) for id_ in ids] for ids in waiting]
        admission = Admission(self._plan.join, Progress(tuple(highest)), LastHeard.decode(last_heard))
        return admission, stamper, [id_ for ids in waiting for id_ in ids]

    def _remember(self, admission: Admission, stamper: Stamper, before: list[str]) -> None:
        self._blocks.replace(before, (block for own in stamper.waiting for block in own))
        waiting = [[block.id for block in own] for own in stamper.waiting]
        last_heard = LastHeard.encode(admission.last_heard)
        state = [self._plan.fingerprint, admission.progress.highest, last_heard, stamper.counts, waiting]
        self._state.update((json.dumps(state), self._about))


class Dispatch:
    """The stamped pieces of a batch on their way to the cores; each stream's last piece brings its punctuation."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._streams = len(plan.join.schemas)
        self._held: list[Block | None] = [None] * self._streams
        self._count = [0] * self._streams

    def piece(self, stream: int, block: Block) -> Iterator[Packed]:
        """The packed rows of the piece before this one, which is not the last as it turns out."""
        held, self._held[stream] = self._held[stream], block
        if held is not None:
            yield from for_cores(self._plan, stream, held, self._placed(stream, Punctuation(0, self._nowhere)))

    def last(self, stream: int, told: Punctuation) -> Iterator[Packed]:
        """The packed rows of the last piece, or of the punctuation alone if there was no piece."""
        yield from for_cores(self._plan, stream, self._held[stream], self._placed(stream, told))

    @property
    def _nowhere(self) -> Progress:
        return Progress.start(self._streams)

    def _placed(self, stream: int, told: Punctuation) -> Punctuation:
        self._count[stream] += 1
        return replace(told, place=(0, self._count[stream] - 1))


def stamp(
    stamper: Stamper, admitted: Sequence[Sequence[Block]], watermark: int, limit: Limit
) -> Iterator[tuple[int, Block]]:
    """The tuples whose place is final, stamped, in pieces, each stream's in their order."""
    turns: list[tuple[Sequence[Block | None], int]]
    if stamper.by_arrival and watermark == END:  # of bounded inputs, which a column puts in order
        turns = [([Block.concat(own) if own else None for own in admitted], END)]
    elif stamper.by_arrival:  # all of a stream's tuples in a batch before those of the next
        turns = [(_alone(k, block, len(admitted)), watermark) for k, own in enumerate(admitted) for block in own]
    else:
        for step in zip_longest(*admitted):
            stamper.stamp(step, NEVER)  # they wait with the others
        turns = [([None] * len(admitted), cut) for cut in (*_cuts(stamper, watermark, limit), watermark)]
    for arrivals, until in turns:
        stamped, _ = stamper.stamp(arrivals, until)
        for stream, block in enumerate(stamped):
            if block is not None:
                for piece in gathered_blocks([block], limit):
                    yield stream, piece


def _alone(stream: int, block: Block, streams: int) -> list[Block | None]:
    return [block if k == stream else None for k in range(streams)]


def _cuts(stamper: Stamper, watermark: int, limit: Limit) -> list[int]:
    """Times below the watermark that divide what waits into pieces of about the limit's size."""
    final = [block for own in stamper.waiting for block in own if block.least_time < watermark]
    parts = -(-sum(block.size for block in final) // limit.bytes)
    if parts < 2:
        return []
    times = np.sort(np.concatenate([block.times for block in final]))
    times = times[times < watermark]
    return [int(time) for time in np.unique(times[[len(times) * k // parts for k in range(1, parts)]])]


def sequence_bounded(plan: Plan, limit: Limit = LIMIT) -> Run:
    """A function, as Spark wants it for `applyInArrow`, that stamps all tuples of bounded inputs."""

    def run(key: tuple[pa.Scalar, ...], batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        pieces = read_blocks(batches, len(plan.join.schemas))
        stamper, dispatch = Stamper(plan.join), Dispatch(plan)
        for stream, block in stamp(stamper, pieces, END, limit):
            for row in dispatch.piece(stream, block):
                yield as_batch([row])
        horizon = Horizon(END, tuple(stamper.counts))
        for stream, own in enumerate(pieces):
            for row in dispatch.last(
                stream, Punctuation(sum(map(len, own)), Progress.start(len(pieces)), horizon=horizon)
            ):
                yield as_batch([row])

    return run
