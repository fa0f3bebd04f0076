"""The way to the cores: blocks of one stream cut into a block for each core, as the plan's routing says.

Where a tuple goes depends on its content alone, so a task that Spark runs again sends it the same way.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from handfast.core.recipe import Recipe, recipe
from handfast.core.routing.outgoing import Outgoing, Rows
from handfast.flow.block import HOME, Block
from handfast.plan import Plan


@dataclass(frozen=True)
class Share:
    """The tuples of a block that one core gets, all where no rows are named, and their flags there.

    They are copied when the core asks for them: by its own thread, while other cores copy theirs.
    """

    whole: Block
    rows: Rows | None
    flags: NDArray[np.uint8]

    def __len__(self) -> int:
        return len(self.flags)

    @cached_property
    def at_home(self) -> int:
        """How many of the tuples have their home at that core."""
        return int(np.count_nonzero(self.flags & HOME))

    @property
    def home_bytes(self) -> int:
        """How many bytes those tuples take."""
        return int(self.whole.batch.nbytes * self.at_home // len(self.whole))

    def block(self) -> Block:
        """The tuples as a block."""
        some = self.whole if self.rows is None else self.whole.take(self.rows)
        return some if some.flags is self.flags else some.with_flags(self.flags)


class Router:
    """Sends the tuples of one stream to their cores. Every tuple has one core that is its home: there it is counted."""

    def __init__(self, plan: Plan, stream: int, *, in_turn: bool = False) -> None:
        self._plan = plan
        self._stream = stream
        self._in_turn = in_turn

    @cached_property
    def _recipe(self) -> Recipe:
        return recipe(self._plan)

    def shares(self, block: Block) -> dict[int, Share]:
        """What each core gets, if it gets any."""
        if self._plan.cores == 1:
            return {0: Share(block, None, np.full(len(block), HOME, np.uint8))}
        tuples = Outgoing(self._plan, self._recipe, self._stream, block, in_turn=self._in_turn)
        sent = self._plan.routing.destinations(tuples)
        return {core: Share(block, rows, flags) for core, rows, flags in sent if len(flags)}

    def route(self, block: Block) -> dict[int, Block]:
        """A block for each core that gets one."""
        return {core: share.block() for core, share in self.shares(block).items()}
