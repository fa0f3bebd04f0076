"""A join of three and more tables with the ring that joins them: what it is fed, how it runs, what its results mean."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import pyarrow as pa

from handfast.engines.hardware.circular.design import RingDesign
from handfast.engines.hardware.circular.modelled import Matches, entering, line_ways, ring_ways
from handfast.engines.hardware.layout import numbers
from handfast.engines.hardware.model.circular import RingRun
from handfast.engines.hardware.model.circular import run as run_ring
from handfast.engines.hardware.model.stashed import run as run_line
from handfast.engines.hardware.observe import Observation, Progress, observe
from handfast.engines.hardware.options import MODEL
from handfast.engines.hardware.rows import table_of
from handfast.engines.hardware.simulate import SIMULATE, Outcome
from handfast.engines.hardware.stashed.design import LineDesign
from handfast.engines.hardware.steps import Places, lowest_held
from handfast.errors import UnsupportedError
from handfast.flow.block import Block
from handfast.spec.window import Window


@dataclass(frozen=True)
class RingJob:
    """Bounded inputs with the ring that joins them.

    Attributes:
        schema: The columns of the result.
        blocks: The stamped tuples of each stream.
        design: The circuit.
    """

    schema: pa.Schema
    blocks: Sequence[Block]
    design: RingDesign | LineDesign

    @cached_property
    def steps(self) -> Sequence[int]:
        """What the circuit is fed: tuples in the order of their rank."""
        layout = self.design.layout
        windows = [stream.window for stream in self.design.join.spec.streams]
        fed = []
        for stream, block in enumerate(self.blocks):
            own = layout.slot(stream)
            columns = [numbers(block.batch.column(column.name), column.type) for column in own.columns]
            values = zip(*columns, strict=True) if columns else iter([()] * len(block))
            held = held_by(windows, self.blocks, stream)
            for seq, (rank, row, count) in enumerate(
                zip(np.sum(block.seen, axis=0).tolist(), values, held.T.tolist(), strict=True)
            ):
                fed.append((rank, layout.pack_step(stream, own.pack(seq, 0, row), count)))
        return [word for _, word in sorted(fed)]

    @property
    def simulator(self) -> str:
        """What the circuit runs on."""
        tuples = sum(len(block) for block in self.blocks)
        cycles = tuples * max(self.design.shape.cycles_per_tuple, self.design.step_every)
        return self.design.options.simulator_for(cycles, stages=self.design.shape.stages)

    def run(self) -> Outcome:
        """What the circuit gives, and what it loses."""
        if self.simulator == MODEL:
            return self._on_model().outcome
        return SIMULATE[self.simulator](self.design.build(), self.steps, every=self.design.step_every)

    def observed(self, *, waveform: Path | None = None, progress: Progress | None = None) -> Observation:
        """Run the circuit and watch it; `waveform` is a VCD to write."""
        if self.simulator == MODEL:
            if waveform is not None:
                raise UnsupportedError(
                    "The fast model has no signals that a waveform could show; use simulator 'amaranth' or 'verilator'"
                )
            return self._on_model()
        return observe(
            self.design.build(),
            self.steps,
            simulator=self.simulator,
            every=self.design.step_every,
            waveform=waveform,
            progress=progress,
        )

    def table(self, results: Sequence[int]) -> pa.Table:
        """The rows of the result, from the results that the circuit gave."""
        places = [self.design.layout.places(result) for result in results]
        by_stream = np.array(places, np.int64).reshape(-1, len(self.blocks)).T
        return table_of(self.design.join, self.blocks, by_stream, self.schema)

    def modelled(self, *, levels: bool = False) -> RingRun:
        """What the circuit does, as the fast model has it; with `levels`, every queue in every cycle."""
        windows = [stream.window for stream in self.design.join.spec.streams]
        into = entering(self.blocks, [held_by(windows, self.blocks, k) for k in range(len(self.blocks))])
        every = self.design.step_every
        if isinstance(self.design, LineDesign):
            lists = Matches(line_ways(self.design.conditions), self.blocks, into).lists()
            return run_line(self.design.shape, into, lists, every=every, levels=levels)
        lists = Matches(ring_ways(self.design.conditions), self.blocks, into).lists()
        return run_ring(self.design.shape, into, lists, every=every, levels=levels)

    def _on_model(self) -> Observation:
        found = self.modelled()
        results = [self.design.layout.number(places) for places in found.results.tolist()]
        outcome = Outcome(results, found.cycles.tolist(), dropped=found.dropped)
        fifos = tuple(found.highest[-self.design.shape.stages :].tolist())
        return Observation(outcome, found.idle, fifos, int(found.waited.sum()))


def held_by(windows: Sequence[Window], blocks: Sequence[Block], stream: int) -> Places:
    """By stream, how many tuples its window holds at the arrival of each tuple of one stream; of its own, none."""
    at = blocks[stream]
    held = np.zeros((len(blocks), len(at)), np.int64)
    for other, block in enumerate(blocks):
        if other != stream:
            held[other] = at.seen[other] - lowest_held(windows[other], block, at, other)
    return held
