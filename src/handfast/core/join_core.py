"""The join: blocks in, matches out, state as blocks. Every engine only feeds JoinCores and keeps their blocks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import chain
from typing import Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from handfast.core.held import Held
from handfast.core.manifest import Manifest
from handfast.core.orders import Orders
from handfast.core.output import Output
from handfast.core.probe import Arrival, Members, NewTuples, Prober
from handfast.core.rates import Rates
from handfast.core.recipe import recipe
from handfast.core.segment import Marks, Segment
from handfast.core.span import window_span
from handfast.errors import EngineError
from handfast.flow.block import HOME, Block
from handfast.flow.order import ranked
from handfast.flow.same import same
from handfast.flow.time import Horizon, Progress
from handfast.kernels.strings import StringTable
from handfast.plan import Plan

_SPARE_STRINGS = 4096


class Finder(Protocol):
    """Finds the matches of an inner join in another way than a core does on its own."""

    def cut(self, count: int) -> int:
        """Of how many tuples the pieces are that so many new ones of one stream come in."""
        ...

    def find(self, prober: Prober, arrivals: Sequence[Arrival]) -> Iterable[tuple[NewTuples, Members]]:
        """The matches of tuples that have been stored already, each with such that were stored before it."""
        ...

    def moved(self, before: Sequence[Segment], after: Sequence[Segment]) -> None:
        """Learn that the tuples of all streams have been stored anew, at other positions."""
        ...


class JoinCore:
    """One core's share of the join: it scans, inserts and expires, and decides matches by stamps alone.

    With a `finder`, the blocks of a step are stored first, and the finder finds the matches; for inner joins only.
    """

    def __init__(self, plan: Plan, finder: Finder | None = None) -> None:
        self.plan = plan
        self._finder = finder
        self._recipe = recipe(plan)
        self.expired = [0] * len(plan.join.schemas)  # tuples at home here that have left their windows
        streams = plan.join.spec.streams
        lateness = max(stream.lateness or 0 for stream in streams)
        self._spans = [window_span(own.window, stream, lateness) for stream, own in enumerate(streams)]
        self._held = Held(plan.join)
        self._rates = Rates(self._recipe)
        self._orders = Orders(self._rates)
        self._inputs = sum(map(len, self._recipe.program.inputs))
        self._keeps_values = self._recipe.reads_values  # beside the blocks, as kernels read them
        self._forget()

    # -- state -----------------------------------------------------------------------------------

    @property
    def segments(self) -> list[Segment]:
        """By stream, the tuples that are stored here."""
        return self._segments

    def blocks(self) -> Iterator[Block]:
        """Every block that the core holds."""
        return chain(*(segment.blocks for segment in self._segments), self._held.blocks)

    def manifest(self, progress: Progress) -> Manifest:
        """The state after the last step; `progress` is how far the streams had come with it."""
        blocks = [segment.blocks for segment in self._segments]
        preserved = self.plan.join.preserved
        marks = [own.marks if stream in preserved else [] for stream, own in enumerate(self._segments)]
        return Manifest.of(self.plan.fingerprint, progress, blocks, marks, self._held.blocks)

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

    def follow(self, manifest: Manifest, load: Callable[[str], Block]) -> bool:
        """Come to a manifest's state, if no more has changed than this: first blocks have gone, last ones have come.

        False where that is not all, as where blocks were merged: this core is of no use then, and one must be restored.
        So it is where tuples linger that have gone from behind others: if this core is ahead of the state, some still
        to come can meet them.
        """
        stay = [_staying(own.blocks, wanted) for own, wanted in zip(self._segments, manifest.blocks, strict=True)]
        if None in stay or any(segment.has_gaps for segment in self._segments):
            return False
        blocks = [[load(id_) for id_ in ids] for ids in manifest.blocks]
        for stream, marks in enumerate(manifest.marks_of(blocks)):
            segment, start = self._segments[stream], stay[stream] or 0
            # no range of positions begins before the first block: what has gone is not met again, whatever the reason
            segment.free_first(len(segment.blocks) - start)
            for block, settled in zip(blocks[stream][start:], marks[start:], strict=True):
                new = self._columns_of(stream, block, settled)
                if self._must_keep_values(new):
                    return False
                self._store(new)
            segment.marks = marks
            segment.drop()
        self._held.blocks = [load(id_) for id_ in manifest.held]
        self._renew()
        return True

    def _forget(self) -> None:
        self._strings = StringTable()
        self._reader = self._recipe.reader(self._strings)
        self._segments = [Segment(self._recipe.new_indexes(stream)) for stream in range(len(self.plan.join.schemas))]
        self._prober = Prober(self._recipe, self._reader, self._segments, self._rates)
        self._output = Output(self.plan, self._segments)

    def _store_anew(self, blocks: list[list[Block]], marks: list[list[Marks]]) -> None:
        """Hold these blocks and no others; columns, indexes and strings are made again from them."""
        self._forget()
        each = [(k, *own) for k, all_ in enumerate(zip(blocks, marks, strict=True)) for own in zip(*all_, strict=True)]
        for stream, block, settled in each:
            new = self._columns_of(stream, block, settled)
            if self._must_keep_values(new):
                self._store_anew(blocks, marks)
                return
            self._store(new)

    # -- a step ----------------------------------------------------------------------------------

    def step(self, admitted: Sequence[Block | None], horizon: Horizon) -> Iterator[pa.RecordBatch]:
        """Join new blocks, at most one of each stream, with the windows and with each other, then store them.

        No tuple of a later step falls below `horizon`. The state changes as the matches are taken out: take them all
        before asking for it.
        """
        finder = self._finder
        decided = self._decided(admitted, horizon) if finder is None else self._found(finder, admitted)
        yield from self._shown(self._held.release(decided, horizon))
        self.expire(horizon)

    def probe(self, stream: int, block: Block) -> Iterator[pa.RecordBatch]:
        """Join a block with the stored tuples of the other streams; it is not stored itself."""
        yield from self._shown(self._scan(self._read(stream, block, self._unmarked(stream, len(block)))))

    def reserve(self, stream: int, count: int) -> None:
        """Make room for so many tuples, which are to be stored at the same time."""
        self._segments[stream].reserve(count)

    def store(self, stream: int, block: Block) -> None:
        """Store a block that has met nobody yet."""
        self._insert(self._read(stream, block, self._unmarked(stream, len(block))))

    def join_and_store(self, stream: int, block: Block) -> Iterator[pa.RecordBatch]:
        """Join a block with the stored tuples of the other streams, then store it whole, until it is removed."""
        new = self._read(stream, block, self._unmarked(stream, len(block)))
        yield from self._shown(self._scan(new))
        self._store(new)

    def remove(self, stream: int, block: Block) -> None:
        """Let a stored block go."""
        self._segments[stream].remove(block)
        self._segments[stream].drop()
        self._renew()

    def _decided(self, admitted: Sequence[Block | None], horizon: Horizon) -> Iterator[Block]:
        """Store the new blocks, and give the rows of the result that they and the horizon decide."""
        for stream, block in enumerate(admitted):
            if block is not None:
                # sorted, so that partners lie together: input may come in any order
                new = self._read(stream, block.sorted(), self._unmarked(stream, len(block)))
                yield from self._scan(new)
                self._insert(new)
        yield from self._output.unmatched(horizon)

    def _found(self, finder: Finder, admitted: Sequence[Block | None]) -> Iterator[Block]:
        """Store the new blocks in pieces, and give the rows of the matches that the finder finds."""
        given = [(stream, block) for stream, block in enumerate(admitted) if block is not None]
        arrivals = [arrival for own in given for arrival in self._arrive(*own, finder.cut(len(own[1])))]
        self._reader.settle()
        for new, members in finder.find(self._prober, arrivals):
            yield from self._output.matched(new, self._emitted(new, members))

    def _arrive(self, stream: int, block: Block, size: int) -> Iterator[Arrival]:
        ordered = block.sorted()
        for start in range(0, len(block), size):
            piece = ordered.slice(start, min(start + size, len(block)))
            new = self._read(stream, piece, self._unmarked(stream, len(piece)))
            self._rates.arrived(stream, len(piece))
            stops = tuple(segment.stop for segment in self._segments)
            yield Arrival(new, stops, self._insert(new))

    def _shown(self, given: Iterable[Block]) -> Iterator[pa.RecordBatch]:
        """The rows as batches; with their ranks where the result is in order."""
        return (ranked(rows) if self.plan.join.spec.in_order else rows.batch for rows in given)

    def _scan(self, new: NewTuples) -> Iterator[Block]:
        self._rates.arrived(new.stream, len(new.block))
        for members in self._prober.matches(new, self._orders.of(new.stream, self._segments)):
            yield from self._output.matched(new, self._emitted(new, members))
        yield from self._output.completed(new)

    def _unmarked(self, stream: int, count: int) -> Marks:
        """So many tuples that are not settled; in a stream of which nobody asks, none ever is."""
        return np.zeros(count, np.bool_) if stream in self.plan.join.preserved else same(np.False_, count)

    def _read(self, stream: int, block: Block, marks: Marks) -> NewTuples:
        new = self._columns_of(stream, block, marks)
        if self._must_keep_values(new):
            self._store_anew([own.blocks for own in self._segments], [own.marks for own in self._segments])
            new = self._columns_of(stream, block, marks)
        return new

    def _must_keep_values(self, new: NewTuples) -> bool:
        """Whether values must be kept from now on, though the indexes did without: some tuple has no place in them."""
        if self._keeps_values or True not in [keys.some_unplaced for keys in new.keys.values()]:
            return False
        self._keeps_values = True
        return True

    def _columns_of(self, stream: int, block: Block, marks: Marks) -> NewTuples:
        columns = self._reader.read(stream, block)
        return NewTuples(stream, block, columns, self._segments[stream].keys(columns), marks)

    def _insert(self, new: NewTuples) -> Marks:
        """Store the new tuples that the routing keeps at this core and that can still match; tell which."""
        kept = np.ones(len(new.block), np.bool_) if self.plan.cores == 1 else self.plan.routing.kept(new.block)
        if new.stream not in self.plan.join.preserved:
            for keys in new.keys.values():  # what can never match is gone at once
                if np.count_nonzero(keys.dead):
                    gone = keys.dead & kept & ((new.block.flags & HOME) != 0)
                    self.expired[new.stream] += int(np.count_nonzero(gone))
                    kept = kept & ~keys.dead
        count = int(np.count_nonzero(kept))
        if count == len(kept):
            self._store(new)
        elif count:
            self._store(self._part(new, np.flatnonzero(kept)))
        return kept

    def _part(self, new: NewTuples, rows: NDArray[np.int64]) -> NewTuples:
        """The new tuples at these places; in memory where they are, if they are neighbours."""
        first, stop = int(rows[0]), int(rows[-1]) + 1
        own = slice(first, stop) if stop - first == len(rows) else rows
        block = new.block.slice(first, stop) if isinstance(own, slice) else new.block.take(rows)
        columns = new.columns.take(own)
        return NewTuples(new.stream, block, columns, self._segments[new.stream].keys(columns), new.marks[own])

    def _store(self, new: NewTuples) -> None:
        columns = new.columns if self._keeps_values else new.columns.stamps
        self._segments[new.stream].insert(new.block, columns, new.keys, new.marks)

    def _emitted(self, new: NewTuples, members: Members) -> Members:
        """The matches that this core is to emit: one that is found at several cores is emitted at one of them."""
        if self.plan.cores == 1:
            return members
        return self.plan.routing.emitted(self.plan, new, self._segments, members)

    def expire(self, horizon: Horizon) -> None:
        """Free the blocks that no tuple still to come can meet, and merge small ones."""
        for stream, (segment, span) in enumerate(zip(self._segments, self._spans, strict=True)):
            freed = segment.expire(partial(span.is_over, horizon=horizon))
            self.expired[stream] += sum(block.at_home for block in freed)
            segment.merge(span.fits)
            if self._finder is None:  # which may remember positions
                segment.drop()
        self._renew()

    def _renew(self) -> None:
        """Build the segments anew where they carry too many tuples or strings that have expired."""
        strings = len(self._strings) - _SPARE_STRINGS
        many_strings = strings > 0 and strings > 2 * self._inputs * sum(segment.live for segment in self._segments)
        if many_strings or True in [segment.is_worn for segment in self._segments]:
            before = self._segments
            self._store_anew([segment.blocks for segment in before], [segment.marks for segment in before])
            if self._finder is not None:
                self._finder.moved(before, self._segments)


def _staying(blocks: Sequence[Block], wanted: Sequence[str]) -> int | None:
    """How many of these blocks, the last of them, are the first wanted ones; None if more than the first have gone."""
    ids = [block.id for block in blocks]
    for count in range(min(len(ids), len(wanted)), 0, -1):
        if ids[-count:] == list(wanted[:count]):
            return count
    return None if ids else 0
