"""Low-latency forwarding: a block is rushed past all cores on arrival and stored at its home core.

In one process rushing costs nothing: every core is handed the same block. A match is found as soon as its last tuple
has come, and nothing has to be acknowledged. Where tuples are divided by key or by stripe, a core gets only those that
can match there; otherwise every core gets all of them, and the balance decides which core stores which.
"""

from __future__ import annotations

import weakref
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import inf
from time import perf_counter

import numpy as np
import pyarrow as pa

from handfast.core.join_core import JoinCore
from handfast.core.routing.router import Router, Share
from handfast.engines.local.balance import Cost, relative_costs, shares
from handfast.engines.local.channel import Bell, Channel
from handfast.engines.local.cores import Tally
from handfast.engines.local.crew import Crew
from handfast.engines.local.options import BLOCK, LocalOptions
from handfast.engines.local.placement import placement
from handfast.engines.local.planning import finder_of
from handfast.flow.block import HOME, Block
from handfast.flow.metrics import CoreMetrics
from handfast.flow.order import by_rank
from handfast.flow.time import Horizon
from handfast.plan import Plan

_CAPACITY = 64  # steps that a core may be behind


@dataclass(frozen=True, slots=True)
class _Step:
    """What one core is handed at a time: its share of each stream, and the horizon up to which tuples expire."""

    number: int
    shares: list[Share | None]
    horizon: Horizon

    def at_home(self, stream: int) -> int:
        """How many tuples of a stream have this core as their home."""
        share = self.shares[stream]
        return share.at_home if share is not None else 0

    @property
    def home_bytes(self) -> int:
        """How many bytes those tuples take."""
        return sum(share.home_bytes for share in self.shares if share is not None)


@dataclass(frozen=True, slots=True)
class _Book:
    """What a core says of its streams between two steps: a new one for every step, so that its numbers fit together.

    Attributes:
        done: How many steps it has taken in.
        live: By stream, how many of the tuples it stores are at home there.
        expired: Likewise, how many it has let go.
    """

    done: int
    live: tuple[int, ...]
    expired: tuple[int, ...]


class _Core:
    """One core with its channel, and what it has found."""

    def __init__(self, plan: Plan, options: LocalOptions, driver: Bell) -> None:
        self.finder = finder_of(plan, options)
        self.join = JoinCore(plan, self.finder)
        self.bell = Bell()
        self.steps: Channel[_Step] = Channel(_CAPACITY, reader=self.bell, writer=driver)
        self.unsent: deque[_Step] = deque()  # steps for which there was no room yet; the driver's
        self.found: deque[tuple[int, float, pa.RecordBatch]] = deque()  # step, when, matches
        none = (0,) * len(plan.join.schemas)
        self.book = _Book(0, none, none)
        self.joined = 0
        self.cost = Cost()
        self.scanned = self.matched = 0
        self.busy = 0.0

    def work(self) -> bool:
        """Take in one step, if there is one."""
        if not len(self.steps):
            return False
        self.take_in(self.steps.first)
        self.steps.drop_first()
        return True

    def read(self) -> tuple[list[_Step], _Book]:
        """The steps that still wait, and what became of the others; it may be read while the core works."""
        sent = [step for _, step in self.steps.messages()]
        book = self.book  # after the steps: what was taken in meanwhile is told by its number
        return [step for step in (*sent, *self.unsent) if step.number > book.done], book

    def take_in(self, step: _Step) -> None:
        """Join a step's blocks with what is stored, then store the tuples whose home is here."""
        start, live = perf_counter(), [segment.live for segment in self.join.segments]
        total = sum(live)
        blocks = [share.block() if share is not None else None for share in step.shares]
        meetings = sum(len(block) * (total - live[k]) for k, block in enumerate(blocks) if block is not None)
        for batch in self.join.step(blocks, step.horizon):
            self.matched += batch.num_rows
            self.found.append((step.number, perf_counter(), batch))
        seconds = perf_counter() - start
        self.busy += seconds
        self.scanned += meetings
        self.cost.measure(seconds, meetings)
        self.joined += sum(len(block) for block in blocks if block is not None)
        stored = tuple(segment.at_home for segment in self.join.segments)
        self.book = _Book(step.number, stored, tuple(self.join.expired))


