"""The join: blocks in, matches out, state as blocks. Every engine only feeds JoinCores and keeps their blocks."""

from __future__ import annotations

import hashlib
import json
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain

import numpy as np
import pyarrow as pa

from handfast.core.held import Held
from handfast.core.output import Output
from handfast.core.probe import Arrivals, Members, Prober
from handfast.core.recipe import recipe
from handfast.core.segment import Marks, Segment
from handfast.core.span import window_span
from handfast.errors import EngineError
from handfast.flow.block import EVERYWHERE, HOME, Block
from handfast.flow.order import ranked
from handfast.flow.time import Horizon, Progress
from handfast.kernels.strings import StringTable
from handfast.plan import Plan, Routing
from handfast.spec.fingerprint import Fingerprint

_SPARE_STRINGS = 4096


@dataclass(frozen=True, slots=True)
class Manifest:
    """A core's state but for the blocks themselves: how far the streams had come, and which blocks it holds.

    `marks` has, for the streams of which it is asked what matches nothing, each block's marks as text; `held` names the
    blocks of rows that wait to be given in order.
    """

    fingerprint: Fingerprint | str  # text where it was written before it had fields
    progress: Progress
    blocks: tuple[tuple[str, ...], ...]
    marks: tuple[tuple[str, ...], ...]
    held: tuple[str, ...] = ()

    def encode(self) -> bytes:
        held = [self.held] if self.held else []
        return json.dumps([self.fingerprint, self.progress.highest, self.blocks, self.marks, *held]).encode()

    @staticmethod
    def decode(data: bytes) -> Manifest:
        fingerprint, highest, blocks, marks, *held = json.loads(data)
        named = tuple(map(tuple, blocks)), tuple(map(tuple, marks)), *map(tuple, held)
        return Manifest(fingerprint, Progress(tuple(highest)), *named)

    @property
    def ids(self) -> Iterator[str]:
        """Every block that the manifest names."""
        return chain(*self.blocks, self.held)

    def marks_of(self, blocks: Sequence[Sequence[Block]]) -> list[list[Marks]]:
        """The marks of these blocks, which the manifest names."""
        return [
            [_unpacked(marks[k] if marks else "", len(block)) for k, block in enumerate(own)]
            for own, marks in zip(blocks, self.marks, strict=True)
        ]

    @property
    def digest(self) -> str:
        """The same for the same state."""
        return hashlib.blake2b(self.encode(), digest_size=16).hexdigest()


