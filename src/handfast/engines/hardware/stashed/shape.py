"""The shape of a line of stages with a stash: all numbers that say what it does in which cycle."""

from __future__ import annotations

from dataclasses import dataclass

from handfast.engines.hardware.fifo import MARGIN
from handfast.engines.hardware.pipelined import STAGE_FAN_IN, PipelinedNetwork
from handfast.engines.hardware.stashed.layout import LineLayout
from handfast.engines.hardware.stashed.line import LineCircuit
from handfast.engines.hardware.stashed.line_stage import LineMatches


@dataclass(frozen=True, slots=True)
class LineShape:
    """What a line is made of; the fields that a ring has as well are those of `RingShape`.

    Attributes:
        stash: How many pairs the stash has room for.
        buffer: How many intermediates may wait before each stage.
    """

    sizes: tuple[int, ...]
    counted: tuple[int | None, ...]
    stash: int
    comparisons: int = 1
    in_flight: int = 128
    buffer: int = 8
    network_buffer: int = 8
    margin: int = MARGIN
    stage_fan_in: int = STAGE_FAN_IN
    drops: bool = False

    @property
    def streams(self) -> int:
        """How many streams there are."""
        return len(self.sizes)

    @property
    def stages(self) -> int:
        """How many stages there are."""
        return self.streams - 1

    @property
    def cycles_per_tuple(self) -> int:
        """How many cycles the longest scan of a tuple takes that matches nothing."""
        return -(-max(*self.sizes, self.stash) // self.comparisons) + 2

    def build(self, layout: LineLayout, matches: LineMatches) -> LineCircuit:
        """The circuit, for tuples that lie so in bits and conditions with this logic."""
        network = PipelinedNetwork(
            n=self.stages,
            width=layout.result_width,
            depth=self.network_buffer,
            margin=self.margin,
            fan_in=self.stage_fan_in,
        )
        return LineCircuit(
            layout=layout,
            counted=self.counted,
            matches=matches,
            stash=self.stash,
            buffer=self.buffer,
            network=network,
        )