class LowLatency:
    """The cores of a join by low-latency forwarding: in threads, or one after the other in the caller's."""

    def __init__(self, plan: Plan, options: LocalOptions) -> None:
        self._plan = plan
        self._driver = Bell()
        self.cores = [_Core(plan, options, self._driver) for _ in range(plan.cores)]
        self._routers = [Router(plan, stream, in_turn=True) for stream in range(len(plan.join.schemas))]
        self._step = 0
        self._given = 0  # steps whose matches have been given, where they are in order
        self.held = 0.0
        self._crew: Crew | None = None
        if plan.cores > 1 or options.admission != BLOCK:
            works, bells = [core.work for core in self.cores], [core.bell for core in self.cores]
            self._crew = Crew(works, bells, self._driver, placement(plan.cores).cpus)
            weakref.finalize(self, self._crew.stop)

    def feed(self, admitted: Sequence[Block | None], horizon: Horizon) -> Iterator[pa.RecordBatch]:
        self._submit(admitted, horizon)
        if self._crew is not None:
            self._crew.wait_until(self._is_done)
        yield from self.poll()

    def finish(self, admitted: Sequence[Block | None], horizon: Horizon) -> Iterator[pa.RecordBatch]:
        yield from self.feed(admitted, horizon)
        self.stop()

    def offer(self, admitted: Sequence[Block | None], horizon: Horizon) -> Iterator[pa.RecordBatch]:
        # where there is no room, a step without tuples can be left out: the next one brings its horizon
        if self.room() or any(block is not None for block in admitted):
            self._submit(admitted, horizon)
        yield from self.poll()

    def _submit(self, admitted: Sequence[Block | None], horizon: Horizon) -> None:
        """Hand new blocks to all cores, or keep them for those that are too far behind."""
        self._step += 1
        sent = self._sent(admitted)
        for number, core in enumerate(self.cores):
            step = _Step(self._step, [own.get(number) for own in sent], horizon)
            if self._crew is None:
                core.take_in(step)
            else:
                core.unsent.append(step)
        self._send()

    def _send(self) -> None:
        """Send what there is room for, to each core in order."""
        for core in self.cores:
            while core.unsent and core.steps.room:
                core.steps.send(core.unsent.popleft())

    def _is_done(self) -> bool:
        """Whether every core has taken in all steps; sends those for which there was no room before."""
        self._send()
        return all(core.book.done == self._step for core in self.cores)

    def poll(self) -> Iterator[pa.RecordBatch]:
        """The matches that can be given now; in order, only those of steps that every core has done."""
        self._send()
        if self._crew is not None:
            self._crew.check()
        complete = min(core.book.done for core in self.cores)
        if not self._plan.join.spec.in_order:
            for core in self.cores:
                while core.found:
                    yield core.found.popleft()[2]
            return
        for step in range(self._given + 1, complete + 1):
            yield from by_rank(list(self._of_step(step)))
        self._given = complete

    def _of_step(self, step: int) -> Iterator[pa.RecordBatch]:
        """What all cores have found in one step."""
        for core in self.cores:
            while core.found and core.found[0][0] == step:
                _, when, batch = core.found.popleft()
                self.held = max(self.held, perf_counter() - when)
                yield batch

    def tally(self, stream: int) -> Tally:
        each = [core.read() for core in self.cores]
        waiting = sum(step.at_home(stream) for steps, _ in each for step in steps)
        return Tally(waiting, sum(own.live[stream] for _, own in each), sum(own.expired[stream] for _, own in each))

    def backlog(self) -> int:
        return sum(self.tally(stream).waiting for stream in range(len(self._routers)))

    def room(self) -> float:
        return inf if all(core.steps.room > len(core.unsent) for core in self.cores) else 0

    def busiest(self) -> tuple[int, float]:
        return max(((core.joined, core.busy) for core in self.cores), key=lambda own: own[1])

    def stored_bytes(self) -> int:
        queued = sum(step.home_bytes for core in self.cores for step in core.read()[0])
        stored: int = sum(block.batch.nbytes for core in self.cores for block in core.join.blocks())
        return queued + stored

    def metrics(self) -> tuple[CoreMetrics, ...]:
        idle = self._crew.idle if self._crew is not None else [0.0] * len(self.cores)
        return tuple(
            CoreMetrics(
                tuple(segment.live for segment in core.join.segments),
                len(core.steps) + len(core.unsent),
                core.scanned,
                core.matched,
                0,
                core.busy,
                idle[number],
                *(core.finder.metrics() if core.finder is not None else ()),
            )
            for number, core in enumerate(self.cores)
        )

    def algorithm(self) -> tuple[str, str] | None:
        finder = self.cores[0].finder
        return finder.words() if finder is not None else None

    def stop(self) -> None:
        if self._crew is not None:
            self._crew.stop()
        for core in self.cores:
            if core.finder is not None:
                core.finder.stop()

    def _sent(self, admitted: Sequence[Block | None]) -> list[dict[int, Share]]:
        """By stream, what each core is handed."""
        if len(self.cores) == 1:
            return [{0: Share(block, None, block.flags)} if block is not None else {} for block in admitted]
        if self._plan.routing.any_core_may_store:
            return [self._rushed(stream, block) if block is not None else {} for stream, block in enumerate(admitted)]
        pairs = zip(self._routers, admitted, strict=True)
        return [router.shares(block) if block is not None else {} for router, block in pairs]

    def _rushed(self, stream: int, block: Block) -> dict[int, Share]:
        """Every core with the whole block; the balance decides which core is the home of which tuple."""
        each = [core.read() for core in self.cores]
        sizes = [own.live[stream] + sum(step.at_home(stream) for step in steps) for steps, own in each]
        costs = relative_costs([core.cost for core in self.cores])
        ends = np.cumsum(shares(sizes, costs, len(block)))
        sent, start = {}, 0
        for number, end in enumerate(ends.tolist()):
            flags = np.zeros(len(block), np.uint8)
            flags[start:end] = HOME
            sent[number], start = Share(block, None, flags), end
        return sent
