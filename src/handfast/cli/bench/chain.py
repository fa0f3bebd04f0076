"""The papers' algorithm itself: what a chain of cores in machine code keeps up with, and what a hop costs."""

from __future__ import annotations

import statistics
import threading
import time
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from handfast.connectors.generate import CellJoin, Workload
from handfast.core.planner import make_plan
from handfast.engines.local.channel import Bell
from handfast.engines.local.handshake import HandshakeChain, Message
from handfast.engines.local.native import memory
from handfast.engines.local.native.chain import NativeChain
from handfast.engines.local.native.collector import Collector
from handfast.engines.local.native.driver import NativeDriver
from handfast.engines.local.native.log import BITS
from handfast.engines.local.native.loop import LOOP
from handfast.engines.local.native.memory import Core, Words
from handfast.flow.batch import as_batch, schema_of
from handfast.flow.block import HOME, Block
from handfast.flow.time import Horizon, micros
from handfast.flow.topology import ChainTopology, R, S, Side
from handfast.plan import SCAN, Plan
from handfast.spec.join import JoinSpec

BLOCK = 256  # tuples of a message
Step = tuple[Sequence[Block], Horizon]
_NAMES = ("r", "s")
_ROOM = 8  # messages in a ring while throughput is measured: little stands before the cores, all of it is work done
_BATCH = 32  # messages that an action takes one after the other while it is timed
_LOOKS, _LOOK = 3, 0.0005  # at a chain in which nothing waits, and the seconds between them
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

    def made(self, steps: int, rows: int = BLOCK) -> list[Step]:
        """What is to be fed: so many blocks of both streams, each step with the horizon that it brings."""
        steps_made: list[Step] = []
        for start in range(self._at, self._at + steps * rows, rows):
            blocks = [self._band.block(stream, start, rows) for stream in (R, S)]
            steps_made.append((blocks, Horizon(min(block.most_time for block in blocks), (0, 0))))
        self._at += steps * rows
        return steps_made

    def measured(self, steps: int) -> Sustained:
        """Feed so many blocks of both streams, until all of them have met whom they meet, and measure."""
        made = self.made(steps)
        self.rest()
        before, cpu = self.driver.metrics(), self._cpu()
        start = time.perf_counter()
        for blocks, horizon in made:
            deque(self.driver.feed(blocks, horizon), maxlen=0)
        self.rest()
        seconds = time.perf_counter() - start
        busiest = max(now - then for now, then in zip(self._cpu(), cpu, strict=True))
        after = self.driver.metrics()
        deque(self.driver.poll(), maxlen=0)
        pairs, matches = (
            sum(getattr(now, what) - getattr(then, what) for now, then in zip(after, before, strict=True))
            for what in ("scanned", "matched")
        )
        return Sustained(seconds, pairs, matches, busiest)

    def rest(self) -> None:
        """Wait until nothing moves."""
        still = 0
        while still < _LOOKS:
            still = 0 if any(core.queued for core in self.driver.metrics()) else still + 1
            time.sleep(_LOOK)

    def behind(self) -> int:
        """How many tuples wait before the first core of their stream."""
        return sum(self.driver.tally(stream).waiting for stream in (R, S))

    def close(self) -> None:
        self.driver.stop()

    def _cpu(self) -> list[float]:
        return [time.clock_gettime(clock) for clock in self._clocks]


def in_turns(
    band: Band, cores: Sequence[int], *, turns: int, steps: int, rows: int = BLOCK
) -> dict[int, list[Sustained]]:
    """What chains of so many cores do, in turns: whatever else the machine does affects all of them alike."""
    chains = {count: Sliding(band, count, rows=rows) for count in cores}
    done: dict[int, list[Sustained]] = {count: [] for count in cores}
    try:
        for turn in range(turns + 1):
            for count, sliding in chains.items():
                measured = sliding.measured(steps)
                if turn:  # the first only warms up
                    done[count].append(measured)
    finally:
        for sliding in chains.values():
            sliding.close()
    return done


def keeps_up(band: Band, cores: int, rate: float, seconds: float) -> Iterator[int]:
    """Feed both streams by the clock, at so many tuples a second each; again and again, how many tuples are behind."""
    sliding = Sliding(band, cores, capacity=64)
    try:
        made = sliding.made(int(rate * seconds / BLOCK))
        due = time.perf_counter()
        for blocks, horizon in made:
            due += BLOCK / rate
            time.sleep(max(0.0, due - time.perf_counter()))
            deque(sliding.driver.offer(blocks, horizon), maxlen=0)
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
    def message(self) -> float:
        """What a block costs one core beside the scan: the mean of both streams'."""
        return (self.take + self.forward + self.take_s + self.forward_s + self.acknowledged) / 2

    @property
    def s(self) -> float:
        """Likewise for one of S."""
        return self.forward_s + self.take_s + self.acknowledged


