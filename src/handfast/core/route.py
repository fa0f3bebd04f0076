"""The way to the cores: which of them each tuple is sent to.

Where a row goes depends on its content alone, so a task that Spark runs again sends it the same way.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from handfast.core.recipe import recipe
from handfast.flow.block import EVERYWHERE, HOME, Block
from handfast.kernels.columns import Columns
from handfast.kernels.index.bands import BandScale
from handfast.kernels.index.keys import canonical, equal_keys, mix
from handfast.kernels.strings import StringTable
from handfast.plan import Plan, Routing

_STRIPE_BITS = 4  # a stripe is 16 buckets wide: few tuples lie near its borders

_WILD_CORE = 0  # where an outer join's wild tuples are, and all they may meet

Cores = NDArray[np.int64]
Sent = tuple[int, NDArray[np.int64], NDArray[np.uint8]]  # a core, the rows it gets, their flags there


class Router:
    """Sends the rows of one stream to their cores. Every row has one core that is its home: there it counts.

    Stripes are dealt to the cores by a hash, or `in_turn`: so each core has as many, even where there are few. Every
    round of turns begins with another core, for keys may lie a whole number of rounds apart.
    """

    def __init__(self, plan: Plan, stream: int, *, in_turn: bool = False) -> None:
        self._plan = plan
        self._recipe = recipe(plan)
        self._stream = stream
        self._in_turn = in_turn

    def route(self, block: Block) -> dict[int, Block]:
        """A block for each core that gets one."""
        if self._plan.cores == 1 or self._plan.routing is Routing.ONE:
            return {0: block.with_flags(np.full(len(block), HOME, np.uint8))}
        sent = self._destinations(block)
        return {core: block.take(rows).with_flags(flags) for core, rows, flags in sent if len(rows)}

    def _destinations(self, block: Block) -> Iterator[Sent]:
        """For each core the rows it gets, and each row's flags there."""
        strings = StringTable()
        columns = self._recipe.reader(strings).read(self._stream, block)
        columns = self._with_content(columns, strings)
        routing, is_anchor = self._plan.routing, self._stream == self._plan.anchor
        if routing is Routing.HASH and self._recipe.keys[self._stream]:
            yield from self._by_hash(columns)
        elif routing is Routing.RANGE:
            yield from self._by_range(columns)
        elif routing is Routing.SPREAD and is_anchor:
            yield from self._home(self._core_of(_content_hash(columns)))
        else:
            yield from self._everywhere(columns)

    def _by_hash(self, columns: Columns) -> Iterator[Sent]:
        base, dead = equal_keys(columns, self._recipe.keys[self._stream])
        if dead.any():  # without a key it meets nobody: any core will do
            base = np.where(dead, _content_hash(columns), base)
        yield from self._home(self._core_of(base))

    def _home(self, homes: Cores) -> Iterator[Sent]:
        """Every row to its home alone."""
        for core in range(self._plan.cores):
            rows = np.flatnonzero(homes == core)
            yield core, rows, np.full(len(rows), HOME, np.uint8)

    def _by_range(self, columns: Columns) -> Iterator[Sent]:
        """The anchor goes to the core of its stripe; the other stream to those of all stripes its partners can lie in.

        A wild tuple, whose partners can lie anywhere, goes everywhere. Where it is asked what matches nothing, the
        anchor's wild tuples are all at one core, and so is every tuple of the other stream.
        """
        scale = BandScale(self._plan.pairs[0].bands[0], self._recipe.program)
        is_anchor = self._stream == self._plan.anchor
        keys = scale.keys(self._stream, columns)
        if is_anchor:
            first = last = scale.buckets(keys) >> _STRIPE_BITS
        else:
            first, last = (buckets >> _STRIPE_BITS for buckets in scale.partners(self._stream, keys))
        homes, visits = self._core_of_stripe(first), self._core_of_stripe(last)
        if keys.dead.any():
            homes = np.where(keys.dead, self._core_of(_content_hash(columns)), homes)
            visits = np.where(keys.dead, homes, visits)
        asked = bool(self._plan.join.preserved)
        if asked and is_anchor:
            yield from self._home(np.where(keys.wild, _WILD_CORE, homes))
            return
        # a bucket range is narrower than a stripe, so it touches at most two of them
        for core in range(self._plan.cores):
            all_here = asked and not scale.tame and core == _WILD_CORE
            here = (homes == core) | (visits == core) | keys.wild | (all_here & ~keys.dead)
            rows = np.flatnonzero(here)
            flags = np.where(homes[rows] == core, HOME, 0) | np.where(keys.wild[rows], EVERYWHERE, 0)
            yield core, rows, flags.astype(np.uint8)

    def _everywhere(self, columns: Columns) -> Iterator[Sent]:
        homes = self._core_of(_content_hash(columns))
        every = np.arange(len(columns))
        for core in range(self._plan.cores):
            yield core, every, np.where(homes == core, HOME, 0).astype(np.uint8)

    def _core_of_stripe(self, stripes: NDArray[np.int64]) -> Cores:
        if self._in_turn:
            rounds, turns = np.divmod(stripes, self._plan.cores)
            return (turns + self._core_of(mix(rounds.view(np.uint64)))) % self._plan.cores
        return self._core_of(mix(stripes.view(np.uint64)))

    def _core_of(self, bits: NDArray[np.uint64]) -> Cores:
        return ((bits >> np.uint64(16)) % np.uint64(self._plan.cores)).astype(np.int64)

    def _with_content(self, columns: Columns, strings: StringTable) -> Columns:
        """The columns with strings as hashes of their content: codes differ from process to process."""
        if not len(strings):
            return columns
        digests = [hashlib.blake2b(text.encode(), digest_size=8).digest() for text in strings.texts()]
        hashes = np.frombuffer(b"".join(digests), np.int64)
        inputs = self._recipe.program.inputs[self._stream]
        values = [
            hashes[value] if known.column.type.is_text else value
            for known, value in zip(inputs, columns.values, strict=True)
        ]
        return Columns(values, columns.statuses, columns.times)


def _content_hash(columns: Columns) -> NDArray[np.uint64]:
    """A number made of a tuple's time and of the values its predicate reads."""
    bits = mix(columns.times.view(np.uint64))
    for values, status in zip(columns.values, columns.statuses, strict=True):
        content = canonical(values)
        if status is not None:
            content = np.where(status == 0, content, np.uint64(0))  # what lies under a NULL is no content
        bits = mix(bits + content)
    return bits
