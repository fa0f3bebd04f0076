"""A join on the fast model: what matches says the kernel of the other engines, when it comes out says the model."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from handfast.engines.hardware.design import Design
from handfast.engines.hardware.model.circuit import EMPTY, STAYS, Pairs, Steps, run
from handfast.engines.hardware.observe import Observation
from handfast.engines.hardware.options import THROTTLE
from handfast.engines.hardware.simulate import Outcome
from handfast.engines.hardware.steps import Places, in_steps
from handfast.errors import UnsupportedError
from handfast.flow.block import Block
from handfast.flow.topology import R, S
from handfast.kernels.columns import ColumnReader, Reading
from handfast.kernels.compiler.program import make_program
from handfast.kernels.compiler.window import WindowRule
from handfast.kernels.pairs import PairKernels
from handfast.kernels.strings import StringTable


def observe_model(
    design: Design, blocks: Sequence[Block], lows: tuple[Places, Places], waveform: Path | None = None
) -> Observation:
    """What the circuit does with these tuples, as the model has it."""
    if waveform is not None:
        raise UnsupportedError(
            "The fast model has no signals that a waveform could show; use simulator 'amaranth' or 'verilator'"
        )
    steps = places(blocks, design.shape.flush)
    found = run(design.shape, steps, matching(design, blocks, lows), every=design.step_every)
    results = [design.layout.number(r, s) for r, s in zip(found.r.tolist(), found.s.tolist(), strict=True)]
    outcome = Outcome(results, found.cycles.tolist(), found.discarded.tolist(), found.dropped)
    return Observation(outcome, found.idle, tuple(found.highest.tolist()), found.suspended)


def places(blocks: Sequence[Block], flush: int) -> Steps:
    """What enters, by the places of the tuples."""
    found = [tuple(STAYS if own is None else own[1] for own in step) for step in in_steps(blocks)]
    found += [(EMPTY, EMPTY)] * flush
    r, s = np.array(found, np.int64).T
    return Steps(r, s)


def matching(design: Design, blocks: Sequence[Block], lows: tuple[Places, Places]) -> Pairs:
    """The pairs that a core finds where both are in it: the predicate is true and, if the cores compare them, so are
    the stamps. Whether both are in the chain together, the model finds out itself; pairs that cannot be are left out.
    """
    program = make_program(design.join.predicate, [], len(blocks))
    # Where two tuples are in the chain together, no more of one stream have come between them than it has slots for; of
    # those that are discarded any number.
    slots = [size * design.shape.cores for size in design.sizes]
    if design.shape.admission == THROTTLE:
        slots = [len(block) for block in blocks]
    kernels = PairKernels(program, WindowRule((slots[R], slots[S]), counted=(True, True)))
    reader = ColumnReader(Reading(program, ordered_strings=False), StringTable())
    r, s = (reader.for_pairs(k, reader.read(k, block)) for k, block in enumerate(blocks))
    found = list(kernels.scan(r, s, reader.literals(kernels.literals), (0, 0)))
    r_places, s_places = (np.concatenate([np.empty(0, np.int64), *(pair[k] for pair in found)]) for k in (R, S))
    if design.layout.compares_stamps:
        held = (r_places >= lows[S][s_places]) & (s_places >= lows[R][r_places])
        r_places, s_places = r_places[held], s_places[held]
    return Pairs.of(r_places, s_places, (len(blocks[R]), len(blocks[S])))
