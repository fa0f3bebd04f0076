"""Tuples of one stream on their way to the cores, and the ways to send them that routings have in common."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from handfast.core.recipe import Recipe
from handfast.flow.block import HOME, Block
from handfast.kernels.columns import Columns
from handfast.kernels.index.keys import canonical, mix
from handfast.kernels.strings import StringTable
from handfast.plan import Plan

CoreNumbers = NDArray[np.int64]
Rows = NDArray[np.int64] | NDArray[np.bool_]  # positions, or a mask
Sent = tuple[int, Rows, NDArray[np.uint8]]  # a core, the rows that it gets, their flags there


class Outgoing:
    """A block of tuples, with their values as routings read them.

    Attributes:
        in_turn: Whether a routing that deals out parts of the key space gives them to the cores in turn instead of by
            a hash, so that every core has as many.
    """

    def __init__(self, plan: Plan, recipe: Recipe, stream: int, block: Block, *, in_turn: bool) -> None:
        self.plan = plan
        self.recipe = recipe
        self.stream = stream
        self.in_turn = in_turn
        self._block = block

    @property
    def is_anchor(self) -> bool:
        """Whether these are tuples of the plan's anchor."""
        return self.stream == self.plan.anchor

    @cached_property
    def columns(self) -> Columns:
        """The values that the predicate reads. Strings are hashes of their content: codes differ between processes."""
        strings = StringTable()
        columns = self.recipe.reader(strings).read(self.stream, self._block)
        if not len(strings):
            return columns
        digests = [hashlib.blake2b(text.encode(), digest_size=8).digest() for text in strings.texts()]
        hashes = np.frombuffer(b"".join(digests), np.int64)
        inputs = self.recipe.program.inputs[self.stream]
        values = [
            hashes[value] if known.column.type.is_text else value
            for known, value in zip(inputs, columns.values, strict=True)
        ]
        return Columns(values, columns.statuses, columns.times)

    # -- to which core ---------------------------------------------------------------------------

    def core_of(self, bits: NDArray[np.uint64]) -> CoreNumbers:
        """The core that each of these hashes falls to."""
        return share_of(bits, self.plan.cores)

    def core_by_content(self) -> CoreNumbers:
        """A core for each tuple that depends on its time and on the values its predicate reads, on nothing else."""
        return self.core_of(self.content())

    def content(self) -> NDArray[np.uint64]:
        """A hash of each tuple's time and of the values its predicate reads."""
        columns = self.columns
        bits = mix(columns.times.view(np.uint64))
        for values, status in zip(columns.values, columns.statuses, strict=True):
            content = canonical(values)
            if status is not None:
                content = np.where(status == 0, content, np.uint64(0))  # what lies under a NULL is no content
            bits = mix(bits + content)
        return bits

    # -- on their way ----------------------------------------------------------------------------

    def to_homes(self, homes: CoreNumbers) -> Iterator[Sent]:
        """Every tuple to its home alone."""
        for core in range(self.plan.cores):
            rows = np.flatnonzero(homes == core)
            yield core, rows, np.full(len(rows), HOME, np.uint8)

    def to_every_core(self) -> Iterator[Sent]:
        """Every tuple to every core; at home where its content says."""
        homes = self.core_by_content()
        every = np.ones(len(homes), np.bool_)
        for core in range(self.plan.cores):
            yield core, every, np.where(homes == core, HOME, 0).astype(np.uint8)

    def to_one_core(self, core: int) -> Iterator[Sent]:
        """All tuples to one core, which is their home."""
        yield core, np.ones(len(self._block), np.bool_), np.full(len(self._block), HOME, np.uint8)


def share_of(bits: NDArray[np.uint64], shares: int) -> NDArray[np.int64]:
    """Which of so many shares each of these hashes falls to."""
    higher = bits >> np.uint64(16)
    if shares & (shares - 1) == 0:  # the same without a division
        return (higher & np.uint64(shares - 1)).view(np.int64)
    return (higher % np.uint64(shares)).astype(np.int64)
