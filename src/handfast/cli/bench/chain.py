"""The papers' algorithm itself: what a chain of cores in machine code keeps up with, and what a hop costs."""

from __future__ import annotations

import statistics
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from handfast.connectors.generate import CellJoin, Workload
from handfast.core.planner import make_plan
from handfast.engines.local.channel import Bell
from handfast.engines.local.handshake import HandshakeChain, Message
from handfast.engines.local.native import memory
from handfast.engines.local.native.chain import NativeChain
from handfast.engines.local.native.driver import NativeDriver
from handfast.engines.local.native.loop import LOOP
from handfast.flow.batch import as_batch, schema_of
from handfast.flow.block import HOME, Block
from handfast.flow.time import Horizon, micros
from handfast.flow.topology import ChainTopology, R, S, Side
from handfast.plan import SCAN, Plan
from handfast.spec.join import JoinSpec

BLOCK = 256  # tuples of a message
_NAMES = ("r", "s")
_ROOM = 8  # messages in a ring while throughput is measured: little stands before the cores, all of it is work done
_PROCESS_LEFT, _PROCESS_RIGHT, _FORWARD_S, _FORWARD_R = range(4)


@dataclass(frozen=True)
class Band:
    """CellJoin's band with both windows of so many tuples: a second of event time."""

    window: int
    seed: int = 7

    @property
    def workload(self) -> Workload:
        return Workload(CellJoin(), seed=self.seed, rate=self.window)

    def plan(self, cores: int) -> Plan:
        """Its plan for a chain of so many cores."""
        schemas = {name: self.workload.schema(name) for name in _NAMES}
        spec = JoinSpec(_NAMES, self.workload.on, window="1 second", time="ts", lateness="0 seconds")
        bound = spec.bind({name: schema_of(own) for name, own in schemas.items()})
        return make_plan(bound, cores, list(schemas.values()), SCAN, handshake=True)

    def block(self, stream: int, start: int, count: int) -> Block:
        """Tuples of a stream."""
        batch = as_batch(self.workload.table(_NAMES[stream], start, start + count))
        return Block(batch, micros(batch.column("ts")), np.full(count, HOME, np.uint8))


# -- throughput ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Sustained:
    """What a chain did while both its windows slid.

    Attributes:
        seconds: How long that took.
        pairs: Pairs of tuples that met.
        matches: How many of them matched.
        busiest: Seconds of CPU time of the busiest core's thread.
    """

    seconds: float
    pairs: int
    matches: int
    busiest: float

    def rate(self, window_seconds: float) -> float:
        """Tuples a second and stream that come in and expire, with windows of so many seconds on both streams."""
        return float((self.pairs / self.seconds / (2 * window_seconds)) ** 0.5)


class Sliding:
    """A chain with full windows that slide: with every tuple that comes another expires."""

    def __init__(self, band: Band, cores: int, *, rows: int = BLOCK, capacity: int = _ROOM) -> None:
        self._band = band
        self._at = band.window
        filled = [band.block(stream, 0, band.window) for stream in (R, S)]
        self.driver = NativeDriver(band.plan(cores), ChainTopology(cores), rows, capacity=capacity, filled=filled)
        named = {thread.name: thread for thread in threading.enumerate()}
        self._clocks = [_cpu_clock(named[f"handfast core {number}"]) for number in range(cores)]

    def feed(self, steps: int, rows: int = BLOCK, *, waits: bool = True) -> int:
        """Feed so many blocks of both streams; how many matches have come meanwhile."""
        matches = 0
        for _ in range(steps):
            blocks = [self._band.block(stream, self._at, rows) for stream in (R, S)]
            horizon = Horizon(min(block.most_time for block in blocks), (0, 0))
            feed = self.driver.feed if waits else self.driver.offer
            matches += sum(batch.num_rows for batch in feed(blocks, horizon))
            self._at += rows
        return matches

    def measured(self, steps: int) -> Sustained:
        """Feed so many blocks of both streams and measure; the rings before the cores must be full, and stay so."""
        before, start, cpu = self._scanned(), time.perf_counter(), self._cpu()
        matched = sum(core.matched for core in self.driver.metrics())
        self.feed(steps)
        seconds = time.perf_counter() - start
        busiest = max(now - then for now, then in zip(self._cpu(), cpu, strict=True))
        matches = sum(core.matched for core in self.driver.metrics()) - matched
        return Sustained(seconds, self._scanned() - before, matches, busiest)

    def behind(self) -> int:
        """How many tuples wait before the first core of their stream."""
        return sum(self.driver.tally(stream).waiting for stream in (R, S))

    def close(self) -> None:
        self.driver.stop()

    def _scanned(self) -> int:
        return sum(core.scanned for core in self.driver.metrics())

    def _cpu(self) -> list[float]:
        return [time.clock_gettime(clock) for clock in self._clocks]


def keeps_up(band: Band, cores: int, rate: float, seconds: float) -> Iterator[int]:
    """Feed both streams by the clock, at so many tuples a second each; again and again, how many tuples are behind."""
    sliding = Sliding(band, cores, capacity=64)
    try:
        due = time.perf_counter()
        end = due + seconds
        while due < end:
            due += BLOCK / rate
            time.sleep(max(0.0, due - time.perf_counter()))
            sliding.feed(1, waits=False)
            yield sliding.behind()
    finally:
        sliding.close()


