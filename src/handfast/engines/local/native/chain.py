"""The cores of a chain with the rings between them, as memory: what threads work on, and what can be read of it."""

from __future__ import annotations

import ctypes
import time

import numpy as np

from handfast.core.recipe import Recipe, recipe
from handfast.engines.local.balance import Cost, relative_costs
from handfast.engines.local.cores import Tally
from handfast.engines.local.native import memory
from handfast.engines.local.native.bell import bells_of
from handfast.engines.local.native.log import BITS, Log
from handfast.engines.local.native.loop import LOOP
from handfast.engines.local.native.memory import CHUNK, EVEN, SAMPLES, SLOTS, Core, Words
from handfast.flow.metrics import CoreMetrics
from handfast.flow.topology import STREAMS, ChainTopology, R, S, Side
from handfast.kernels.compiler.scan import SPARE
from handfast.kernels.sizes import USUAL, KernelSizes
from handfast.kernels.strings import StringTable
from handfast.plan import Plan

_PAIRS = 1 << 15  # matches that wait for the collector, of each core, at least
_LIBRARY = ctypes.CDLL(None)


class NativeChain:
    """The memory of a chain: rows and rings, the log, the kernels.

    Attributes:
        topology: Its cores, and who is whose neighbour.
        cores: What each core works with.
        driver: The driver's row; `collector` is the collector's.
        log: The tuples.
        reader: Reads tuples as the kernels do.
    """

    def __init__(
        self,
        plan: Plan,
        topology: ChainTopology,
        *,
        capacity: int,
        rows: int,
        sizes: KernelSizes = USUAL,
        bits: int = BITS,
        spins: int = 1,
        pairs: int = _PAIRS,
    ) -> None:
        made = recipe(plan) if sizes is USUAL else Recipe(plan, sizes)
        self.topology = topology
        self.rows = min(rows, 1 << bits)
        self._pairs = made.pairing(R, S).kernels
        self.reader = made.reader(StringTable())
        self._literals = self.reader.literals(self._pairs.literals)
        self._states = memory.shared(memory.ROW * (topology.cores + 2)).reshape(-1, memory.ROW)
        self.bells = bells_of(list(self._states))
        *cores, self.driver, self.collector = self._states
        self.states = self._states[: topology.cores]
        self.log = Log(np.zeros(2 * SLOTS * CHUNK, np.int64), bits)
        self.kernels = np.zeros(memory.KERNELS, np.int64)
        self._byte = np.zeros(2, np.uint8)
        room = self._pairs.room(self.rows)
        found = 1 << (2 * max(pairs, room) - 1).bit_length()
        ends = [(left, right) for left, right in topology.links]
        rightward = [memory.ring(capacity) for _ in ends]
        leftward = [memory.ring(capacity) for _ in ends]
        rules = [self._rules(room, bits, spins) for _ in cores]
        self.cores = []
        for number, row in enumerate(cores):
            sides = [topology.neighbour(number, side) for side in (Side.LEFT, Side.RIGHT)]
            row[memory.ENDS] = (sides[0] is None) + 2 * (sides[1] is None)
            row[memory.WEIGHT] = EVEN
            left, right = (self._states[own] if own is not None else self.driver for own in sides)
            own = Core(
                row, left, right, self.collector,
                rightward[number], leftward[number], leftward[number + 1], rightward[number + 1],
                memory.ring(found, 2), self.log.chunks, self.kernels, rules[number],
                np.zeros(room + SPARE, np.int32), np.zeros(room + SPARE, np.int32),
                memory.shared(self.rows), memory.shared(self.rows), memory.shared(8), memory.shared(8),
            )  # fmt: skip
            for place, array in (
                (memory.OUTER_OUT, own.outer_out), (memory.INNER_OUT, own.inner_out), (memory.STARTS, own.starts),
                (memory.STOPS, own.stops), (memory.STATE, own.state), (memory.TIME, own.time),
            ):  # fmt: skip
                own.rules[place] = array.ctypes.data
            self.cores.append(own)
        self._costs = [Cost() for _ in cores]
        self._measured = [0] * len(cores)

    @property
    def rules(self) -> Words:
        """What does not change: what threads of Python need of it to wake a core."""
        return self.cores[0].rules

    def _rules(self, room: int, bits: int, spins: int) -> Words:
        rules = memory.shared(memory.RULES)
        rules[memory.LENGTH : memory.LENGTH + 2] = self._pairs.lengths
        rules[memory.LITERALS] = self._literals.ctypes.data
        rules[memory.CAPACITY] = room
        rules[memory.ROWS] = self.rows
        rules[memory.CHUNK_BITS] = bits
        rules[memory.SPARE_TUPLES] = SPARE
        rules[memory.RARE] = self._pairs.rare
        rules[memory.SPINS] = spins
        rules[memory.CLOCK_ID] = time.CLOCK_MONOTONIC
        rules[memory.BYTE] = self._byte.ctypes.data
        for place, function in (
            (memory.CLOCK, _LIBRARY.clock_gettime), (memory.READ, _LIBRARY.read), (memory.WRITE, _LIBRARY.write)
        ):  # fmt: skip
            rules[place] = ctypes.cast(function, ctypes.c_void_p).value or 0
        return rules

    def compile_wanted(self, core: Core) -> None:
        """Make the kernel without which a core cannot go on."""
        number = int(core.row[memory.WANTED]) - 1
        outer, dense, nullable = number >> 2, bool(number & 2), bool(number & 1)
        self.kernels[number] = self._pairs.scan_address(outer, self.rows, dense=dense, nullable=nullable)
        core.row[memory.WANTED] = 0

    def spread(self) -> None:
        """Let every core have the same share of what is in the log, the last of each stream's the oldest tuples."""
        for stream in STREAMS:
            stop, count = self.log.stops[stream], self.topology.cores
            for passed, number in enumerate(self.topology.path(stream)):
                row = self.states[number]
                row[memory.CAME + stream] = stop - passed * stop // count
                row[memory.WENT + stream] = row[memory.KEPT + stream] = stop - (passed + 1) * stop // count

    # -- what can be read while the cores work ---------------------------------------------------

    def entrance(self, end: Side) -> tuple[Words, Words]:
        """The ring by which the driver's messages enter at one end, and the row of the core there."""
        core = self.cores[self.topology.core_at(end)]
        return (core.from_left if end is Side.LEFT else core.from_right), core.row

    @property
    def is_flushed(self) -> bool:
        """Whether every tuple has passed all cores."""
        return all(self._last(stream)[memory.FLUSHED + stream] for stream in STREAMS)

    def released(self, stream: int) -> int:
        """The first position that some core may still read."""
        _, _, kept = self._looked(stream)
        return int(kept.min())

    def arrived(self, stream: int) -> int:
        """The first position that has not come to the last core."""
        came, _, _ = self._looked(stream)
        return int(came[self.topology.last(stream)])

    def tally(self, stream: int) -> Tally:
        """Where the tuples of a stream are at one moment, though the cores may be at work."""
        came, went, _ = self._looked(stream)
        expired = int(went[self.topology.last(stream)])
        live = int((came - went).sum())
        return Tally(self.log.stops[stream] - live - expired, live, expired)

    def metrics(self, idle: list[float]) -> tuple[CoreMetrics, ...]:
        """What each core holds and has done; `idle` is for how many seconds they were not even called."""
        looked = [self._looked(stream) for stream in STREAMS]
        return tuple(
            CoreMetrics(
                tuple(int(came[number] - went[number]) for came, went, _ in looked),
                sum(int(ring[memory.WRITTEN] - ring[memory.TAKEN]) for ring in (core.from_left, core.from_right)),
                int(core.row[memory.SCANNED]),
                int(core.row[memory.MATCHED]),
                int(core.row[memory.SENT]),
                float(core.row[memory.BUSY]) / 1e9,
                idle[number] + float(core.row[memory.IDLE]) / 1e9,
            )
            for number, core in enumerate(self.cores)
        )

    def busiest(self) -> tuple[int, float]:
        """How many tuples the busiest core has joined, and in how many seconds."""
        done = [(int(row[memory.JOINED]), float(row[memory.BUSY]) / 1e9) for row in self.states]
        return max(done, key=lambda own: own[1])

    def weigh(self) -> None:
        """Let cores that are slow count for more: what they hold weighs more."""
        for number, row in enumerate(self.states):
            count = int(row[memory.COSTS])
            for sample in range(max(self._measured[number], count - SAMPLES), count):
                place = memory.COST + 2 * (sample % SAMPLES)
                self._costs[number].measure(float(row[place]) / 1e9, int(row[place + 1]))
            self._measured[number] = count
        for row, weight in zip(self.states, relative_costs(self._costs), strict=True):
            row[memory.WEIGHT] = round(EVEN * weight)

    def _looked(self, stream: int) -> tuple[Words, Words, Words]:
        came, went, kept = np.zeros((3, len(self.cores)), np.int64)
        LOOP.look(self.states, stream, came, went, kept)
        return came, went, kept

    def _last(self, stream: int) -> Words:
        row: Words = self._states[self.topology.last(stream)]
        return row
