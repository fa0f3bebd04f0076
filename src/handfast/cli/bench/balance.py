"""How evenly the cores share the windows under bursts and skew, and what a slow core costs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from time import perf_counter, sleep, thread_time
from typing import Any

from handfast.connectors.generate import CellJoin, Workload, Zipf
from handfast.core.join_core import JoinCore
from handfast.engines.local.low_latency import LowLatency
from handfast.engines.local.options import LocalOptions
from handfast.engines.local.session import Session
from handfast.flow.metrics import Metrics
from handfast.plan import SCAN
from handfast.spec.join import JoinSpec

_WINDOW = 20_000  # tuples of a stream in its window
_LOOKS = 8  # at a chain, one after the other, in which nothing moves
_BURSTS = (50, 100, 4_000, 50, 20, 1_500, 800, 50, 50, 2_500)  # rows of the batches, again and again


def after_bursts(forwarding: str, cores: int) -> float:
    """The largest segment divided by the mean one, at the worst moment after one window, with bursts of skewed keys.

    A chain is looked at when it has come to rest.
    """
    workload = Workload(Zipf(), seed=7, rate=_WINDOW)
    spec = JoinSpec(("r", "s"), "r.key < s.key - 1000000", window="1 second", time="ts", lateness="0 seconds")
    options = LocalOptions(cores=cores, forwarding=forwarding, local_join=SCAN)
    session = Session(spec, {name: workload.schema(name) for name in ("r", "s")}, options)
    worst, start = 1.0, 0
    for again in range(4 * _WINDOW // sum(_BURSTS) + 4):
        for rows in _BURSTS:
            session.push_together({name: workload.table(name, start, start + rows) for name in ("r", "s")})
            start += rows
            if start > _WINDOW and again > 0:
                worst = max(worst, _at_rest(session).balance)
    session.close()
    return worst


def _at_rest(session: Session) -> Metrics:
    """The metrics once nothing has moved for several looks in a row: one look may catch a core that waits for a CPU."""
    before, still = session.metrics(), 0
    while still < _LOOKS:
        sleep(0.005)
        now = session.metrics()
        still = still + 1 if now == before and not any(core.queued for core in now.cores) else 0
        before = now
    return before


def drag(core: JoinCore, times: float) -> None:
    """Make a core so many times slower: it sleeps for as long as a slower one would still work.

    Its own work is what counts, not its wait for a CPU.
    """
    step: Callable[..., Iterator[Any]] = core.step

    def slowed(*args: Any) -> Iterator[Any]:
        start = thread_time()
        yield from step(*args)
        sleep((times - 1) * (thread_time() - start))

    setattr(core, "step", slowed)  # noqa: B010 — a method of one object


def with_a_slow_core(cores: int, times: float, *, window: int) -> float:
    """Pairs a second when one core is so many times slower (1: as fast as the others), with windows of so many tuples.

    The windows slide: in the first two the balance learns what a tuple costs each core, then half a window is timed.
    """
    workload = Workload(CellJoin(), seed=7, rate=window)
    spec = JoinSpec(("r", "s"), workload.on, window="1 second", time="ts", lateness="0 seconds")
    options = LocalOptions(cores=cores, local_join=SCAN)
    session = Session(spec, {name: workload.schema(name) for name in ("r", "s")}, options)
    assert isinstance(session.cores, LowLatency)
    if times > 1:
        drag(session.cores.cores[0].join, times)
    rows = window // 64
    batches = [
        {name: workload.table(name, start, start + rows) for name in ("r", "s")} for start in range(0, rows * 160, rows)
    ]
    begin = 0.0
    for k, batch in enumerate(batches):
        begin = perf_counter() if k == 128 else begin
        session.push_together(batch)
    seconds = perf_counter() - begin
    session.close()
    return 32 * rows * 2 * window / seconds
