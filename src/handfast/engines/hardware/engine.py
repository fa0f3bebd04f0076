"""The join of tables by a circuit: stamped here, joined in the simulated circuit, put together again from places."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import pyarrow as pa

from handfast.engines.hardware.circular.describe import describe_stages
from handfast.engines.hardware.circular.design import RingDesign, design_stages
from handfast.engines.hardware.circular.job import RingJob, held_by
from handfast.engines.hardware.describe import describe
from handfast.engines.hardware.design import Design, design
from handfast.engines.hardware.fits import check_fits
from handfast.engines.hardware.modelled import observe_model
from handfast.engines.hardware.observe import Observation, Progress, observe
from handfast.engines.hardware.options import CIRCULAR, MODEL, STASHED, SUSPEND, HardwareOptions
from handfast.engines.hardware.rows import table_of
from handfast.engines.hardware.simulate import SIMULATE, Outcome
from handfast.engines.hardware.stashed.design import LineDesign
from handfast.engines.hardware.steps import Places, brought, lowest_held, words
from handfast.errors import UnsupportedError
from handfast.flow.admission import split
from handfast.flow.batch import as_batch, schema_of
from handfast.flow.block import Block
from handfast.flow.result import result_schema
from handfast.flow.stamper import Stamper
from handfast.flow.time import END
from handfast.flow.topology import R, S
from handfast.spec.join import BoundJoin, JoinSpec

MOST_STREAMS = 8


@dataclass(frozen=True)
class Job:
    """Bounded inputs with the circuit that joins them.

    Attributes:
        schema: The columns of the result.
        blocks: The stamped tuples of both streams.
        lows: For each tuple of R and of S the first place of the other stream that it holds.
        design: The circuit.
    """

    schema: pa.Schema
    blocks: Sequence[Block]
    lows: tuple[Places, Places]
    design: Design

    @cached_property
    def steps(self) -> Sequence[int]:
        """What the circuit is fed."""
        return words(self.design.layout, self.blocks, self.lows, self.design.shape.flush)

    @property
    def simulator(self) -> str:
        """What the circuit runs on."""
        steps = sum(len(block) for block in self.blocks) + self.design.shape.flush  # were each of one tuple
        return self.design.options.simulator_for(steps * max(self.design.shape.cycles_per_step, self.design.step_every))

    def run(self) -> Outcome:
        """What the circuit gives, and what it loses."""
        if self.simulator == MODEL:
            return observe_model(self.design, self.blocks, self.lows).outcome
        return SIMULATE[self.simulator](self.design.build(), self.steps, every=self.design.step_every)

    def observed(self, *, waveform: Path | None = None, progress: Progress | None = None) -> Observation:
        """Run the circuit and watch it; `waveform` is a VCD to write."""
        if self.simulator == MODEL:
            return observe_model(self.design, self.blocks, self.lows, waveform)
        return observe(
            self.design.build(),
            self.steps,
            simulator=self.simulator,
            every=self.design.step_every,
            waveform=waveform,
            progress=progress,
        )

    def discarded(self, outcome: Outcome) -> tuple[list[int], list[int]]:
        """The places of the tuples of R and of S, among the stamped ones, that were discarded at the entrance."""
        return brought(self.blocks, outcome.discarded)

    def admitted(self, outcome: Outcome) -> dict[str, pa.Table]:
        """The rows of each stream that have stamps and were not discarded: what the result is exact for."""
        names = self.design.join.spec.names
        return {
            name: pa.table(block.batch.take(pa.array(np.setdiff1d(np.arange(len(block)), lost))))
            for name, block, lost in zip(names, self.blocks, self.discarded(outcome), strict=True)
        }

    def table(self, results: Sequence[int]) -> pa.Table:
        """The rows of the result, from the results that the circuit gave."""
        pairs = [self.design.layout.pair(result) for result in results]
        return table_of(self.design.join, self.blocks, np.array(pairs, np.int64).reshape(-1, 2).T, self.schema)


def prepare(spec: JoinSpec, tables: Mapping[str, pa.Table], options: HardwareOptions) -> Job | RingJob | pa.Schema:
    """The circuit for bounded inputs and what it is fed; the result's columns alone where a stream has no row."""
    check_algorithm(len(spec.streams), options)
    join, blocks = _stamped(spec, tables)
    schema = result_schema(join, {name: table.schema for name, table in tables.items()})
    if len(blocks) < len(spec.streams):  # a stream without a row matches nothing
        return schema
    if len(blocks) > 2:
        return RingJob(schema, blocks, _ring(join, blocks, options))
    made, lows = _designed(join, blocks, options)
    return Job(schema, blocks, lows, made)