def hop(turns: int, rows: int = BLOCK) -> Hop:
    """What the actions of a hop between two cores whose windows are empty cost: the median of so many turns."""
    chain = _primed(turns * _BATCH, rows)
    left, right = chain.cores

    def timed(core: Core, action: int) -> float:
        start = time.perf_counter()
        did = LOOP.repeat(core, action, _BATCH)
        seconds = time.perf_counter() - start
        assert did == _BATCH, "there was something to do"
        return seconds / _BATCH

    def sent(ring: Words, core: Core, kind: int) -> None:
        LOOP.send_all(ring, stops << memory.KIND_BITS | kind, core.row, chain.rules)

    costs: dict[str, list[float]] = {name: [] for name in Hop.__dataclass_fields__}
    for turn in range(turns):
        stops = rows * np.arange(turn * _BATCH + 1, (turn + 1) * _BATCH + 1, dtype=np.int64)
        sent(left.from_left, left, memory.TUPLES)
        timed(left, _PROCESS_LEFT)
        costs["forward"].append(timed(left, _FORWARD_R))
        costs["take"].append(timed(right, _PROCESS_LEFT))
        sent(right.from_right, right, memory.EXPIRE)
        costs["expired"].append(timed(right, _PROCESS_RIGHT))
        sent(right.from_right, right, memory.TUPLES)
        timed(right, _PROCESS_RIGHT)
        costs["forward_s"].append(timed(right, _FORWARD_S))
        costs["take_s"].append(timed(left, _PROCESS_RIGHT))
        costs["acknowledged"].append(timed(right, _PROCESS_LEFT))
        sent(left.from_left, left, memory.EXPIRE)
        timed(left, _PROCESS_LEFT)
    for bell in chain.bells:
        bell.close()
    return Hop(**{name: statistics.median(own) for name, own in costs.items()})


def collect_seconds(matches: int) -> float:
    """What a match costs the collector: to take it from a core, and to make a row of it."""
    band = Band(4 * BLOCK)
    plan = band.plan(1)
    chain = NativeChain(plan, ChainTopology(1), capacity=8, rows=BLOCK)
    rows: list[pa.RecordBatch] = []
    collector = Collector(plan, chain, rows.append)
    for stream in (R, S):
        block = band.block(stream, 0, band.window)
        collector.hold(stream, block)
        chain.log.append(stream, chain.reader.read(stream, block))
        chain.states[0][memory.CAME + stream] = band.window
    ring = chain.cores[0].found
    ring[memory.ENTRIES :] = np.random.default_rng(band.seed).integers(0, band.window, len(ring) - memory.ENTRIES)
    seconds = []
    for _ in range(_LOOKS):
        ring[memory.WRITTEN] += matches
        start = time.perf_counter()
        while collector.work():
            pass
        seconds.append((time.perf_counter() - start) / matches)
    for bell in chain.bells:
        bell.close()
    return statistics.median(seconds)


def copy_seconds(turns: int, rows: int = BLOCK) -> float:
    """What it would take to copy a message's columns and times, if every core had a memory of its own."""
    turns = min(turns, (1 << BITS) // rows)
    chain = _primed(turns, rows)
    sources = chain.log.newest(R)
    targets = [np.zeros(len(own), own.dtype) for own in sources]
    seconds = []
    for start in range(0, rows * turns, rows):
        begin = time.perf_counter()
        for source, target in zip(sources, targets, strict=True):
            target[start : start + rows] = source[start : start + rows]
        seconds.append(time.perf_counter() - begin)
    for bell in chain.bells:
        bell.close()
    return statistics.median(seconds)


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


def latency(messages: int, rows: int = BLOCK) -> float:
    """Seconds from the moment at which a thread sends a message until another that is awake has taken it in."""
    chain = _primed(messages, rows, 1, spins=1 << 30)
    thread = threading.Thread(target=LOOP.run, args=(chain.cores[0],))
    thread.start()
    ring, row = chain.entrance(Side.LEFT)
    last = chain.states[0]
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
    thread.join()
    for bell in chain.bells:
        bell.close()
    return statistics.median(took)


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
        LOOP.repeat(core, _PROCESS_LEFT, 1)
    return chain