class JoinCore:
    """One core's share of the join: it scans, inserts and expires, and decides matches by stamps alone."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self._recipe = recipe(plan)
        self.expired = [0] * len(plan.join.schemas)  # tuples at home here that have left their windows
        self._held = Held(plan.join)
        self._forget()

    # -- state -----------------------------------------------------------------------------------

    @property
    def segments(self) -> list[Segment]:
        return self._segments

    def blocks(self) -> Iterator[Block]:
        """Every block that the core holds."""
        return chain(*(segment.blocks for segment in self._segments), self._held.blocks)

    def manifest(self, progress: Progress) -> Manifest:
        """The state after the last step, which had brought the streams as far as `progress` says."""
        blocks = tuple(tuple(block.id for block in segment.blocks) for segment in self._segments)
        marks = tuple(
            tuple(_packed(own) for own in segment.marks) if stream in self.plan.join.preserved else ()
            for stream, segment in enumerate(self._segments)
        )
        return Manifest(self.plan.fingerprint, progress, blocks, marks, tuple(rows.id for rows in self._held.blocks))

    @staticmethod
    def restore(plan: Plan, manifest: Manifest, load: Callable[[str], Block]) -> JoinCore:
        """A core in the state that a manifest describes; `load` gives a block by its id."""
        if manifest.fingerprint != plan.fingerprint:
            raise EngineError(
                "The checkpoint was written by another join or for another number of cores; "
                "go back to the join it was started with, or start with a new checkpointLocation and a new path"
            )
        core = JoinCore(plan)
        blocks = [[load(id_) for id_ in ids] for ids in manifest.blocks]
        core._store_anew(blocks, manifest.marks_of(blocks))
        core._held.blocks = [load(id_) for id_ in manifest.held]
        return core

    def _forget(self) -> None:
        self._strings = StringTable()
        self._reader = self._recipe.reader(self._strings)
        self._segments = [Segment(self._recipe.new_indexes(stream)) for stream in range(len(self.plan.join.schemas))]
        self._prober = Prober(self._recipe, self._reader, self._segments)
        self._output = Output(self.plan, self._segments)

    def _store_anew(self, blocks: list[list[Block]], marks: list[list[Marks]]) -> None:
        """Hold just these blocks, everything derived from them made again."""
        self._forget()
        for stream, own in enumerate(zip(blocks, marks, strict=True)):
            for block, settled in zip(*own, strict=True):
                self._store(self._read(stream, block, settled))

    # -- a step ----------------------------------------------------------------------------------

    def step(self, admitted: Sequence[Block | None], horizon: Horizon) -> Iterator[pa.RecordBatch]:
        """Join new blocks, at most one of each stream, with the windows and with each other, then store them.

        `horizon` is what no tuple of a later step can fall below. The state changes as the matches are taken out: take
        them all before asking for it.
        """
        yield from self._shown(self._held.release(self._decided(admitted, horizon), horizon))
        self._expire(horizon)

    def meet(self, stream: int, block: Block) -> Iterator[pa.RecordBatch]:
        """Join a block with the stored tuples of the other streams, then store it whole, until it is removed."""
        new = self._read(stream, block, np.zeros(len(block), np.bool_))
        yield from self._shown(self._scan(new))
        self._store(new)

    def remove(self, stream: int, block: Block) -> None:
        """Let a stored block go."""
        self._segments[stream].remove(block)
        self._renew()

    def _decided(self, admitted: Sequence[Block | None], horizon: Horizon) -> Iterator[Block]:
        """The rows that new blocks and the horizon decide; the blocks are stored."""
        for stream, block in enumerate(admitted):
            if block is not None:
                # in order, so that partners lie together: input may come in any
                new = self._read(stream, block.in_order(), np.zeros(len(block), np.bool_))
                yield from self._scan(new)
                self._insert(new)
        yield from self._output.unmatched(horizon)

    def _shown(self, given: Iterable[Block]) -> Iterator[pa.RecordBatch]:
        """Rows as they leave the core: with their ranks, where they are given in order."""
        return (ranked(rows) if self.plan.join.spec.in_order else rows.batch for rows in given)

    def _scan(self, new: Arrivals) -> Iterator[Block]:
        for members in self._prober.matches(new):
            yield from self._output.matched(new, self._own(new, members))
        yield from self._output.turned(new)

    def _read(self, stream: int, block: Block, marks: Marks) -> Arrivals:
        columns = self._reader.read(stream, block)
        return Arrivals(stream, block, columns, self._segments[stream].keys(columns), marks)

    def _insert(self, new: Arrivals) -> None:
        """Store the new tuples that are to be stored here."""
        kept = np.ones(len(new.block), np.bool_)
        if self.plan.routing is Routing.MEET and self.plan.cores > 1:
            kept = (new.block.flags & HOME) != 0
        if new.stream not in self.plan.join.preserved:
            for keys in new.keys.values():  # what can never match is gone at once
                self.expired[new.stream] += int(np.count_nonzero(keys.dead & kept & ((new.block.flags & HOME) != 0)))
                kept &= ~keys.dead
        if kept.all():
            self._store(new)
        elif kept.any():
            self._store(self._read(new.stream, new.block.take(kept), new.marks[kept]))

    def _store(self, new: Arrivals) -> None:
        self._segments[new.stream].insert(new.block, new.columns, new.keys, new.marks)

    def _own(self, new: Arrivals, members: Members) -> Members:
        """The matches that are this core's to give: a pair that meets on several cores belongs to one.

        That is so for tuples that went everywhere, where routing is by range. Where neither of the two did, they meet
        on one core only. Otherwise the pair is given at the home of the one that did not, and at the first stream's
        home where both did.
        """
        if self.plan.routing is not Routing.RANGE or self.plan.cores == 1 or self.plan.join.preserved:
            return members
        if not self._segments[1 - new.stream].everywhere and not (new.block.flags & EVERYWHERE).any():
            return members
        r, s = (
            (new.block.flags if stream == new.stream else self._segments[stream].flags)[members[stream]]
            for stream in (0, 1)
        )
        r_everywhere, s_everywhere = (r & EVERYWHERE) != 0, (s & EVERYWHERE) != 0
        decider = np.where(s_everywhere, r, s)
        owned = ~(r_everywhere | s_everywhere) | ((decider & HOME) != 0)
        return {stream: positions[owned] for stream, positions in members.items()}

    def _expire(self, horizon: Horizon) -> None:
        """Free what no tuple still to come can meet, and keep the number of blocks small."""
        streams = self.plan.join.spec.streams
        lateness = max(stream.lateness or 0 for stream in streams)
        for stream, segment in enumerate(self._segments):
            span = window_span(streams[stream].window, stream, lateness)
            freed = segment.expire(partial(span.is_over, horizon=horizon))
            self.expired[stream] += sum(block.at_home for block in freed)
            segment.merge(span.fits)
        self._renew()

    def _renew(self) -> None:
        """Build the segments anew where too much in them is of the past."""
        live = sum(segment.live for segment in self._segments)
        inputs = sum(map(len, self._recipe.program.inputs))
        many_strings = len(self._strings) > 2 * live * inputs + _SPARE_STRINGS
        if many_strings or any(segment.is_worn for segment in self._segments):
            self._store_anew(
                [segment.blocks for segment in self._segments], [segment.marks for segment in self._segments]
            )


def _packed(marks: Marks) -> str:
    """Marks as text, a bit each; none at all is the empty one."""
    return b64encode(np.packbits(marks).tobytes()).decode() if marks.any() else ""


def _unpacked(text: str, count: int) -> Marks:
    if not text:
        return np.zeros(count, np.bool_)
    return np.unpackbits(np.frombuffer(b64decode(text), np.uint8), count=count).astype(np.bool_)
