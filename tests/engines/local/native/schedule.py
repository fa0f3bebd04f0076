"""A chain in machine code whose every step is chosen by a seed: sends, the cores' actions, the collector's turns."""

from __future__ import annotations

import random
from collections import Counter, deque
from collections.abc import Callable
from functools import partial
from typing import Any

import pyarrow as pa

from handfast.engines.local.native import actions, memory
from handfast.engines.local.native.chain import NativeChain
from handfast.engines.local.native.collector import Collector
from handfast.engines.local.native.driver import write_down
from handfast.engines.local.native.loop import LOOP
from handfast.engines.local.native.memory import FLUSH, KIND_BITS, Core
from handfast.engines.local.native.windows import Windows
from handfast.flow.topology import STREAMS, ChainTopology, Side
from handfast.kernels.sizes import USUAL, KernelSizes
from handfast.plan import SCAN
from tests.engines.local.schedule import fed, plan_of
from tests.judges.rows import multiset, result_of
from tests.strategies import Case

_MOST_ROUNDS = 20_000
_CHUNKS = (3, 4, 7)  # bits: chunks of 8, 16 and 128 tuples, so that segments reach over several


class ScheduledNative:
    """A chain without threads. Its actions run as Python, one word at a time, or compiled: they are the same ones."""

    def __init__(
        self,
        case: Case,
        *,
        cores: int,
        capacity: int,
        rows: int,
        bits: int,
        compiled: bool,
        sizes: KernelSizes = USUAL,
        pairs: int = 1,
    ) -> None:
        plan, topology = plan_of(case, SCAN), ChainTopology(cores)
        self.chain = NativeChain(plan, topology, capacity=capacity, rows=rows, bits=bits, sizes=sizes, pairs=pairs)
        self.found: list[pa.RecordBatch] = []
        self.collector = Collector(plan, self.chain, self.found.append)
        self._steps = list(fed(case, plan))
        self._windows = Windows(plan, topology, self.chain.rows, 1 << bits)
        self.unsent: dict[Side, deque[int]] = {end: deque() for end in Side}
        self._compiled = compiled
        acts = [partial(self.act, core, number) for core in self.chain.cores for number in range(4)]
        self.moves: list[Callable[[], bool]] = [
            self.step, *(partial(self.send, end) for end in Side), self.collector.work, *acts,
        ]  # fmt: skip

    def step(self) -> bool:
        """Let the driver take in what comes next; at the end, that nothing does."""
        if not self._steps:
            return False
        admitted, horizon = self._steps.pop(0)
        blocks = [block.sorted() if block is not None else None for block in admitted]
        write_down(self.chain, self.collector, blocks)
        for end, words in self._windows.messages(blocks, horizon):
            self.unsent[end].extend(map(int, words))
        if not self._steps:
            for own in self.unsent.values():
                own.append(FLUSH)
        return True

    def send(self, end: Side) -> bool:
        """Let the driver send its next message at one end, if there is room for it."""
        ring, _ = self.chain.entrance(end)
        if not self.unsent[end] or not actions.room(ring, 1):
            return False
        word = self.unsent[end].popleft()
        actions.send(ring, word & (1 << KIND_BITS) - 1, word >> KIND_BITS)
        return True

    def act(self, core: Core, number: int) -> bool:
        """Let a core do one thing, if it can; if it lacks a kernel, make that first."""
        names = ("process_left", "process_right", "forward_s", "forward_r")
        did = LOOP.repeat(core, number, 1) if self._compiled else getattr(actions, names[number])(core)
        if core.row[memory.WANTED]:
            self.chain.compile_wanted(core)
            return True
        return bool(did)

    def accounts(self) -> None:
        """Every tuple that has entered is at one place."""
        for stream in STREAMS:
            tally = self.chain.tally(stream)
            assert min(tally.waiting, tally.live, tally.expired) >= 0, f"{tally}"
            assert tally.waiting + tally.live + tally.expired == self.chain.log.stops[stream]

    def run(self, chance: random.Random) -> None:
        """Take steps at random until none is left. Some are favoured for a while, and some left out: queues fill."""
        for _ in range(_MOST_ROUNDS):
            weights = [chance.choice((0, 1, 1, 8)) for _ in self.moves]
            for _ in range(chance.randrange(1, 40)):
                if any(weights):
                    chance.choices(self.moves, weights)[0]()
            self.accounts()
            if not self._steps and self.chain.is_flushed and not sum(move() for move in self.moves):
                break
        else:
            raise AssertionError("the chain does not come to its end")
        for stream in STREAMS:
            tally = self.chain.tally(stream)
            assert (0, 0) == (tally.waiting, tally.live), f"{tally}"

    def close(self) -> None:
        """Give back what its threads would have slept by."""
        for bell in self.chain.bells:
            bell.close()

    def rows(self) -> Counter[tuple[Any, ...]]:
        """What was found."""
        return multiset(row for batch in self.found for row in result_of(pa.Table.from_batches([batch])))


def found_natively(case: Case, seed: int, *, cores: int, compiled: bool) -> Counter[tuple[Any, ...]]:
    """What a chain finds when its steps are those of this seed."""
    chance = random.Random(seed)
    capacity, rows, bits = chance.choice((2, 3, 8)), chance.choice((1, 1, 2, 5)), chance.choice(_CHUNKS)
    scheduled = ScheduledNative(case, cores=cores, capacity=capacity, rows=rows, bits=bits, compiled=compiled)
    try:
        scheduled.run(chance)
        return scheduled.rows()
    finally:
        scheduled.close()
