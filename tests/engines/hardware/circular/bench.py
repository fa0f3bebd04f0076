"""Rings to test parts of, and a run of a part."""

from __future__ import annotations

from typing import Any

from amaranth.sim import Simulator

import handfast as hf
from handfast.engines.hardware.circular.design import RingDesign, design_stages
from handfast.engines.hardware.stashed.design import LineDesign
from handfast.spec.schema import Schema
from handfast.spec.types import INT8, TIMESTAMP_NTZ

COLUMNS = Schema((("ts", TIMESTAMP_NTZ), ("k", INT8), ("x", INT8)))


def stages(
    on: str, windows: dict[str, str], *, rows: int = 32, held: int = 4, **options: Any
) -> RingDesign | LineDesign:
    """The design of stages over tables of k and x."""
    spec = hf.JoinSpec(tuple(windows), on, window=windows, time="ts")
    join = spec.bind(dict.fromkeys(windows, COLUMNS))
    return design_stages(join, hf.HardwareOptions(**options), [rows] * len(windows), [held] * len(windows))


def ring(on: str, windows: dict[str, str], **options: Any) -> RingDesign:
    """The design of a ring over tables of k and x."""
    found = stages(on, windows, **options)
    assert isinstance(found, RingDesign)
    return found


def run(part: Any, bench: Any) -> None:
    """Run a part with a test bench."""
    simulator = Simulator(part)
    simulator.add_clock(1e-8)
    simulator.add_testbench(bench)
    simulator.run()
