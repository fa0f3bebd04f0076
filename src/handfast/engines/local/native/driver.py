"""The driver of a chain in machine code: a thread that feeds both ends, one for each core, one that collects."""

from __future__ import annotations

import weakref
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from math import inf

import numpy as np
import pyarrow as pa

from handfast.engines.local.channel import Bell
from handfast.engines.local.cores import Tally
from handfast.engines.local.crew import Crew
from handfast.engines.local.merger import Merger
from handfast.engines.local.native.bell import RowBell, close_all
from handfast.engines.local.native.chain import NativeChain
from handfast.engines.local.native.collector import Collector
from handfast.engines.local.native.log import BITS
from handfast.engines.local.native.loop import LOOP
from handfast.engines.local.native.memory import FLUSH, KIND_BITS, RETURN, TUPLES, WANTED, Core, Words
from handfast.engines.local.native.windows import Windows
from handfast.engines.local.placement import placement
from handfast.flow.block import Block
from handfast.flow.metrics import CoreMetrics
from handfast.flow.time import NEVER, Horizon
from handfast.flow.topology import STREAMS, ChainTopology, Side
from handfast.plan import Plan

_CAPACITY = 64  # messages in a ring
_SPINS = 300  # rounds without anything to do after which a core sleeps, where every core has a CPU: some 20 µs


class NativeDriver:
    """A handshake chain whose cores work without Python. A match is given once its tuples are at the same core."""

    def __init__(
        self,
        plan: Plan,
        topology: ChainTopology,
        rows: int,
        *,
        capacity: int = _CAPACITY,
        filled: Sequence[Block] = (),
    ) -> None:
        """Start the threads; `filled` are full windows that stand there from the start, as a long run leaves them."""
        cpus = placement(topology.cores).cpus
        spins = _SPINS if None not in cpus else 1
        self.chain = chain = NativeChain(plan, topology, capacity=capacity, rows=rows, spins=spins)
        self._merger = Merger(1, in_order=plan.join.spec.in_order)
        self._collector = Collector(plan, chain, partial(self._merger.put, 0))
        self._entering = Entering(chain)
        self._windows = Windows(plan, topology, chain.rows, 1 << BITS)
        if filled:
            self._fill(filled)
        self._caller = Bell()
        driver, collector = chain.bells[-2:]
        works = [partial(_core_works, chain, core) for core in chain.cores]
        works.append(partial(_watching, driver, partial(_driver_works, chain, self._entering, self._caller)))
        works.append(partial(_watching, collector, self._collector.work))
        names = [
            *(f"handfast core {number}" for number in range(topology.cores)),
            "handfast driver",
            "handfast collector",
        ]
        try:
            self._crew = Crew(works, chain.bells, self._caller, [*cpus, None, None], names)
        except BaseException:  # whatever it is: nobody else knows of these files
            close_all(chain.bells)
            raise
        self._close = weakref.finalize(self, _close, self._crew, chain.bells)

    @property
    def held(self) -> float:
        return self._merger.held

    def feed(self, admitted: Sequence[Block | None], horizon: Horizon) -> Iterator[pa.RecordBatch]:
        self._take(admitted, horizon)
        self._crew.wait_until(lambda: self._entering.is_done)
        yield from self._collect()

    def offer(self, admitted: Sequence[Block | None], horizon: Horizon) -> Iterator[pa.RecordBatch]:
        self._take(admitted, horizon)
        yield from self._collect()

    def poll(self) -> Iterator[pa.RecordBatch]:
        yield from self._collect()

    def finish(self, admitted: Sequence[Block | None], horizon: Horizon) -> Iterator[pa.RecordBatch]:
        self._take(admitted, horizon)
        for end in Side:
            self._entering.put(end, _FLUSH)
        self._wake_driver()
        self._crew.wait_until(lambda: self.chain.is_flushed)
        self.stop()
        while self._collector.work():
            pass
        yield from self._collect()

    def busiest(self) -> tuple[int, float]:
        return self.chain.busiest()

    def backlog(self) -> int:
        return sum(self.chain.log.stops) - sum(self._entering.sent)

    def tally(self, stream: int) -> Tally:
        return self.chain.tally(stream)

    def room(self) -> float:
        return inf

    def stored_bytes(self) -> int:
        return sum(block.batch.nbytes for own in self._windows.blocks for block in own)

    def metrics(self) -> tuple[CoreMetrics, ...]:
        return self.chain.metrics(self._crew.idle)

    def algorithm(self) -> None:
        return None  # two streams pass each other

    def stop(self) -> None:
        self._close()

    def _take(self, admitted: Sequence[Block | None], horizon: Horizon) -> None:
        """Write new tuples down, and put into words what the cores are to hear of them and of those that are over."""
        ordered = [block.sorted() if block is not None else None for block in admitted]
        write_down(self.chain, self._collector, ordered)
        for end, words in self._windows.messages(ordered, horizon):
            self._entering.put(end, words)
        self.chain.weigh()
        self._wake_driver()

    def _fill(self, windows: Sequence[Block]) -> None:
        """Put windows in place, the same share at every core: what they match among each other is not looked for."""
        write_down(self.chain, self._collector, windows)
        for _ in self._windows.messages(windows, Horizon(NEVER, (0, 0))):
            pass  # nothing has to be sent: the tuples are there
        self._entering.sent = list(self.chain.log.stops)
        self.chain.spread()

    def _wake_driver(self) -> None:
        LOOP.wake_up(self.chain.driver, self.chain.rules)

    def _collect(self) -> Iterator[pa.RecordBatch]:
        self._crew.check()
        # before the matches are taken: all that are found earlier are among them
        passed = self._collector.passed
        yield from self._merger.give(self._merger.collect(), passed)
        if self._collector.owes:
            LOOP.wake_up(self.chain.collector, self.chain.rules)


