"""The joins that the benchmarks run: the band join of the papers, with a window of as many tuples as is wanted."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa

from handfast.connectors.generate import CellJoin, Workload
from handfast.engines.local.options import LocalOptions
from handfast.engines.local.session import Session
from handfast.spec.join import JoinSpec

_RATE = 1_000_000  # rows a second of event time: any window in tuples is one in microseconds


@dataclass(frozen=True)
class Bench:
    """A band join in two columns [HSJ §5.2] whose window of R holds `window` tuples.

    Attributes:
        window: Tuples of R that a tuple of S meets.
        domain: The values that both columns are drawn from; fewer of them give more matches.
    """

    window: int
    domain: int = 10_000
    seed: int = 7

    @cached_property
    def workload(self) -> Workload:
        return Workload(CellJoin(domain=self.domain), seed=self.seed, rate=_RATE)

    @cached_property
    def spec(self) -> JoinSpec:
        """Windows so long that nothing expires while it is timed."""
        return JoinSpec(("r", "s"), self.workload.on, window="1 hour", time="ts", lateness="1 hour")

    def rows(self, stream: str, start: int, count: int) -> pa.Table:
        """Rows of a stream."""
        return self.workload.table(stream, start, start + count)

    def session(self, options: LocalOptions) -> Session:
        """A session whose window of R is full."""
        session = Session(self.spec, {name: self.workload.schema(name) for name in ("r", "s")}, options)
        for start in range(0, self.window, 1 << 16):
            session.push("r", self.rows("r", start, min(1 << 16, self.window - start)))
        return session
