"""What comes for a core in a batch: blocks of tuples, punctuations, and rows that were refused on the way."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import reduce

import pandas as pd
import pyarrow as pa

from handfast.engines.spark.packed import read_batch, read_frame, time_of
from handfast.engines.spark.rows import RefusedRows
from handfast.flow.admission import Admission
from handfast.flow.block import Block
from handfast.flow.pieces import Limit, gathered_blocks
from handfast.flow.punctuation import Punctuation
from handfast.flow.time import Progress


@dataclass(frozen=True, slots=True)
class Arrivals:
    """What came for one core, or for the sequencer.

    Attributes:
        blocks: The tuples of each stream, in pieces.
        punctuations: The punctuations of each stream.
        refused: Rows that were refused on the way here.
        now: The batch's processing time in microseconds, the same when it runs again; 0 where nobody asks for it.
    """

    blocks: list[list[Block]]
    punctuations: list[list[Punctuation]]
    refused: list[RefusedRows]
    now: int = 0

    @property
    def progress(self) -> Progress:
        """How far the streams have come with what has arrived."""
        start = Progress.start(len(self.blocks))
        return reduce(Progress.advanced, (p.progress for own in self.punctuations for p in own), start)

    def rows(self, stream: int) -> int:
        """How many rows of a stream were read from the input, admitted or not."""
        return sum(punctuation.rows for punctuation in self.punctuations[stream])

    def waiting(self, stream: int) -> int:
        """How many tuples of a stream wait at the sequencer for their place to be final."""
        return sum(punctuation.waiting for punctuation in self.punctuations[stream])


def gather(frames: Iterator[pd.DataFrame], streams: int, limit: Limit) -> Arrivals:
    """All that the packed rows for one core bring."""
    pieces: list[list[tuple[tuple[int, int], bytes]]] = [[] for _ in range(streams)]
    punctuations: list[list[Punctuation]] = [[] for _ in range(streams)]
    refused: list[RefusedRows] = []
    now = 0
    for frame in frames:
        now = time_of(frame)
        for row in read_frame(frame):
            if row.refused is not None:
                refused.append(row.refused)
            if row.punctuation is None:
                continue
            told = Punctuation.decode(row.punctuation)
            punctuations[row.stream].append(told)
            if row.block is not None:
                pieces[row.stream].append((told.place, row.block))
    # In the order of their places, since a task that runs again may get them in another one: all its attempts must
    # write the same state, as Spark may keep the snapshot of one and the changes that another made to its own.
    decoded = ((Block.decode(data) for _, data in sorted(own)) for own in pieces)
    blocks = [list(gathered_blocks(own, limit)) for own in decoded]
    return Arrivals(blocks, punctuations, sorted(refused), now)


def admit(admission: Admission, arrivals: Arrivals) -> tuple[list[list[Block]], list[list[Block]]]:
    """The tuples of a batch that are in time, and those that are late, by stream."""
    flat = [block for own in arrivals.blocks for block in own]
    streams = [stream for stream, own in enumerate(arrivals.blocks) for _ in own]
    in_time, late = admission.admit(flat, arrivals.progress, arrivals.now)
    return _by_stream(in_time, streams, len(arrivals.blocks)), _by_stream(late, streams, len(arrivals.blocks))


def _by_stream(blocks: Sequence[Block | None], streams: Sequence[int], count: int) -> list[list[Block]]:
    found: list[list[Block]] = [[] for _ in range(count)]
    for block, stream in zip(blocks, streams, strict=True):
        if block is not None:
            found[stream].append(block)
    return found


def read_blocks(batches: Iterator[pa.RecordBatch], streams: int) -> list[list[Block]]:
    """The blocks of bounded inputs, by stream."""
    pieces: list[list[Block]] = [[] for _ in range(streams)]
    for batch in batches:
        for row in read_batch(batch):
            if row.refused is None and row.block is not None:
                pieces[row.stream].append(Block.decode(row.block))
    return pieces
