"""Cells of circuits that grow: counted for each size, and held against a straight line."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from handfast.engines.hardware import synthesize

KINDS = ("lut", "ff", "lut_ram", "block_ram")


def counted(sizes: Sequence[int], build: Callable[[int], Any], says: str) -> dict[str, list[Any]]:
    """Cells on a Virtex-6 by size, and the seconds that each synthesis took; `says` names a circuit by its size."""
    found: dict[str, list[Any]] = {kind: [] for kind in (*KINDS, "seconds")}
    for size in sizes:
        start = time.perf_counter()
        total = synthesize.area(build(size), family="xc6v").total
        found["seconds"].append(round(time.perf_counter() - start, 1))
        for kind in KINDS:
            found[kind].append(getattr(total, kind))
        print(f"{says.format(size)}: {total.lut:,} LUT, {total.ff:,} FF", flush=True)
    return found


def line(sizes: Sequence[int], counts: Sequence[float]) -> dict[str, float]:
    """The straight line through counts whose relative deviations have the least squares: cells for each unit of size,
    cells besides, and the largest of these deviations."""
    slope, start = np.polyfit(sizes, counts, 1, w=1 / np.array(counts))
    deviation = np.abs((slope * np.array(sizes) + start) / np.array(counts) - 1)
    return {"each": round(slope, 1), "besides": round(start, 1), "deviation": round(float(deviation.max()), 4)}


@contextmanager
def fresh_cache() -> Iterator[None]:
    """Nothing is taken from before, so that the time of a synthesis is that of synthesis."""
    kept = os.environ.get("HANDFAST_CACHE")
    with tempfile.TemporaryDirectory() as folder:
        os.environ["HANDFAST_CACHE"] = folder
        try:
            yield
        finally:
            os.environ.pop("HANDFAST_CACHE")
            if kept is not None:
                os.environ["HANDFAST_CACHE"] = kept
