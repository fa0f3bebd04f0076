"""Synthesis: cells by part that add up, a clock by seed, and results that are kept."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from amaranth.hdl import Module, unsigned
from amaranth.lib import wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from handfast.engines.hardware import synthesize, toolchain
from handfast.engines.hardware.synthesize import Area, Cells, Clock
from handfast.errors import SpecError
from tests.engines.hardware.subjects import Queue, Row


class Store(wiring.Component):
    """A memory that can be read and written in each cycle."""

    def __init__(self, *, width: int, depth: int) -> None:
        self.width = width
        self.depth = depth
        ports = {"place": In(range(depth)), "put": In(width), "put_valid": In(1), "got": Out(width)}
        super().__init__(ports)

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        m.submodules.memory = memory = Memory(shape=unsigned(self.width), depth=self.depth, init=[])
        write, read = memory.write_port(), memory.read_port()
        m.d.comb += [write.addr.eq(self.place), read.addr.eq(self.place), write.data.eq(self.put)]
        m.d.comb += [write.en.eq(self.put_valid), self.got.eq(read.data)]
        return m


@pytest.mark.usefixtures("yosys")
def test_parts_are_counted_apart_and_add_up() -> None:
    one = synthesize.area(Queue(width=8, depth=2), family="ecp5")
    row = synthesize.area(Row(width=8, depth=2), family="ecp5")

    assert ["top", "top.first", "top.second"] == list(row.own)
    assert 2 * 8 + 2 == one.total.ff  # two words, and a level of 0 to 3
    assert one.total.ff == row.below("top.first").ff == row.below("top.second").ff
    assert row.total.ff == 2 * one.total.ff
    assert row.total.lut == sum(cells.lut for cells in row.own.values()) > 0


@pytest.mark.slow
@pytest.mark.usefixtures("yosys")
def test_virtex_6_has_its_own_cells() -> None:
    total = synthesize.area(Row(width=8, depth=2)).total

    assert 2 * 18 == total.ff
    assert {"FDRE"} == {cell for cell in total.by_type if cell.startswith("FD")}


@pytest.mark.slow
@pytest.mark.usefixtures("yosys")
@pytest.mark.parametrize(("family", "block_rams"), [("xc6v", 1), ("ecp5", 2)])
def test_a_large_memory_is_block_ram_and_a_small_one_lies_in_luts(family: synthesize.Family, block_rams: int) -> None:
    large = synthesize.area(Store(width=36, depth=1024), family=family).total
    small = synthesize.area(Store(width=4, depth=16), family=family).total

    assert (block_rams, 0) == (large.block_ram, large.lut_ram)
    assert 0 == small.block_ram
    assert small.lut_ram + small.ff > 0


@pytest.mark.slow
@pytest.mark.usefixtures("yosys")
def test_the_clock_is_estimated_by_seed_and_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HANDFAST_CACHE", str(tmp_path))
    told: list[str] = []
    first = synthesize.clock(Row(width=8, depth=2), seeds=(1, 2), progress=told.append)

    assert [1, 2] == list(first.mhz)
    assert min(first.mhz.values()) <= first.median <= max(first.mhz.values())
    assert 50 < first.median < 1000
    assert [
        "synthesising for ecp5",
        "placing and routing with seed 1, 1 of 2",
        "placing and routing with seed 2, 2 of 2",
    ] == told

    told.clear()
    assert first == synthesize.clock(Row(width=8, depth=2), seeds=(1, 2), progress=told.append)
    assert [] == told
    synthesize.clock(Row(width=8, depth=2), seeds=(2, 3), progress=told.append)
    assert ["synthesising for ecp5", "placing and routing with seed 3, 2 of 2"] == told


@pytest.mark.usefixtures("yosys")
def test_a_result_is_kept_by_circuit_and_family(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HANDFAST_CACHE", str(tmp_path))
    scripts: list[str] = []

    def yosys(script: str, *, folder: Path) -> str:
        scripts.append(script)
        (folder / "cells.json").write_text('{"modules": {"\\\\top": {"num_cells_by_type": {"LUT4": 3}}}}')
        return ""

    monkeypatch.setattr(toolchain, "yosys", yosys)
    for _ in range(2):
        assert 3 == synthesize.area(Queue(width=4, depth=2)).total.lut
    assert 1 == len(scripts)
    synthesize.area(Queue(width=4, depth=3))
    synthesize.area(Queue(width=4, depth=2), family="ecp5")
    assert 3 == len(scripts)


def test_cells_are_summed_up_as_the_device_has_them() -> None:
    xilinx = Cells(
        {"LUT2": 1, "LUT6": 2, "INV": 1, "FDRE": 5, "FDSE": 1, "RAM32M": 2, "RAMB18E1": 3, "CARRY4": 7, "MUXF7": 1}
    )
    lattice = Cells({"LUT4": 3, "CCU2C": 2, "PFUMX": 1, "TRELLIS_FF": 4, "TRELLIS_DPR16X4": 1, "DP16KD": 2})

    assert (4, 6, 8, 1.5, 0) == (xilinx.lut, xilinx.ff, xilinx.lut_ram, xilinx.block_ram, xilinx.multipliers)
    assert (7, 4, 6, 2) == (lattice.lut, lattice.ff, lattice.lut_ram, lattice.block_ram)


def test_alike_parts_are_one_kind() -> None:
    lut = Cells({"LUT6": 1})
    area = Area("xc6v", {"top": lut, "top.core_0": lut, "top.core_1": lut, "top.core_1.fifo": lut})

    assert {"top": 1, "top.core_*": 2, "top.core_*.fifo": 1} == {kind: n for kind, (n, _) in area.kinds().items()}
    assert 2 == area.kinds()["top.core_*"][1].lut
    assert 2 == area.below("top.core_1").lut
    with pytest.raises(SpecError, match=r"no part 'top\.core_2' with cells; it has top, top\.core_0"):
        area.below("top.core_2")


def test_the_spread_is_from_the_slowest_to_the_fastest_seed() -> None:
    clock = Clock({1: 100.0, 2: 120.0, 3: 105.0})

    assert (105.0, 20.0) == (clock.median, clock.spread)


def test_what_cannot_be_synthesised_is_refused() -> None:
    queue = Queue(width=1, depth=1)
    with pytest.raises(SpecError, match="one of xc6v, ecp5, not 'xc7'"):
        synthesize.area(queue, family="xc7")  # type: ignore[arg-type]
    with pytest.raises(SpecError, match="at least one seed"):
        synthesize.clock(queue, seeds=())
    synthesize.elaborate(queue)  # Amaranth warns of components that nobody elaborates
