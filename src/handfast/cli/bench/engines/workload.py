"""The joins that all engines run: their rows, their windows, and the circuit for them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
import pyarrow as pa

from handfast.engines.hardware.options import HardwareOptions
from handfast.spec.join import JoinSpec

_SPACING = 1_000  # microseconds between two rows, whichever streams they are of
_BAND = 10  # how far apart x may be
_VALUES = 100  # of x
_EPOCH = 1_700_000_000_000_000  # the time of the first row


@dataclass(frozen=True)
class Workload:
    """An equality and a band, over streams that bring a row in turn, with windows of time.

    Attributes:
        streams: How many there are.
        rows: Of each stream.
        window: Rows of each stream that its window holds.
        keys: How many there are.
        options: The circuit.
        seed: Of the values.
    """

    streams: int
    rows: int
    window: int
    keys: int
    options: HardwareOptions
    seed: int = 1

    @property
    def names(self) -> tuple[str, ...]:
        """The streams."""
        return tuple("rstuvwxy"[: self.streams])

    @property
    def on(self) -> str:
        """The predicate."""
        first, second, *_ = self.names
        same = [f"{a}.k = {b}.k" for a, b in pairwise(self.names)]
        return " AND ".join([*same, f"{first}.x BETWEEN {second}.x - {_BAND} AND {second}.x + {_BAND}"])

    @property
    def spec(self) -> JoinSpec:
        """The join. No row is late: every engine is fed in the order of time."""
        length = f"{self.window * self.streams * _SPACING} us"
        return JoinSpec(self.names, self.on, window=length, time="ts", lateness="0 seconds")

    @cached_property
    def tables(self) -> dict[str, pa.Table]:
        """The rows of each stream, in the order of time."""
        random = np.random.default_rng(self.seed)
        return {name: self._table(place, random) for place, name in enumerate(self.names)}

    @property
    def tuples(self) -> int:
        """The rows of all streams together."""
        return self.streams * self.rows

    def _table(self, place: int, random: np.random.Generator) -> pa.Table:
        numbers = np.arange(self.rows)
        times = _EPOCH + (numbers * self.streams + place) * _SPACING
        return pa.table(
            {
                "id": pa.array(numbers),
                "ts": pa.array(times).cast(pa.timestamp("us", "UTC")),
                "k": pa.array(random.integers(0, self.keys, self.rows).astype(np.int32)),
                "x": pa.array(random.integers(0, _VALUES, self.rows).astype(np.int16)),
            }
        )


WHOLE = (
    Workload(streams=2, rows=4_000, window=256, keys=64, options=HardwareOptions(cores=16)),
    Workload(streams=3, rows=2_000, window=32, keys=16, options=HardwareOptions()),
)
QUICK = (
    Workload(streams=2, rows=240, window=16, keys=8, options=HardwareOptions(cores=2)),
    Workload(streams=3, rows=120, window=6, keys=4, options=HardwareOptions(in_flight=8)),
)
