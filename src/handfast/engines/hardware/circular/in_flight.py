"""How many tuples are under way in a ring: as many as windows have slots beyond what they hold, and no more."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Array, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from handfast.engines.hardware.segment import index_shape


class InFlight(wiring.Component):
    """Numbers tuples as they enter, and lets none in that is `limit` or more tuples behind one that has not ended.

    Tuples end in any order, and several in a cycle. One whose end is known in a cycle makes room from the next but one
    on, if all before it have ended.

    Args:
        limit: How many tuples may be under way.
        stages: How many stages may end a tuple in the same cycle.

    Ports:
        enters: A tuple enters; only while `room`.
        room: A tuple may enter.
        number: Its number, round and round.
        ended: By stage, that it ends a tuple; and the tuple's number.
        empty: No tuple is under way.
    """

    def __init__(self, *, limit: int, stages: int) -> None:
        self.limit = limit
        self.stages = stages
        super().__init__(
            {
                "enters": In(1),
                "room": Out(1),
                "number": Out(index_shape(limit)),
                "ended": In(stages),
                "ended_number": In(index_shape(limit)).array(stages),
                "empty": Out(1),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        oldest = Signal(index_shape(self.limit))  # the number of the oldest tuple that has not ended, or of the next
        count = Signal(range(self.limit + 1))  # how many have entered and have not ended, or are behind one of these
        done = Signal(self.limit)  # by number, whether it has ended
        leaves = Signal()  # the oldest has ended
        m.d.comb += [
            self.room.eq(count != self.limit),
            self.empty.eq(count == 0),
            leaves.eq(Array(done)[oldest]),
        ]
        m.d.sync += count.eq(count + self.enters - leaves)
        with m.If(self.enters):
            m.d.sync += self.number.eq(_after(self.number, self.limit))
        with m.If(leaves):
            m.d.sync += oldest.eq(_after(oldest, self.limit))
        for number in range(self.limit):
            ends = [self.ended[k] & (self.ended_number[k] == number) for k in range(self.stages)]
            with m.If(sum(ends) != 0):
                m.d.sync += done[number].eq(1)
            with m.Elif(leaves & (oldest == number)):
                m.d.sync += done[number].eq(0)
        return m


def _after(number: Signal, limit: int) -> Any:
    return Mux(number == limit - 1, 0, number + 1)
