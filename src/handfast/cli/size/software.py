"""What a demand takes in software: the local engine, measured on this machine with windows of this very size."""

from __future__ import annotations

import math
import tracemalloc
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import pyarrow as pa

from handfast.cli.bench.measure import Speed, in_turns, quantile, speed
from handfast.cli.bench.workload import Bench
from handfast.cli.size.demand import Demand
from handfast.engines.local.options import LocalOptions
from handfast.plan import INDEX, SCAN

LARGEST = 1_000_000  # tuples of the window that is measured
_BLOCK = 1024  # new tuples at a time
_PAIRS = 100_000_000  # that a turn compares, about
_MEMORY_TUPLES = 100_000  # whose memory is measured


@dataclass(frozen=True, slots=True)
class Software:
    """What one core does with a window of this size.

    Attributes:
        local_join: "scan", which tries every pair, or "index".
        tuples: New tuples a second that one core joins: the median over turns, and the quartiles.
        bytes_each: What a stored tuple takes.
    """

    local_join: str
    tuples: tuple[float, float, float]
    bytes_each: float

    def cores(self, demand: Demand) -> tuple[int, int, int]:
        """How many cores it takes at the median, at best and at worst, if cores add up."""
        median, low, high = (math.ceil(2 * demand.rate / own) for own in self.tuples)
        return median, high, low

    def memory(self, demand: Demand) -> float:
        """The bytes of both windows."""
        return self.bytes_each * sum(demand.windows)


def measured_window(demand: Demand) -> int:
    """The window that is measured: the mean of both, unless that takes too long."""
    return min(LARGEST, max(1, sum(demand.windows) // 2))


def measure(demand: Demand, *, turns: int) -> list[Software]:
    """Measure the papers' band join: by trying every pair, as circuits do, and by an index."""
    window = measured_window(demand)
    bench = Bench(window)
    blocks = max(1, min(200, _PAIRS // (window * _BLOCK)))
    options = {own: LocalOptions(cores=1, local_join=own) for own in (SCAN, INDEX)}
    runs = {name: partial(speed, bench, own, block=_BLOCK, blocks=blocks) for name, own in options.items()}
    found = in_turns(runs, turns)
    return [Software(name, _spread(own), _bytes_each(options[name])) for name, own in found.items()]


def _spread(speeds: Sequence[Speed]) -> tuple[float, float, float]:
    rates = [own.tuples_per_second for own in speeds]
    median, low, high = (quantile(rates, share) for share in (0.5, 0.25, 0.75))
    return median, low, high


def _bytes_each(options: LocalOptions) -> float:
    """What a stored tuple takes: what Arrow, Python and NumPy have allocated more with a full window."""
    bench = Bench(_MEMORY_TUPLES)
    bench.session(options).close()  # what is made once, kernels among it, is not counted
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0] + pa.total_allocated_bytes()
        session = bench.session(options)
        after = tracemalloc.get_traced_memory()[0] + pa.total_allocated_bytes()
    finally:
        tracemalloc.stop()
    session.close()
    return float(after - before) / _MEMORY_TUPLES