def join_tables(spec: JoinSpec, tables: Mapping[str, pa.Table], options: HardwareOptions) -> pa.Table:
    """The matches of bounded inputs, found by a circuit."""
    if options.admission != SUSPEND:
        raise UnsupportedError(
            f"A join gives every match, and HardwareOptions(admission={options.admission!r}) loses some; use "
            "admission='suspend', or `handfast simulate`, which counts what is lost"
        )
    job = prepare(spec, tables, options)
    if isinstance(job, pa.Schema):
        return job.empty_table()
    return job.table(job.run().results)


def explain_tables(spec: JoinSpec, tables: Mapping[str, pa.Table], options: HardwareOptions) -> str:
    """The circuit for bounded inputs and the reason for each choice, as text."""
    check_algorithm(len(spec.streams), options)
    join, blocks = _stamped(spec, tables)
    if len(blocks) < len(spec.streams):
        return f"join of {' and '.join(spec.names)} on hardware\n  no circuit: a stream without a row matches nothing"
    if len(blocks) > 2:
        return describe_stages(_ring(join, blocks, options))
    return describe(_designed(join, blocks, options)[0])


def check_can(join: BoundJoin) -> None:
    """Refuse a join that no circuit of this engine can do; the error names engines that can."""
    spec = join.spec
    others = "use engine='local' or 'spark'"
    if len(spec.streams) > MOST_STREAMS:
        raise UnsupportedError(
            f"Engine 'hardware' joins up to {MOST_STREAMS} streams, not {len(spec.streams)}; {others}"
        )
    if spec.how != "inner":
        raise UnsupportedError(f"Engine 'hardware' gives matches alone, not how={spec.how!r}; {others}")
    if spec.in_order:
        raise UnsupportedError(f"Engine 'hardware' gives matches as they are found, not in_order=True; {others}")
    check_fits(join.predicate, spec.names)


def check_algorithm(streams: int, options: HardwareOptions) -> None:
    """Refuse an algorithm that is for more or fewer streams."""
    if (options.algorithm_for(streams) in (CIRCULAR, STASHED)) != (streams > 2):
        fits = "leave it out, or take 'circular'" if streams > 2 else "leave it out, or take 'handshake'"
        count = "three streams and more" if streams == 2 else "two streams"
        raise UnsupportedError(f"HardwareOptions(algorithm={options.algorithm!r}) joins {count}, not {streams}; {fits}")


def _stamped(spec: JoinSpec, tables: Mapping[str, pa.Table]) -> tuple[BoundJoin, list[Block]]:
    """The join, and the stamped tuples of each stream; a stream without any is left out."""
    join = spec.bind({name: schema_of(tables[name].schema) for name in spec.names})
    check_can(join)
    admitted = [split(join, k, as_batch(tables[name]))[0] for k, name in enumerate(spec.names)]
    stamped, _ = Stamper(join).stamp(admitted, END)
    return join, [block for block in stamped if block is not None]


def _designed(
    join: BoundJoin, blocks: Sequence[Block], options: HardwareOptions
) -> tuple[Design, tuple[Places, Places]]:
    """The circuit for these tuples, and for each tuple of R and of S the first place of the other that it holds."""
    windows = [stream.window for stream in join.spec.streams]
    of_r = lowest_held(windows[S], blocks[S], blocks[R], S)
    of_s = lowest_held(windows[R], blocks[R], blocks[S], R)
    held = [int((at.seen[k] - low).max()) for k, at, low in ((R, blocks[S], of_s), (S, blocks[R], of_r))]
    return design(join, options, [len(block) for block in blocks], [max(1, most) for most in held]), (of_r, of_s)


def _ring(join: BoundJoin, blocks: Sequence[Block], options: HardwareOptions) -> RingDesign | LineDesign:
    """The ring for these tuples."""
    windows = [stream.window for stream in join.spec.streams]
    held = np.hstack([held_by(windows, blocks, stream) for stream in range(len(blocks))]).max(axis=1)
    return design_stages(join, options, [len(block) for block in blocks], [max(1, most) for most in held.tolist()])
