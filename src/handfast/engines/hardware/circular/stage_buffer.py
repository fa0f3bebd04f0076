"""The StageBuffer: what waits before a stage, in a queue for each hop [CMJ §II-C]."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Array, Module, Mux, Signal
from amaranth.lib import memory, wiring
from amaranth.lib.wiring import In, Out

from handfast.engines.hardware.segment import index_shape


class StageBuffer(wiring.Component):
    """Queues of items: of new tuples, which have made no hop (the paper's OBuf), and of intermediates, by hop.

    A queue for each hop is what keeps the ring free of deadlock. All of them but the first share a RAM, and one item at
    a time can be looked at. What is written in a cycle can be looked at from the next one on.

    Args:
        item: The layout of an item.
        hops: How many queues there are.
        new: How many new tuples there is room for.
        depth: How many items there is room for in each of the other queues.

    Attributes:
        levels: By hop, how many items there are.

    Ports:
        new_valid, new: A new tuple is put into the first queue, which has room.
        valid, hop, item: An item is put into the queue of a hop that has room.
        room: By hop, whether there is room; of the first queue it says nothing.
        waiting: By hop, whether there is an item.
        more: By hop, whether there is more than one.
        look: The queue whose oldest item is wanted in the next cycle.
        oldest: The item that was wanted.
        pop: Let the oldest item of the queue go that was wanted in the cycle before.
    """

    def __init__(self, *, item: Any, hops: int, new: int, depth: int) -> None:
        self.item_shape = item
        self.hops = hops
        self.depths = (new, *[depth] * (hops - 1))
        self.levels = [Signal(range(own + 1), name=f"level_{hop}") for hop, own in enumerate(self.depths)]
        super().__init__(
            {
                "new_valid": In(1),
                "new": In(item),
                "valid": In(1),
                "hop": In(index_shape(hops)),
                "item": In(item),
                "room": Out(hops),
                "waiting": Out(hops),
                "more": Out(hops),
                "look": In(index_shape(hops)),
                "oldest": Out(item),
                "pop": In(1),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        shown = Signal(index_shape(self.hops))  # the queue whose oldest item is there
        m.d.sync += shown.eq(self.look)
        firsts, nexts = [], []  # by hop, where its oldest item is in the next cycle, and where its next one goes
        for hop, depth in enumerate(self.depths):
            head = Signal(index_shape(depth), name=f"head_{hop}")  # the place of the oldest item
            tail = Signal(index_shape(depth), name=f"tail_{hop}")  # the place of the next item
            level = self.levels[hop]
            first = Signal(index_shape(depth), name=f"first_{hop}")
            entering, popped = Signal(name=f"entering_{hop}"), Signal(name=f"popped_{hop}")
            m.d.comb += [
                entering.eq(self.valid & (self.hop == hop) if hop else self.new_valid),
                popped.eq(self.pop & (shown == hop)),
                first.eq(Mux(popped, Mux(head == depth - 1, 0, head + 1), head)),
                self.room[hop].eq(level != depth),
                self.waiting[hop].eq(level != 0),
                self.more[hop].eq(level > 1),
            ]
            m.d.sync += [head.eq(first), level.eq(level + entering - popped)]
            with m.If(entering):
                m.d.sync += tail.eq(Mux(tail == depth - 1, 0, tail + 1))
            firsts.append(first)
            nexts.append(tail)

        m.submodules.new_tuples = queue = self._ram(self.depths[0])
        write, read = queue.write_port(), queue.read_port()
        m.d.comb += [
            write.addr.eq(nexts[0]),
            write.data.eq(self.new),
            write.en.eq(self.new_valid),
            read.addr.eq(firsts[0]),
            self.oldest.eq(read.data),
        ]
        if self.hops == 1:
            return m
        places = [0, *(sum(self.depths[1:hop]) for hop in range(1, self.hops))]  # where each queue begins
        m.submodules.intermediates = queues = self._ram(sum(self.depths[1:]))
        write, read = queues.write_port(), queues.read_port()

        def place(hop: Any, within: list[Any]) -> Any:
            return Array(begin + own for begin, own in zip(places, within, strict=True))[hop]

        m.d.comb += [
            write.addr.eq(place(self.hop, nexts)),
            write.data.eq(self.item),
            write.en.eq(self.valid),
            read.addr.eq(place(self.look, firsts)),
        ]
        with m.If(shown != 0):
            m.d.comb += self.oldest.eq(read.data)
        return m

    def _ram(self, items: int) -> Any:
        depth = len(index_shape(items))  # no RAM without an address
        return memory.Memory(shape=self.item_shape, depth=depth, init=[])
