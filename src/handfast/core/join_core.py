"""The join: blocks in, matches out, state as blocks. Every engine only feeds JoinCores and keeps their blocks."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from handfast.core.recipe import recipe
from handfast.core.segment import Segment
from handfast.core.span import window_span
from handfast.errors import EngineError
from handfast.flow.block import EVERYWHERE, HOME, Block
from handfast.flow.time import Horizon, Progress
from handfast.kernels.columns import Columns
from handfast.kernels.keys import Keys
from handfast.kernels.pairs import Pairs, Positions
from handfast.kernels.strings import StringTable
from handfast.plan import Plan, Routing

_CROSSED = 1 << 20  # candidates tried at a time when wild tuples meet everyone
_EMITTED = 1 << 16  # matches in one batch of output
_SPARE_STRINGS = 4096


@dataclass(frozen=True, slots=True)
class Manifest:
    """A core's state but for the blocks themselves: how far the streams had come, and which blocks it holds."""

    fingerprint: str
    progress: Progress
    blocks: tuple[tuple[str, ...], ...]

    def encode(self) -> bytes:
        return json.dumps([self.fingerprint, self.progress.highest, self.blocks]).encode()

    @staticmethod
    def decode(data: bytes) -> Manifest:
        fingerprint, highest, blocks = json.loads(data)
        return Manifest(fingerprint, Progress(tuple(highest)), tuple(map(tuple, blocks)))

    @property
    def digest(self) -> str:
        """The same for the same state."""
        return hashlib.blake2b(self.encode(), digest_size=16).hexdigest()


@dataclass(slots=True)
class _Run:
    """New or stored tuples of one stream, as a probe sees them."""

    columns: Columns
    flags: NDArray[np.uint8]
    keys: Keys | None


