"""The adaptive merging network: a ring of bufferless nodes spreads results over all FIFOs [OGE §6]."""

from __future__ import annotations

from typing import Any, Literal

from amaranth.hdl import Cat, Module, Mux, Signal, Value, unsigned
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from handfast.engines.hardware.fifo import LATENCY, MARGIN, Fifo
from handfast.engines.hardware.tree import BufferlessTree, network_signature
from handfast.errors import SpecError

NORTH, EAST, WEST = PORTS = "NEW"

Order = Literal["NEW", "NWE", "ENW", "WNE", "EWN", "WEN"]
NorthLast = Literal["almost_full", "full"]

PORT_TIES: Order = "NEW"
"""Which output port goes first where counters are equal, which the thesis does not say. North must come first: a ring
that prefers east among equals lets a tuple circle for ever above empty FIFOs."""

NORTH_LAST: NorthLast = "almost_full"
"""From when on the north port has the lowest priority whatever the counters say, which the thesis does not say either.
By the counters alone a tuple is sent to a FIFO that has no room, and is lost. With "full" tuples stay on the ring for
fewer hops."""

HOP_BITS = 8
"""Bits of the hop counter, whose width the thesis does not give. It stays at its highest value when it gets there."""


class RingNode(wiring.Component):
    """One node of the ring: three ports in, three out, and a register for each port out [OGE §6.2.2, Fig. 6.2.1].

    In every cycle every tuple that comes in goes out ("bufferless routing"). Tuples are ranked oldest first, by their
    hop counters; ports are ranked by the counters of the FIFOs that they lead to, lowest first; the tuple of each rank
    takes the port of the same rank.

    A new tuple is refused only if it could not go out: tuples come from both sides, and the FIFO has no room.

    Attributes:
        depth: Slots of the FIFO above each node.
        port_ties: The order of ports whose counters are equal.
        rank_ties: The side whose tuple goes first where both have made equally many hops.
        north_last: Whether north goes last from when the own FIFO is almost full, or only when it has no room.
        hop_bits: Bits of the hop counter.
        south: New results from the join core.
        north: The register towards the own FIFO. What is in it always finds room there.
        east_in, west_in, east_out, west_out: The links to the neighbours: tuples with their hop counters.
        own, east, west: The counters of the own FIFO and of the neighbours'.
        almost_full: The own FIFO's flag.
    """

    def __init__(
        self,
        *,
        width: int,
        depth: int,
        port_ties: Order = PORT_TIES,
        rank_ties: Literal["E", "W"] = "E",
        north_last: NorthLast = NORTH_LAST,
        hop_bits: int = HOP_BITS,
    ) -> None:
        if sorted(port_ties) != sorted(PORTS):
            raise SpecError(f"The order of ports has each of N, E and W once, as 'NEW', not {port_ties!r}")
        if rank_ties not in (EAST, WEST):
            raise SpecError(f"Of two tuples with equally many hops that from 'E' or 'W' goes first, not {rank_ties!r}")
        if north_last not in ("almost_full", "full"):
            raise SpecError(f"The north port goes last when its FIFO is 'almost_full' or 'full', not {north_last!r}")
        if hop_bits < 1:
            raise SpecError(f"The bits of a hop counter must be at least 1, not {hop_bits!r}")
        self.width = width
        self.depth = depth
        self.port_ties = port_ties
        self.rank_ties = rank_ties
        self.north_last = north_last
        self.hop_bits = hop_bits
        self.tuple_layout = data.StructLayout({"valid": 1, "hops": hop_bits, "word": width})
        counter = In(range(depth + 1))
        entry = stream.Signature(unsigned(width))
        super().__init__(
            {
                "south": In(entry),
                "north": Out(entry),
                "east_in": In(self.tuple_layout),
                "west_in": In(self.tuple_layout),
                "east_out": Out(self.tuple_layout),
                "west_out": Out(self.tuple_layout),
                "own": counter,
                "east": counter,
                "west": counter,
                "almost_full": In(1),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        """Rank tuples and ports; all within one cycle."""
        m = Module()
        north = Signal(self.tuple_layout)  # register of N_out
        east = Signal(self.tuple_layout)  # register of E_out
        west = Signal(self.tuple_layout)  # register of W_out
        m.d.comb += [
            self.north.valid.eq(north.valid),
            self.north.payload.eq(north.word),
            self.east_out.eq(east),
            self.west_out.eq(west),
        ]

        no_room, last, both = Signal(), Signal(), Signal()
        m.d.comb += [
            # The word in the register of N_out is written in this very cycle and not yet counted.
            no_room.eq(self._no_room(north.valid)),
            last.eq(self._north_goes_last(no_room)),
            both.eq(self.east_in.valid & self.west_in.valid),
            self.south.ready.eq(~(no_room & both)),
        ]
        new = Signal(self.tuple_layout)
        m.d.comb += [new.valid.eq(self.south.valid & self.south.ready), new.word.eq(self.south.payload)]

        # A tuple on the ring has at least one hop behind it, so a new one is always the youngest.
        ranked = [Signal(self.tuple_layout, name=f"rank{rank}") for rank in range(3)]
        east_first = Signal()
        m.d.comb += east_first.eq(self.east_in.valid & (~self.west_in.valid | self._east_is_older()))
        with m.If(both):
            m.d.comb += [
                ranked[0].eq(Mux(east_first, self.east_in, self.west_in)),
                ranked[1].eq(Mux(east_first, self.west_in, self.east_in)),
                ranked[2].eq(new),
            ]
        with m.Elif(self.east_in.valid | self.west_in.valid):
            m.d.comb += [ranked[0].eq(Mux(east_first, self.east_in, self.west_in)), ranked[1].eq(new)]
        with m.Else():
            m.d.comb += ranked[0].eq(new)

        # How many ports go before each port; the tuple of that rank is its own.
        counters = {NORTH: Cat(self.own, last), EAST: Cat(self.east, 0), WEST: Cat(self.west, 0)}
        outputs = {NORTH: north, EAST: east, WEST: west}
        for port, register in outputs.items():
            first, second = (self._goes_before(other, port, counters) for other in PORTS if other != port)
            chosen = Signal(self.tuple_layout, name=f"to_{port}")
            with m.Switch(first + second):
                for rank in range(3):
                    with m.Case(rank):
                        m.d.comb += chosen.eq(ranked[rank])
            m.d.sync += [
                register.valid.eq(chosen.valid),
                register.hops.eq(self._one_more(chosen.hops)),
                register.word.eq(chosen.word),
            ]
        return m

    def _one_more(self, hops: Value) -> Value:
        return Mux(hops.all(), hops, hops + 1)

    def _no_room(self, being_written: Value) -> Value:
        return self.own + being_written >= self.depth

    def _north_goes_last(self, no_room: Value) -> Value:
        return no_room | self.almost_full if self.north_last == "almost_full" else no_room

    def _east_is_older(self) -> Value:
        if self.rank_ties == EAST:
            return self.east_in.hops >= self.west_in.hops
        return self.east_in.hops > self.west_in.hops

    def _goes_before(self, port: str, other: str, counters: dict[str, Value]) -> Value:
        if self.port_ties.index(port) < self.port_ties.index(other):
            return counters[port] <= counters[other]
        return counters[port] < counters[other]


class AdaptiveNetwork(wiring.Component):
    """n streams of results as one: ring, a FIFO above each node, and a tree without buffers [OGE Fig. 6.1.1].

    The order of results is not kept, not even among those of one core.

    It is made for admission control. Where the cores stop d cycles after a FIFO has become almost full, a margin of
    d + 1 lets every node take every result: one more word may be on its way north when the flag rises. Without
    admission control nothing is lost either, but new results keep old ones on the ring for as long as they come: above
    an almost full FIFO north is the last port, and of three tuples the youngest gets it.

    Attributes:
        n: How many inputs there are; any number.
        depth: Slots of each FIFO.
        margin: A FIFO is almost full while at most so many slots are free.
        latency: Cycles from a write into a FIFO until the word can be read.
        port_ties, rank_ties, north_last, hop_bits: Of every node; see `RingNode`.
        nodes: The ring; the east neighbour of node k is node k + 1, and that of the last is the first.
        fifos: The FIFO above each node.
        inputs: A stream of results from each core.
        output: The root's output.
        almost_full: Whether any FIFO is almost full.
    """

    def __init__(
        self,
        *,
        n: int,
        width: int,
        depth: int,
        margin: int = MARGIN,
        latency: int = LATENCY,
        port_ties: Order = PORT_TIES,
        rank_ties: Literal["E", "W"] = "E",
        north_last: NorthLast = NORTH_LAST,
        hop_bits: int = HOP_BITS,
    ) -> None:
        self.n = n
        self.width = width
        self.depth = depth
        self.margin = margin
        self.latency = latency
        self.port_ties = port_ties
        self.rank_ties = rank_ties
        self.north_last = north_last
        self.hop_bits = hop_bits
        self.nodes = [
            RingNode(
                width=width,
                depth=depth,
                port_ties=port_ties,
                rank_ties=rank_ties,
                north_last=north_last,
                hop_bits=hop_bits,
            )
            for _ in range(n)
        ]
        self.fifos = [Fifo(width=width, depth=depth, margin=margin, latency=latency) for _ in range(n)]
        self._tree = BufferlessTree(n=n, width=width)
        super().__init__(network_signature(n, width))

    def elaborate(self, platform: Any) -> Module:
        """The ring and its counters, the FIFOs, the tree."""
        m = Module()
        m.submodules.tree = self._tree
        for k, (node, fifo) in enumerate(zip(self.nodes, self.fifos, strict=True)):
            m.submodules[f"node{k}"] = node
            m.submodules[f"fifo{k}"] = fifo
            east, west = (k + 1) % self.n, (k - 1) % self.n
            connect(m, flipped(self.inputs[k]), node.south)
            connect(m, node.north, fifo.write)
            connect(m, fifo.read, self._tree.inputs[k])
            m.d.comb += [
                node.east_in.eq(self.nodes[east].west_out),
                node.west_in.eq(self.nodes[west].east_out),
                node.own.eq(fifo.level),
                node.east.eq(self.fifos[east].level),
                node.west.eq(self.fifos[west].level),
                node.almost_full.eq(fifo.almost_full),
            ]
        connect(m, self._tree.output, flipped(self.output))
        m.d.comb += self.almost_full.eq(Cat(fifo.almost_full for fifo in self.fifos).any())
        return m
