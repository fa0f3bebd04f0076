"""The fast model of the whole circuit: in every cycle what the RTL does, result by result and FIFO by FIFO.

What matches is given; the model says when. Numba compiles it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from handfast.engines.hardware.model import advance as loop
from handfast.engines.hardware.model.adaptive import empty_adaptive
from handfast.engines.hardware.model.bits import Ints
from handfast.engines.hardware.model.chain import new_chain
from handfast.engines.hardware.model.fifos import Fifos
from handfast.engines.hardware.model.pairs import Pairs
from handfast.engines.hardware.model.pipelined import Stages, empty_stages
from handfast.engines.hardware.model.tree import empty_tree
from handfast.engines.hardware.options import ADAPTIVE, DROP, PIPELINED, SUSPEND, TREE
from handfast.engines.hardware.shape import CircuitShape
from handfast.errors import InternalError, SpecError, UnsupportedError

__all__ = ["EMPTY", "STAYS", "Ints", "ModelRun", "Pairs", "Steps", "run"]

EMPTY = -1
"""An empty slot is shifted in."""

STAYS = -2
"""The stream is not shifted in this step."""

_NETWORKS = {TREE: loop.IN_TREE, ADAPTIVE: loop.IN_RING, PIPELINED: loop.IN_STAGES}
_SMALLEST = CircuitShape(cores=1, sizes=(1, 1))
_ROOM = 1 << 16  # results, or samples of levels, that the loop writes before it returns


@dataclass(frozen=True, slots=True)
class Steps:
    """What enters, by step: the place of the R and of the S tuple, `EMPTY` or `STAYS`."""

    r: Ints
    s: Ints

    def __post_init__(self) -> None:
        if np.shape(self.r) != np.shape(self.s) or np.ndim(self.r) != 1:
            raise SpecError(
                f"Each step has its place of R and of S, and there are {np.shape(self.r)} and {np.shape(self.s)}"
            )


@dataclass(frozen=True, slots=True)
class ModelRun:
    """What a circuit did.

    Attributes:
        r, s: The results, by the places of their tuples, in the order in which they come out.
        cycles: The cycle of each; the first step is offered in cycle 0.
        total: The cycle after the last result.
        idle: The cycle from which on the circuit says that every match has come out.
        taken: The cycle in which each step was taken.
        suspended: For how many cycles the cores stood still.
        discarded: The numbers of the steps that were discarded; in `taken` they have the cycle in which they were.
        dropped: How many results were dropped.
        highest: By FIFO the most it ever held. The FIFOs are in the order of `JoinCircuit.fifos`.
        levels: By FIFO and sample its level in cycle 0, every, 2 · every, … up to `idle`; None if not asked for.
    """

    r: Ints
    s: Ints
    cycles: Ints
    total: int
    idle: int
    taken: Ints
    suspended: int
    discarded: Ints
    dropped: int
    highest: Ints
    levels: NDArray[np.int64] | None


def run(shape: CircuitShape, steps: Steps, pairs: Pairs, *, every: int = 0, levels_every: int = 0) -> ModelRun:
    """Run a circuit from reset until it has given all results; its output is always taken.

    Args:
        shape: The circuit.
        steps: What enters.
        pairs: Which tuples match.
        every: Step k is offered from cycle k · `every` on; with 0, as soon as the one before it was taken.
        levels_every: After how many cycles the levels of the FIFOs are looked at again; 0: they are not.
    """
    if shape.latency not in (1, 2):
        raise UnsupportedError(
            f"The fast model has FIFOs with a latency of 1 or 2 cycles, not {shape.latency!r}; use another simulator"
        )
    entering = [np.asarray(own, np.int64) for own in (steps.r, steps.s)]
    places = [own[own != STAYS] for own in entering]  # by slot
    chain = new_chain(shape, pairs.partners(*places))
    network = _NETWORKS[shape.network]
    # In the place of the networks that a circuit does not have there are small ones.
    tree, tree_fifos = empty_tree(shape if network == loop.IN_TREE else _SMALLEST)
    ring, bufferless, ring_fifos = empty_adaptive(shape if network == loop.IN_RING else _SMALLEST)
    stages, stage_fifos = _stages(shape if network == loop.IN_STAGES else _SMALLEST)
    fifos = (tree_fifos, ring_fifos, stage_fifos)[network]
    state = loop.new_state(shape.delay)
    admits = shape.admission == SUSPEND, shape.admission == DROP
    shifts = [own != STAYS for own in entering]
    brings = (entering[0] >= 0) | (entering[1] >= 0)
    taken = np.full(len(brings), -1, np.int64)
    discarded = np.zeros(len(brings), np.bool_)
    words, cycles = np.empty(_ROOM, np.int64), np.empty(_ROOM, np.int64)
    samples = np.empty((_ROOM // len(fifos.level) + 1 if levels_every else 0, len(fifos.level)), np.int64)
    quiet = shape.merge_clock * (1_000 + 8 * sum(shape.sizes))  # cycles: much longer than a step without a match
    found: list[tuple[Ints, Ints]] = []
    sampled: list[Ints] = []
    while True:
        status = loop.advance(
            state, chain, fifos, tree, ring, bufferless, stages, network, shape.merge_clock, *admits, *shifts, brings,
            every, taken, discarded, words, cycles, samples, levels_every, quiet,
        )  # fmt: skip
        count = int(state.counts[loop.RESULTS])
        found.append((words[:count].copy(), cycles[:count].copy()))
        sampled.append(samples[: int(state.counts[loop.SAMPLES])].copy())
        if status == loop.STUCK:
            raise InternalError(
                f"The circuit stands still in cycle {int(state.counts[loop.CYCLE])} before it has given every result"
            )
        if status == loop.IDLE:
            break
    all_words, all_cycles = (np.concatenate(own) for own in zip(*found, strict=True))
    return ModelRun(
        r=places[0][all_words >> 32],
        s=places[1][all_words & 0xFFFF_FFFF],
        cycles=all_cycles,
        total=int(all_cycles[-1]) + 1 if len(all_cycles) else 0,
        idle=int(state.counts[loop.CYCLE]),
        taken=taken,
        suspended=int(state.counts[loop.SUSPENDED]),
        discarded=np.flatnonzero(discarded),
        dropped=int(state.counts[loop.DROPPED]),
        highest=fifos.highest,
        levels=np.concatenate(sampled).T if levels_every else None,
    )


def _stages(shape: CircuitShape) -> tuple[Stages, Fifos]:
    """The pipelined network of a circuit."""
    assert isinstance(shape.network_buffer, int)
    return empty_stages(shape.inputs, fan_in=shape.stage_fan_in, depth=shape.network_buffer, margin=shape.margin)