def write_down(chain: NativeChain, collector: Collector, blocks: Sequence[Block | None]) -> None:
    """Write tuples down before any core hears of them: rows for the collector, and what kernels read for the cores."""
    for stream, block in enumerate(blocks):
        if block is not None and len(block):
            chain.log.release(stream, chain.released(stream))
            collector.hold(stream, block)
            chain.log.append(stream, chain.reader.read(stream, block))
    chain.log.enter()


class Entering:
    """Messages for both ends of a chain, for which there was no room yet. One thread puts, another sends, in order."""

    def __init__(self, chain: NativeChain) -> None:
        self._chain = chain
        self._unsent: dict[Side, deque[Words]] = {end: deque() for end in Side}
        self.sent = [0, 0]  # of both streams, how many tuples

    @property
    def is_done(self) -> bool:
        """Whether all have been sent."""
        return not any(self._unsent.values())

    def put(self, end: Side, words: Words) -> None:
        """Put messages behind the others at one end."""
        self._unsent[end].append(words)

    def send(self, end: Side) -> bool:
        """Send what there is room for at one end; whether there was anything."""
        unsent, (ring, row) = self._unsent[end], self._chain.entrance(end)
        did = False
        while unsent:
            words = unsent[0]
            count = LOOP.send_all(ring, words, row, self._chain.rules)
            self._note(end, words[:count])
            did = did or count > 0
            if count < len(words):
                unsent[0] = words[count:]
                return did
            unsent.popleft()
        return did

    def _note(self, end: Side, words: Words) -> None:
        """Remember how many tuples have entered."""
        tuples = words[words & ((1 << KIND_BITS) - 1) == TUPLES]
        if len(tuples):
            stream = next(stream for stream in STREAMS if self._chain.topology.entry(stream) is end)
            self.sent[stream] = int(tuples[-1]) >> KIND_BITS


_FLUSH = np.array([FLUSH], np.int64)


def _core_works(chain: NativeChain, core: Core) -> bool:
    """Let a core work until it cannot go on, or is called back."""
    LOOP.run(core)
    core.row[RETURN] = 0
    if core.row[WANTED]:
        chain.compile_wanted(core)
    return True


def _driver_works(chain: NativeChain, entering: Entering, caller: Bell) -> bool:
    """Send what can be sent, and tell the caller."""
    did = [entering.send(end) for end in Side]
    if any(did) or chain.is_flushed:
        caller.ring()
    return any(did)


def _watching(bell: RowBell, work: Callable[[], bool]) -> bool:
    """Work; if there is nothing to do, once more when all know that they have to wake this thread."""
    bell.awake()
    if work():
        return True
    bell.about_to_wait()
    return work()


def _close(crew: Crew, bells: Sequence[RowBell]) -> None:
    """End every thread, and give back what they slept by: after that, for they may still ring for each other."""
    try:
        crew.stop()
    except BaseException:  # Ctrl-C while it waits; nobody comes here a second time
        _close(crew, bells)
        raise
    close_all(bells)
