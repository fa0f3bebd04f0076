"""The shape of a ring: all numbers that say what it does in which cycle, whatever its tuples are."""

from __future__ import annotations

from dataclasses import dataclass

from handfast.engines.hardware.circular.layout import RingLayout
from handfast.engines.hardware.circular.ring import RingCircuit
from handfast.engines.hardware.circular.stage import StageMatches
from handfast.engines.hardware.fifo import MARGIN
from handfast.engines.hardware.options import ROUND_ROBIN
from handfast.engines.hardware.pipelined import STAGE_FAN_IN, PipelinedNetwork


@dataclass(frozen=True, slots=True)
class RingShape:
    """What a ring is made of.

    Attributes:
        sizes: How many tuples the window of each stream holds at most.
        counted: By stream, how many rows its window holds; None for a window of time, of which that is said with each
            tuple.
        comparisons: How many slots a stage compares at a time.
        in_flight: How many tuples may be under way.
        buffer: How many intermediates there is room for at each stage and hop.
        turn: Which item of a stage is next, "round_robin" or "highest"; see `RingStage`.
        network_buffer: Slots of the FIFO behind each stage.
        margin: Of these FIFOs.
        stage_fan_in: Inputs of the mergers.
        drops: Whether intermediates without room are dropped, as in the paper.
    """

    sizes: tuple[int, ...]
    counted: tuple[int | None, ...]
    comparisons: int = 1
    in_flight: int = 128
    buffer: int = 8
    network_buffer: int = 8
    margin: int = MARGIN
    stage_fan_in: int = STAGE_FAN_IN
    turn: str = ROUND_ROBIN
    drops: bool = False

    @property
    def streams(self) -> int:
        """How many streams there are."""
        return len(self.sizes)

    @property
    def stages(self) -> int:
        """How many stages there are."""
        return self.streams

    @property
    def cycles_per_tuple(self) -> int:
        """How many cycles the longest scan of a tuple takes that matches nothing: each stage begins one so often."""
        return -(-max(self.sizes) // self.comparisons) + 2

    def build(self, layout: RingLayout, matches: StageMatches) -> RingCircuit:
        """The circuit, for tuples that lie so in bits and conditions with this logic."""
        network = PipelinedNetwork(
            n=self.streams,
            width=layout.result_width,
            depth=self.network_buffer,
            margin=self.margin,
            fan_in=self.stage_fan_in,
        )
        return RingCircuit(
            layout=layout,
            counted=self.counted,
            matches=matches,
            buffer=self.buffer,
            network=network,
            turn=self.turn,
            drops=self.drops,
        )
