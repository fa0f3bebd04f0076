"""The lock-step chain in plain Python: what the circuits are compared with, core by core."""

from __future__ import annotations

import random
from collections import deque
from dataclasses import dataclass
from itertools import count
from typing import Any

from handfast.engines.hardware.layout import JoinLayout, TupleLayout
from handfast.flow.topology import R, S
from handfast.spec import types
from handfast.spec.expression import Column

LAYOUT = JoinLayout(
    TupleLayout((Column(0, "k", types.INT8),), seq=10), TupleLayout((Column(1, "k", types.INT8),), seq=10)
)


@dataclass(frozen=True)
class Slot:
    """A tuple: its place in its stream, its key, and the first place of the other stream that it holds."""

    seq: int
    key: int
    low: int = 0

    def word(self, stream: int, layout: JoinLayout = LAYOUT) -> int:
        return layout.of(stream).pack(self.seq, self.low, (self.key,))


Step = tuple[Slot | None, Slot | None]  # a tuple of R, a tuple of S; None: the stream does not shift
EMPTY = Slot(-1, 0)  # shifts, and brings nothing


def same_key(m: Any, r: Any, s: Any) -> Any:
    """The predicate of these tests as logic."""
    return r["columns"]["k"]["value"] == s["columns"]["k"]["value"]


def step_word(step: Step, layout: JoinLayout = LAYOUT) -> int:
    """A step as the circuit takes it."""
    r, s = (
        None if slot is None else 0 if slot is EMPTY else slot.word(stream, layout) for stream, slot in enumerate(step)
    )
    return layout.pack_step(r, s)


class PlainChain:
    """Cores with segments as queues; a step gives the pairs that each core finds."""

    def __init__(self, cores: int, sizes: tuple[int, int]) -> None:
        self.segments = [[deque([EMPTY] * size, maxlen=size) for size in sizes] for _ in range(cores)]

    def step(self, step: Step) -> list[set[tuple[int, int]]]:
        found: list[set[tuple[int, int]]] = [set() for _ in self.segments]
        for stream, new in ((R, step[R]), (S, step[S])):
            if new is None:
                continue
            entering = new
            order = range(len(self.segments)) if stream == R else reversed(range(len(self.segments)))
            for core in order:
                own, other = self.segments[core][stream], self.segments[core][1 - stream]
                leaving = own[0]
                own.append(entering)
                for met in other:
                    if EMPTY not in (entering, met) and entering.key == met.key:
                        found[core].add((entering.seq, met.seq) if stream == R else (met.seq, entering.seq))
                entering = leaving
        return found


def random_steps(rng: random.Random, number: int, keys: int) -> list[Step]:
    """Steps of one tuple or two, in bursts of either stream, some of them empty."""
    places = count(), count()
    bias = rng.random()
    steps: list[Step] = []
    for _ in range(number):
        if rng.random() < 0.1:
            bias = rng.random()
        shifts = rng.choice(((1, 1), (1, 0) if rng.random() < bias else (0, 1)))
        slots = [
            (EMPTY if rng.random() < 0.1 else Slot(next(places[k]), rng.randrange(keys))) if shifts[k] else None
            for k in (R, S)
        ]
        steps.append((slots[R], slots[S]))
    return steps
