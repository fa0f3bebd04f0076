"""One configuration of a sweep, run on the fast model: what is asked, and the row of what came out."""

from __future__ import annotations

from dataclasses import asdict
from time import perf_counter
from typing import Any

import pyarrow as pa

from handfast.cli.sweep.grid import Configuration
from handfast.engines.hardware.model.circuit import run

SCHEMA = pa.schema(
    [
        ("cores", pa.int32()),
        ("segment", pa.int32()),
        ("comparisons", pa.int32()),
        ("scan", pa.string()),
        ("network", pa.string()),
        ("core_buffer", pa.int32()),
        ("network_buffer", pa.int32()),
        ("margin", pa.int32()),
        ("merger", pa.string()),
        ("cycles_per_result", pa.int32()),
        ("tuples", pa.int64()),
        ("match_rate", pa.float64()),
        ("pattern", pa.string()),
        ("seed", pa.int64()),
        ("window", pa.int64()),  # tuples of each stream that the chain holds
        ("slots", pa.int64()),  # of all FIFOs together
        ("flush", pa.int64()),  # empty steps behind the streams
        ("results", pa.int64()),
        ("cycles", pa.int64()),  # until every step is done and every result has come out
        ("suspended", pa.int64()),  # of these, cycles in which the cores stood still
        ("highest", pa.int64()),  # the most results that any FIFO held
        ("seconds", pa.float64()),  # that the model took
    ]
)


def measure(configuration: Configuration) -> dict[str, Any]:
    """Run one configuration."""
    shape, streams = configuration.shape, configuration.streams
    start = perf_counter()
    ran = run(shape, streams.steps(shape.flush), streams.pairs())
    return {
        **asdict(configuration),
        "window": configuration.window,
        "slots": slots(configuration, len(ran.highest)),
        "flush": shape.flush,
        "results": len(ran.r),
        "cycles": ran.idle,
        "suspended": ran.suspended,
        "highest": int(ran.highest.max(initial=0)),
        "seconds": perf_counter() - start,
    }


def slots(configuration: Configuration, fifos: int) -> int:
    """The slots of all FIFOs together, of which there are so many: those of the cores, and those of the network."""
    of_cores = configuration.cores if configuration.core_buffer else 0
    return of_cores * configuration.core_buffer + (fifos - of_cores) * configuration.network_buffer