class JoinCore:
    """One core's share of the join: it scans, inserts and expires, and decides matches by stamps alone."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self._recipe = recipe(plan)
        self.expired = [0] * len(plan.join.schemas)  # tuples at home here that have left their windows
        self._forget()

    # -- state -----------------------------------------------------------------------------------

    @property
    def segments(self) -> list[Segment]:
        return self._segments

    def blocks(self) -> Iterator[Block]:
        """Every block that the core holds."""
        return (block for segment in self._segments for block in segment.blocks)

    def manifest(self, progress: Progress) -> Manifest:
        """The state after the last step, which had brought the streams as far as `progress` says."""
        blocks = tuple(tuple(block.id for block in segment.blocks) for segment in self._segments)
        return Manifest(self.plan.fingerprint, progress, blocks)

    @staticmethod
    def restore(plan: Plan, manifest: Manifest, load: Callable[[str], Block]) -> JoinCore:
        """A core in the state that a manifest describes; `load` gives a block by its id."""
        if manifest.fingerprint != plan.fingerprint:
            raise EngineError(
                "The checkpoint was written by another join or for another number of cores; "
                "go back to the join it was started with, or start with a new checkpointLocation"
            )
        core = JoinCore(plan)
        core._store_anew([[load(id_) for id_ in ids] for ids in manifest.blocks])
        return core

    def _forget(self) -> None:
        self._strings = StringTable()
        self._reader = self._recipe.reader(self._strings)
        self._segments = [Segment(indexed=self.plan.indexed) for _ in self.plan.join.schemas]

    def _store_anew(self, blocks: list[list[Block]]) -> None:
        """Hold just these blocks, everything derived from them made again."""
        self._forget()
        for stream, own in enumerate(blocks):
            for block in own:
                run = self._read(stream, block)
                self._segments[stream].insert(block, run.columns, run.keys)

    # -- a step ----------------------------------------------------------------------------------

    def step(self, admitted: Sequence[Block | None], horizon: Horizon) -> Iterator[pa.RecordBatch]:
        """Join new blocks, at most one of each stream, with the windows and with each other, then store them.

        `horizon` is what no tuple of a later step can fall below. The state changes as the matches are taken out: take
        them all before asking for it.
        """
        for stream, block in enumerate(admitted):
            if block is not None:
                run = self._read(stream, block)
                yield from self._meet(stream, block, run)
                self._insert(stream, block, run)
        self._expire(horizon)

    def _read(self, stream: int, block: Block) -> _Run:
        columns = self._reader.read(stream, block)
        keys = self._recipe.keys.make(stream, columns) if self._recipe.keys is not None else None
        return _Run(columns, block.flags, keys)

    def _insert(self, stream: int, block: Block, run: _Run) -> None:
        if self.plan.routing is Routing.MEET and self.plan.cores > 1:
            home = (block.flags & HOME) != 0
            block = block.take(home)
            if not len(block):
                return
            run = self._read(stream, block)
        self._segments[stream].insert(block, run.columns, run.keys)

    def _expire(self, horizon: Horizon) -> None:
        """Free what no tuple still to come can meet, and keep the number of blocks small."""
        for stream, segment in enumerate(self._segments):
            span = window_span(self.plan.join.spec.streams[stream].window, stream)
            freed = segment.expire(lambda block, span=span: span.is_over(block, horizon))  # type: ignore[misc]
            self.expired[stream] += sum(block.at_home for block in freed)
            segment.merge(span.fits)
        live = sum(segment.live for segment in self._segments)
        inputs = sum(map(len, self._recipe.program.inputs))
        many_strings = len(self._strings) > 2 * live * inputs + _SPARE_STRINGS
        if many_strings or any(segment.is_worn for segment in self._segments):
            self._store_anew([segment.blocks for segment in self._segments])

    # -- meeting ---------------------------------------------------------------------------------

    def _meet(self, stream: int, block: Block, run: _Run) -> Iterator[pa.RecordBatch]:
        """The matches of new tuples of one stream with the stored tuples of the other."""
        stored = self._segments[1 - stream]
        if not stored.live:
            return
        for new_at, stored_at in self._pairs(stream, run, stored):
            if self.plan.routing is Routing.RANGE and self.plan.cores > 1:
                owned = self._owned(stream, run.flags[new_at], stored.flags[stored_at])
                new_at, stored_at = new_at[owned], stored_at[owned]
            for start in range(0, len(new_at), _EMITTED):
                stop = start + _EMITTED
                yield from self._emit(stream, block, new_at[start:stop], stored, stored_at[start:stop])

    def _pairs(self, stream: int, run: _Run, stored: Segment) -> Iterator[tuple[Positions, Positions]]:
        """The pairs that hold: positions of new tuples, positions of stored ones."""
        if run.keys is None or stored.index is None:
            yield from self._scan(stream, run.columns, *stored.stored())
            return
        every = stored.columns()
        for new_at, stored_at in stored.index.probe(run.keys.base, run.keys.ranges, run.keys.present):
            yield self._check(stream, run.columns, every, new_at, stored_at)
        wild = np.flatnonzero(run.keys.wild)
        if len(wild):
            yield from self._cross(stream, run.columns, every, wild, np.arange(stored.first, len(every)))
        if len(stored.wild):
            yield from self._cross(stream, run.columns, every, np.flatnonzero(run.keys.present), stored.wild)

    def _scan(self, stream: int, new: Columns, stored: Columns, first: int) -> Iterator[tuple[Positions, Positions]]:
        literals = self._reader.literals(self._recipe.pairs.literals)
        runs = [self._reader.for_pairs(stream, new), self._reader.for_pairs(1 - stream, stored)]
        r, s = runs if stream == 0 else reversed(runs)
        for pair in self._recipe.pairs.scan(r, s, literals):
            new_at, stored_at = pair if stream == 0 else (pair[1], pair[0])
            yield new_at, stored_at + first

    def _check(
        self, stream: int, new: Columns, stored: Columns, new_at: Positions, stored_at: Positions
    ) -> tuple[Positions, Positions]:
        literals = self._reader.literals(self._recipe.pairs.literals)
        new, stored = self._reader.for_pairs(stream, new), self._reader.for_pairs(1 - stream, stored)
        if stream == 0:
            return self._recipe.pairs.check(new, stored, literals, (new_at, stored_at))
        stored_at, new_at = self._recipe.pairs.check(stored, new, literals, (stored_at, new_at))
        return new_at, stored_at

    def _cross(
        self, stream: int, new: Columns, stored: Columns, new_at: Positions, stored_at: Positions
    ) -> Iterator[Pairs]:
        """Check every pair of these new and these stored tuples."""
        if not len(new_at) or not len(stored_at):
            return
        rows = max(1, _CROSSED // len(stored_at))
        for start in range(0, len(new_at), rows):
            some = new_at[start : start + rows]
            pair = np.repeat(some, len(stored_at)), np.tile(stored_at, len(some))
            yield self._check(stream, new, stored, *pair)

    def _owned(self, stream: int, new: NDArray[np.uint8], stored: NDArray[np.uint8]) -> NDArray[np.bool_]:
        """Which pairs are this core's to emit: a pair that meets on several cores belongs to one.

        Where neither tuple went everywhere they meet on one core only. Otherwise the pair is emitted at the home of the
        one that did not, and at the first stream's home where both did.
        """
        r, s = (new, stored) if stream == 0 else (stored, new)
        r_everywhere, s_everywhere = (r & EVERYWHERE) != 0, (s & EVERYWHERE) != 0
        decider = np.where(s_everywhere, r, s)
        owned: NDArray[np.bool_] = ~(r_everywhere | s_everywhere) | ((decider & HOME) != 0)
        return owned

    def _emit(
        self, stream: int, block: Block, new_at: Positions, stored: Segment, stored_at: Positions
    ) -> Iterator[pa.RecordBatch]:
        """The matches as rows: every column of both streams, and the time of the later tuple."""
        if not len(new_at):
            return
        join = self.plan.join
        for chosen, old in stored.gather(stored_at):
            fresh = block.batch.take(pa.array(new_at[chosen]))
            times = np.maximum(block.times[new_at[chosen]], stored.times[stored_at[chosen]])
            first, second = (fresh, old) if stream == 0 else (old, fresh)
            zone = first.schema.field(join.times[0]).type.tz
            match_time = pa.array(times).cast(pa.timestamp("us", zone))
            yield pa.RecordBatch.from_arrays(
                [*first.columns, *second.columns, match_time], names=list(join.output_names)
            )
