"""The way to the cores: blocks of one stream cut into a block for each core, as the plan's routing says.

Where a tuple goes depends on its content alone, so a task that Spark runs again sends it the same way.
"""

from __future__ import annotations

from handfast.core.routing.outgoing import Outgoing
from handfast.flow.block import Block
from handfast.plan import Plan


class Router:
    """Sends the tuples of one stream to their cores. Every tuple has one core that is its home: there it is counted."""

    def __init__(self, plan: Plan, stream: int, *, in_turn: bool = False) -> None:
        self._plan = plan
        self._stream = stream
        self._in_turn = in_turn

    def route(self, block: Block) -> dict[int, Block]:
        """A block for each core that gets one."""
        tuples = Outgoing(self._plan, self._stream, block, in_turn=self._in_turn)
        sent = tuples.to_one_core(0) if self._plan.cores == 1 else self._plan.routing.destinations(tuples)
        return {core: block.take(rows).with_flags(flags) for core, rows, flags in sent if len(rows)}
