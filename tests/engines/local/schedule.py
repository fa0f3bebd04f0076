"""A handshake chain whose every step is chosen by a seed: the driver's sends and the cores' actions, one at a time."""

from __future__ import annotations

import random
from bisect import bisect_left
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import pairwise, repeat
from typing import Any

import pyarrow as pa

from handfast.core.planner import make_plan
from handfast.engines.local.chain_driver import Windows
from handfast.engines.local.channel import Bell
from handfast.engines.local.handshake import HandshakeChain, Message, Signal
from handfast.flow.admission import Admission, progress_of, split
from handfast.flow.batch import as_batch, schema_of
from handfast.flow.block import Block
from handfast.flow.stamper import Stamper
from handfast.flow.time import END, Horizon
from handfast.flow.topology import ChainTopology, Side
from handfast.plan import INDEX, LOCAL_JOINS, Plan
from tests.judges.rows import multiset, result_of
from tests.strategies import BANDS, SHAPES, Case

_BURSTS = 10
_BURST = 5_000_000  # microseconds
_MOST_ROUNDS = 20_000  # of up to 40 steps: many times what any chain takes

Fed = tuple[Sequence[Block | None], Horizon]


def plan_of(case: Case, local_join: str) -> Plan:
    """The plan of one core of a chain."""
    bound = case.spec.bind({name: schema_of(table.schema) for name, table in case.tables.items()})
    return make_plan(bound, 1, [case.tables[name].schema for name in case.streams], local_join)


def fed(case: Case, plan: Plan) -> Iterator[Fed]:
    """What the driver of a case is fed, step by step as its rows arrive."""
    join = plan.join
    admission, stamper = Admission(join), Stamper(join) if join.stamped else None
    none: list[Block | None] = [None] * len(case.streams)

    def stamped(admitted: Sequence[Block | None], watermark: int) -> Fed:
        return stamper.stamp(admitted, watermark) if stamper is not None else (admitted, Horizon(watermark, (0, 0)))

    for step, now in zip(case.steps, case.clock or repeat(0), strict=False):
        blocks = [split(join, k, as_batch(step[n]))[0] if n in step else None for k, n in enumerate(case.streams)]
        admitted, _ = admission.admit(blocks, progress_of(blocks), now)
        yield stamped(admitted, admission.watermark)
    yield stamped(none, END)


class ScheduledChain:
    """A chain without threads, and the messages that its driver still has to send."""

    def __init__(self, case: Case, *, cores: int, capacity: int, rows: int, local_join: str = INDEX) -> None:
        plan, topology = plan_of(case, local_join), ChainTopology(cores)
        self.chain = HandshakeChain(plan, topology, capacity=capacity, driver=Bell())
        self.found: list[pa.RecordBatch] = []
        windows = Windows(plan, topology, rows)
        self.unsent: dict[Side, deque[Message]] = {end: deque() for end in Side}
        for step in fed(case, plan):
            for end, message in windows.messages(*step):
                self.unsent[end].append(message)
        for own in self.unsent.values():
            own.append(Signal.FLUSH)
        sends = [partial(self.send, end) for end in Side]
        actions = [action for core in self.chain.cores for action in core.actions(self.found.append)]
        self.moves = [*sends, *actions]

    def send(self, end: Side) -> bool:
        """Let the driver send its next message at one end, if there is room for it."""
        if not self.unsent[end] or not self.chain.entrance(end).room:
            return False
        self.chain.entrance(end).send(self.unsent[end].popleft())
        return True

    def run(self, chance: random.Random) -> None:
        """Take steps at random until none is left. Some are favoured for a while, and some left out: queues fill."""
        for _ in range(_MOST_ROUNDS):
            weights = [chance.choice((0, 1, 1, 8)) for _ in self.moves]
            for _ in range(chance.randrange(1, 40)):
                if any(weights):
                    chance.choices(self.moves, weights)[0]()
            if not any(self.unsent.values()) and self.chain.is_flushed and not sum(move() for move in self.moves):
                return
        raise AssertionError("the chain does not come to its end")

    def rows(self) -> Counter[tuple[Any, ...]]:
        """What was found."""
        return multiset(row for batch in self.found for row in result_of(pa.Table.from_batches([batch])))


def found_by(case: Case, seed: int, *, cores: int) -> Counter[tuple[Any, ...]]:
    """What a chain finds when its steps are those of this seed."""
    chance = random.Random(seed)
    capacity, rows, local_join = chance.choice((2, 3, 8)), chance.choice((1, 1, 2, 5)), chance.choice(LOCAL_JOINS)
    scheduled = ScheduledChain(case, cores=cores, capacity=capacity, rows=rows, local_join=local_join)
    scheduled.run(chance)
    return scheduled.rows()


def scheduled_case(seed: int) -> Case:
    """A case for a schedule: every third one counts tuples."""
    case = Case.of(seed, shape=BANDS[seed // 2 % len(BANDS)]) if seed % 2 else Case.of(seed)
    return case.counted(random.Random(seed)) if seed % 3 == 2 else case


def bursty_case(seed: int) -> Case:
    """Many matches in short windows; the streams come in bursts, so that one lags behind the other."""
    chance = random.Random(seed)
    times: dict[str, list[int]] = {"r": [], "s": []}
    for burst in range(_BURSTS):
        many = chance.choice("rs")
        for name, own in times.items():
            count = 6 if name == many else 1
            own += sorted(burst * _BURST + chance.randrange(_BURST) for _ in range(count))
    tables = {
        name: pa.table(
            {
                "ts": pa.array(own, pa.timestamp("us")),
                "x": [chance.randrange(3) for _ in own],
                "n": list(range(len(own))),
            }
        )
        for name, own in times.items()
    }
    cuts = [0, *sorted(chance.sample(range(_BURSTS * _BURST), 8)), _BURSTS * _BURST]
    steps = [
        {name: table.slice(*_between(times[name], *between)) for name, table in tables.items()}
        for between in pairwise(cuts)
    ]
    windows = chance.choice(("20 seconds", "12 rows", {"r": "30 seconds", "s": "8 rows"}))
    asked = {"on": chance.choice(("r.x = s.x", "r.x < s.x")), "window": windows, "time": "ts"}
    return Case(SHAPES[0], ("r", "s"), asked, "0 seconds", tables, steps, 2, origin=f"bursty_case({seed})")


def _between(times: list[int], first: int, end: int) -> tuple[int, int]:
    """Where the tuples of these times begin, and how many they are."""
    start = bisect_left(times, first)
    return start, bisect_left(times, end) - start