def _cpu_clock(thread: threading.Thread) -> int:
    assert thread.ident is not None, "a thread that runs has a number"
    return time.pthread_getcpuclockid(thread.ident)


# -- hops ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Hop:
    """What a message costs the cores beside the pairs that it tries, in seconds of one thread.

    Attributes:
        take: To take in a message of R and insert its tuples.
        forward: To send it on and remove them.
        take_s: To take in a message of S, insert its tuples, and acknowledge it.
        forward_s: To send it on.
        acknowledged: To remove the copies once that is acknowledged.
        expired: To remove tuples whose window is over.
    """

    take: float
    forward: float
    take_s: float
    forward_s: float
    acknowledged: float
    expired: float

    @property
    def r(self) -> float:
        """From a core to the next: all that both do for a message of R."""
        return self.forward + self.take

    @property
    def s(self) -> float:
        """Likewise for one of S."""
        return self.forward_s + self.take_s + self.acknowledged


def hop(messages: int, rows: int = BLOCK) -> Hop:
    """What the actions of a hop between two cores whose windows are empty cost; the call from Python is taken off."""
    chain = _primed(messages, rows)
    left, right = chain.cores
    act = LOOP.one_action

    def timed(core: Any, action: int) -> float:
        start = time.perf_counter()
        did = act(core, action)
        seconds = time.perf_counter() - start
        assert did, "there was something to do"
        return seconds

    idle = []
    for _ in range(messages):
        start = time.perf_counter()
        act(left, _PROCESS_LEFT)
        idle.append(time.perf_counter() - start)
    costs: dict[str, list[float]] = {name: [] for name in Hop.__dataclass_fields__}
    for stop in range(rows, rows * messages + 1, rows):
        word = np.array([stop << memory.KIND_BITS], np.int64)
        LOOP.send_all(left.from_left, word | memory.TUPLES, left.row, chain.rules)
        timed(left, _PROCESS_LEFT)
        costs["forward"].append(timed(left, _FORWARD_R))
        costs["take"].append(timed(right, _PROCESS_LEFT))
        LOOP.send_all(right.from_right, word | memory.EXPIRE, right.row, chain.rules)
        costs["expired"].append(timed(right, _PROCESS_RIGHT))
        LOOP.send_all(right.from_right, word | memory.TUPLES, right.row, chain.rules)
        timed(right, _PROCESS_RIGHT)
        costs["forward_s"].append(timed(right, _FORWARD_S))
        costs["take_s"].append(timed(left, _PROCESS_RIGHT))
        costs["acknowledged"].append(timed(right, _PROCESS_LEFT))
        LOOP.send_all(left.from_left, word | memory.EXPIRE, left.row, chain.rules)
        timed(left, _PROCESS_LEFT)
    for bell in chain.bells:
        bell.close()
    call = statistics.median(idle)
    return Hop(**{name: max(0.0, statistics.median(own) - call) for name, own in costs.items()})


def hop_in_python(messages: int, rows: int = BLOCK) -> float:
    """What `forward` and `take` of R cost where the cores run in Python."""
    band = Band(rows * messages)
    chain = HandshakeChain(band.plan(2), ChainTopology(2), capacity=8, driver=Bell())
    left, right = chain.cores
    left._flushing[R] = True
    seconds = []
    for k in range(messages):
        message: Message = band.block(R, k * rows, rows)
        chain.entrance(Side.LEFT).send(message)
        left.process_left(lambda _: None)
        start = time.perf_counter()
        left.forward_r()
        right.process_left(lambda _: None)
        seconds.append(time.perf_counter() - start)
    return statistics.median(seconds)


def latency(messages: int, cores: int = 2, rows: int = BLOCK) -> float:
    """Seconds that a message takes for a hop between threads that are awake, on its way from the driver."""
    chain = _primed(messages, rows, cores, spins=1 << 30)
    threads = [threading.Thread(target=LOOP.run, args=(core,)) for core in chain.cores]
    for thread in threads:
        thread.start()
    ring, row = chain.entrance(Side.LEFT)
    last = chain.states[cores - 1]
    took = []
    for stop in range(rows, rows * messages + 1, rows):
        word = np.array([stop << memory.KIND_BITS | memory.TUPLES], np.int64)
        start = time.perf_counter()
        LOOP.send_all(ring, word, row, chain.rules)
        while last[memory.CAME + R] < stop:
            pass
        took.append(time.perf_counter() - start)
    for bell in chain.bells:
        bell.ring()
    for thread in threads:
        thread.join()
    for bell in chain.bells:
        bell.close()
    return statistics.median(took) / cores


def _primed(messages: int, rows: int, cores: int = 2, spins: int = 1) -> NativeChain:
    """A chain without threads, whose log has so many messages' tuples, and whose cores forward whatever comes."""
    band = Band(rows * messages)
    chain = NativeChain(band.plan(cores), ChainTopology(cores), capacity=64, rows=rows, spins=spins)
    for stream in (R, S):
        block = band.block(stream, 0, band.window)
        chain.log.append(stream, chain.reader.read(stream, block))
        for core in chain.cores:
            core.row[memory.FLUSHING + stream] = 1
    for number in range(memory.KERNELS):
        core = chain.cores[0]
        if not number & 3:
            core.row[memory.WANTED] = 1 + number
            chain.compile_wanted(core)
    for core in chain.cores:  # Numba loads what it has compiled with the first call
        LOOP.one_action(core, _PROCESS_LEFT)
    return chain
