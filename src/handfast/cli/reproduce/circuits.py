"""The thesis' circuits, and every choice that it leaves open, by name, with the alternatives."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

from handfast.cli.reproduce.printed import Buffers
from handfast.engines.hardware.options import ADAPTIVE, NESTED_LOOP, TREE
from handfast.engines.hardware.shape import CircuitShape
from handfast.engines.hardware.tree import level_sizes


@dataclass(frozen=True, slots=True)
class Option:
    """One way to decide a choice: in words, and as fields of the shape."""

    says: str
    fields: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Choice:
    """Something that decides about cycles and that the thesis does not give.

    Attributes:
        name: What is chosen.
        text: What the thesis says about it.
        options: What was tried; the first is what the reproduction goes by.
    """

    name: str
    text: str
    options: tuple[Option, ...]

    @property
    def chosen(self) -> Option:
        """What the reproduction goes by."""
        return self.options[0]


OPEN = (  # what the cycles printed for FIFOs of 8 and 16 hardly depend on
    Choice(
        "merger loop",
        "three states, one behind the other [§4.2]",
        (
            Option("4 cycles, writes: 2nd and 4th", {"cycles": 4, "writes": (1, 3)}),
            Option("4 cycles, writes: 2nd and 3rd", {"cycles": 4, "writes": (1, 2)}),
            Option("4 cycles, writes: 3rd and 4th", {"cycles": 4, "writes": (2, 3)}),
            Option("3 cycles, writes: 2nd and 3rd, as in the text", {"cycles": 3, "writes": (1, 2)}),
        ),
    ),
    Choice(
        "margin of the full flag",
        "“only few locations left” [§4.1]",
        (
            Option("3 free slots", {"margin": 3}),
            Option("2 free slots", {"margin": 2}),
            Option("1 free slot", {"margin": 1}),
        ),
    ),
    Choice(
        "latency of a FIFO",
        "block RAM, one read and one write a cycle [§4.1]",
        (
            Option("readable 2 cycles after the write", {"latency": 2}),
            Option("readable 1 cycle after it", {"latency": 1}),
        ),
    ),
)

OF_TREE = (
    *OPEN,
    Choice(
        "delay of the suspension",
        "the flags are stored in a flip-flop [§4.4]",
        (Option("1 flip-flop", {"delay": 1}), Option("2 flip-flops", {"delay": 2})),
    ),
    Choice(
        "output channel",
        "its bandwidth “strictly limits the throughput” [§4.5.2]; no number",
        (
            Option("a result every 4 cycles", {"cycles_per_result": 4}),
            Option("a result every 3 cycles", {"cycles_per_result": 3}),
            Option("a result every 2 cycles", {"cycles_per_result": 2}),
            Option("a result every cycle", {"cycles_per_result": 1}),
        ),
    ),
)

OF_RING = (
    Choice(
        "equal counters",
        "nothing",
        (
            Option("north, east, west", {"port_ties": "NEW"}),
            Option("north, west, east", {"port_ties": "NWE"}),
            Option("east, north, west", {"port_ties": "ENW"}),
        ),
    ),
    Choice(
        "equal hop counts",
        "nothing",
        (Option("the tuple from the east", {"rank_ties": "E"}), Option("the tuple from the west", {"rank_ties": "W"})),
    ),
    Choice(
        "north goes last",
        "nothing; by the counters alone a tuple is sent to a full FIFO and lost",
        (
            Option("while the own FIFO is almost full", {"north_last": "almost_full"}),
            Option("only while it has no room", {"north_last": "full"}),
        ),
    ),
    Choice(
        "margin of the full flag",
        "“almost (or completely) full” [§6.2.3]",
        (
            Option("3 free slots", {"margin": 3}),
            Option("2 free slots", {"margin": 2}),
            Option("1 free slot", {"margin": 1}),
        ),
    ),
    Choice(
        "latency of a FIFO",
        "nothing",
        (
            Option("readable 2 cycles after the write", {"latency": 2}),
            Option("readable 1 cycle after it", {"latency": 1}),
        ),
    ),
)

COMBINATIONS = tuple(product(*(choice.options for choice in OPEN)))
"""Every way to decide the choices that the figures for FIFOs of 8 and 16 leave open."""

_TREE_BUFFERS = {"core_buffer": 8, "network_buffer": 4}  # of the throughput figures [OGE §4.5.2]
_RING_BUFFER = 8  # [OGE §6.3.1]


def baseline(cores: int, segment: int, **changes: Any) -> CircuitShape:
    """The circuit of Chapter 4: handshake join with a tree network."""
    chosen = {name: value for choice in OF_TREE for name, value in choice.chosen.fields.items()}
    return CircuitShape(cores, (segment, segment), network=TREE, **{**_TREE_BUFFERS, **chosen, **changes})


def proposed(cores: int, segment: int, **changes: Any) -> CircuitShape:
    """The circuit of Chapter 6: handshake join with an adaptive network."""
    chosen = {name: value for choice in OF_RING for name, value in choice.chosen.fields.items()}
    fields = {"network_buffer": _RING_BUFFER, **chosen, **changes}
    return CircuitShape(cores, (segment, segment), network=ADAPTIVE, **fields)


def nested_loop(window: int) -> CircuitShape:
    """The nested-loop join with windows of so many tuples; its two units share an output without a limit of its own."""
    return CircuitShape(1, (window, window), algorithm=NESTED_LOOP, network=TREE, merger="round_robin", ram=True)


def uniform(shape: CircuitShape, slots: int) -> CircuitShape:
    """The baseline with so many slots in every FIFO [OGE §5.1]."""
    return replace(shape, core_buffer=slots, network_buffer=slots)


def by_level(shape: CircuitShape, buffers: Buffers) -> CircuitShape:
    """The baseline with buffers by level [OGE Table 5.1]; of a smaller tree, its levels from the root on."""
    levels = len(level_sizes(shape.inputs, shape.fan_in))
    return replace(shape, core_buffer=buffers.core, network_buffer=buffers.levels[:levels])


def slots(shape: CircuitShape) -> int:
    """The slots of all FIFOs together."""
    if shape.network == ADAPTIVE:
        assert isinstance(shape.network_buffer, int)
        return shape.inputs * shape.network_buffer
    sizes = level_sizes(shape.inputs, shape.fan_in)
    own = shape.network_buffer
    depths = [own] * len(sizes) if isinstance(own, int) else list(own)
    return shape.inputs * shape.core_buffer + sum(n * depth for n, depth in zip(sizes, depths, strict=True))


def fifos(shape: CircuitShape) -> int:
    """How many FIFOs a circuit has."""
    return shape.inputs if shape.network == ADAPTIVE else shape.inputs + sum(level_sizes(shape.inputs, shape.fan_in))
