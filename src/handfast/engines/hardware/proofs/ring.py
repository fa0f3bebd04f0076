"""What is proven of the adaptive network: a node passes on what it gets, and nothing circles for ever."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Assert, Assume, Cat, Module, Mux, Signal, unsigned
from amaranth.hdl._ast import AnyConst  # any value that never changes; 0.5 has no public name for it
from amaranth.lib import wiring
from amaranth.lib.wiring import In

from handfast.engines.hardware.adaptive import AdaptiveNetwork, RingNode
from handfast.engines.hardware.admission import Suspend
from handfast.engines.hardware.fifo import Fifo
from handfast.engines.hardware.proofs.fifo import keeps_count
from handfast.engines.hardware.proofs.merging import any_of
from handfast.engines.hardware.proofs.offer import count_while, in_words


class NodeProof(wiring.Component):
    """A node with its FIFO, between neighbours that send and count what they like."""

    def __init__(self, node: RingNode, *, margin: int = 1) -> None:
        self.node = node
        self.margin = margin
        level = In(range(node.depth + 1))
        super().__init__(
            {
                "new_valid": In(1),
                "new_word": In(node.width),
                "from_east": In(node.tuple_layout),
                "from_west": In(node.tuple_layout),
                "east_level": level,
                "west_level": level,
                "drains": In(1),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        m.submodules.node = node = self.node
        m.submodules.fifo = fifo = Fifo(width=node.width, depth=node.depth, margin=self.margin, latency=1)
        wiring.connect(m, node.north, fifo.write)
        m.d.comb += [
            node.south.valid.eq(self.new_valid),
            node.south.payload.eq(self.new_word),
            node.east_in.eq(self.from_east),
            node.west_in.eq(self.from_west),
            node.own.eq(fifo.level),
            node.east.eq(self.east_level),
            node.west.eq(self.west_level),
            node.almost_full.eq(fifo.almost_full),
            fifo.read.ready.eq(self.drains),
            *(Assume(~each.valid | each.hops.any()) for each in (self.from_east, self.from_west)),
        ]

        word = Signal(node.width)  # any word
        m.d.comb += word.eq(AnyConst(node.width))
        taken = node.south.valid & node.south.ready
        arrivals = [
            (self.from_east.valid, self.from_east.word, self.from_east.hops),
            (self.from_west.valid, self.from_west.word, self.from_west.hops),
            (taken, node.south.payload, 0),
        ]
        came = Signal(2)  # how many tuples came in in the cycle before
        alike = Signal(2)  # how many of them had the word
        hops = Signal(unsigned(node.hop_bits))  # the hops that one of these had made, and this one
        m.d.sync += [
            came.eq(sum(valid for valid, _, _ in arrivals)),
            alike.eq(sum(valid & (own == word) for valid, own, _ in arrivals)),
        ]
        for valid, own, behind in arrivals:
            with m.If(valid & (own == word)):
                m.d.sync += hops.eq(Mux(behind == 2**node.hop_bits - 1, behind, behind + 1))
        links = [node.east_out, node.west_out]
        gone = [(node.north.valid, node.north.payload), *((each.valid, each.word) for each in links)]
        full = fifo.level + fifo.write.valid >= fifo.depth
        m.d.comb += [
            Assert(came == sum(valid for valid, _ in gone), "as many tuples go out as came in"),
            Assert(alike == sum(valid & (own == word) for valid, own in gone), "every tuple goes out once, unchanged"),
            Assert(~fifo.write.valid | fifo.write.ready, "what goes north finds room there"),
            Assert(
                node.south.ready | (self.from_east.valid & self.from_west.valid & full),
                "a new tuple is refused only if two come and the FIFO is full",
            ),
        ]
        with m.If(alike == 1):
            for each in links:
                m.d.comb += Assert(
                    ~(each.valid & (each.word == word)) | (each.hops == hops),
                    "a tuple has made one hop more, if that can be counted",
                )
        return m


class RingProof(wiring.Component):
    """A network above cores that give a result when they like, and an output that is taken at will.

    One result of one core, any one, is followed on the ring: its word is 1, and all others are 0.

    Args:
        network: Its words have one bit.
        gone_within: After how many cycles in a row with a ready output all results are in the tree or beyond it, where
            the cores are silent.
        taken_within: For how many cycles in a row with a ready output a core waits at most, where there is no control.
        control: The cores stop when this tells them to, as join cores do, and then none ever waits.
        circles_within: For how many cycles in a row with a ready output a result is on the ring, where there is a
            control.
    """

    def __init__(
        self,
        network: AdaptiveNetwork,
        *,
        gone_within: int,
        taken_within: int = 0,
        control: Suspend | None = None,
        circles_within: int = 0,
    ) -> None:
        self.network = network
        self.gone_within = gone_within
        self.taken_within = taken_within
        self.control = control
        self.circles_within = circles_within
        super().__init__({"gives": In(network.n), "ready": In(1), "pick": In(1)})

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        m.submodules.network = network = self.network
        suspend = Signal()
        if self.control is not None:
            m.submodules.control = self.control
            m.d.comb += [self.control.almost_full.eq(network.almost_full), suspend.eq(self.control.suspend)]

        watched = any_of(m, network.n)  # the core whose result is followed
        picked = Signal()  # it has entered
        waiting = Signal(network.n)  # whose result was offered in the cycle before and not taken
        offered = Cat(entry.valid for entry in network.inputs)
        taken = Cat(entry.valid & entry.ready for entry in network.inputs)
        m.d.sync += waiting.eq(offered & ~taken)
        for core, entry in enumerate(network.inputs):
            m.d.comb += [
                entry.valid.eq(self.gives[core] & (~suspend | waiting[core])),
                entry.payload.eq((watched == core) & self.pick & ~picked),
            ]
        with m.If(self.pick & taken.bit_select(watched, 1)):
            m.d.sync += picked.eq(1)
        m.d.comb += network.output.ready.eq(self.ready)

        links = [link for node in network.nodes for link in (node.east_out, node.west_out)]
        on_ring = sum(link.valid for link in links) + sum(node.north.valid for node in network.nodes)
        in_fifos = sum(fifo.level for fifo in network.fifos)
        stored = Signal(range(network.n * (network.depth + 3) + 1))  # results that have entered and not left a FIFO
        leave = sum(fifo.read.valid & fifo.read.ready for fifo in network.fifos)
        m.d.sync += stored.eq(stored + sum(taken) - leave)
        circling = sum(link.valid & link.word[0] for link in links)
        gone_within = in_words(self.gone_within)
        silent = count_while(m, ~offered.any() & self.ready, self.gone_within, name="silent")
        m.d.comb += [
            Assert(stored == on_ring + in_fifos, "every result is on the ring or in a FIFO until it is read there"),
            Assert(circling <= picked, "a result is at one place on the ring"),
            Assert(
                (silent <= self.gone_within) | (stored == 0),
                f"with silent cores ring and FIFOs are empty after {gone_within} in a row with a ready output",
            ),
        ]
        for fifo in network.fifos:
            m.d.comb += Assert(~fifo.write.valid | fifo.write.ready, "what goes north finds room there")
            keeps_count(m, fifo)
        if self.control is None:
            waits = (offered & ~taken).bit_select(watched, 1)
            waited = count_while(m, waits & self.ready, self.taken_within, name="waited")
            m.d.comb += Assert(
                waited <= self.taken_within,
                f"a core waits for at most {in_words(self.taken_within)} in a row with a ready output",
            )
        else:
            hops = count_while(m, (circling != 0) & self.ready, self.circles_within, name="hops")
            m.d.comb += [
                Assert(offered == taken, "every node takes every result at once"),
                Assert(
                    hops <= self.circles_within,
                    f"a result is on the ring for at most {in_words(self.circles_within)} in a row with a ready output",
                ),
            ]
        return m
