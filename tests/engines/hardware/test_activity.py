"""Toggles: as many as a formula says, at flip-flops, LUTs and RAMs, as written and as mapped."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from amaranth.hdl import Cat, Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from handfast.engines.hardware import activity
from handfast.errors import SpecError, UnsupportedError
from tests.engines.hardware.test_synthesize import Store

BITS = 10


class Counters(wiring.Component):
    """Two counters in parts of their own, of which the second counts only when the first is odd."""

    def __init__(self) -> None:
        super().__init__({"counts": Out(BITS).array(2)})

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        for number, count in enumerate(self.counts):
            m.submodules[f"part_{number}"] = part = Module()
            register = Signal(BITS, name="register")  # how often it has counted
            with part.If(1 if number == 0 else self.counts[0][0]):
                part.d.sync += register.eq(register + 1)
            part.d.comb += count.eq(register)
        return m


class ShiftRegister(wiring.Component):
    """The last words that came, whatever they are."""

    def __init__(self, *, width: int, length: int) -> None:
        self.width = width
        self.length = length
        super().__init__({"words": In(stream.Signature(width)), "last": Out(width)})

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        slots = Signal(self.width * self.length)  # the newest word in the lowest bits
        m.d.comb += [self.words.ready.eq(1), self.last.eq(slots[-self.width :])]
        with m.If(self.words.valid):
            m.d.sync += slots.eq(Cat(self.words.payload, slots))
        return m


def counted(n: int) -> int:
    """The bits that change while a counter goes from 0 to n: 2n − the ones in n, for bit i changes n div 2^i times."""
    return 2 * n - n.bit_count()


def check_counters(module: Any, mapped: bool) -> None:
    built = module.build(Counters(), mapped=mapped)
    run = built.simulator.run(cycles=101)
    found = built.toggles(run)
    assert (100, 2 * BITS) == (found.cycles, found.bits["flip_flop"])
    assert counted(100) + counted(50) == found.counts["flip_flop"]
    late = built.toggles(run, first=40, last=60)
    assert counted(60) - counted(40) + counted(30) - counted(20) == late.counts["flip_flop"]


def check_shift_register(module: Any, mapped: bool) -> None:
    width, length = 65, 5
    words = np.random.default_rng(1).integers(0, 2, (30, width))
    packed = [[int("".join(map(str, row[:64][::-1])), 2), int(row[64])] for row in words]
    built = module.build(ShiftRegister(width=width, length=length), mapped=mapped)
    run = built.simulator.run({"words": np.array(packed, np.uint64)}, cycles=31)
    shifted = np.vstack([np.zeros((length, width), int), words])  # the slots are empty at first
    changes = (shifted[1:] ^ shifted[:-1]).sum(axis=1)  # between a word and the next
    expected = sum(int(changes[at : at + length].sum()) for at in range(30))
    assert expected == built.toggles(run).counts["flip_flop"]


@pytest.mark.usefixtures("yosys")
def test_the_flip_flops_of_counters_toggle_as_the_formula_says() -> None:
    check_counters(activity, mapped=False)


@pytest.mark.slow
@pytest.mark.usefixtures("yosys")
def test_and_so_they_do_when_they_are_mapped() -> None:
    check_counters(activity, mapped=True)
    check_shift_register(activity, mapped=True)


@pytest.mark.slow
@pytest.mark.usefixtures("yosys")
def test_a_shift_register_toggles_where_neighbours_differ() -> None:
    check_shift_register(activity, mapped=False)


@pytest.mark.slow
@pytest.mark.usefixtures("yosys")
def test_cells_that_compute_toggle_as_well_when_they_are_mapped() -> None:
    built = activity.build(Counters(), mapped=True)
    run = built.simulator.run(cycles=101)
    found = built.toggles(run)
    assert found.counts["lut"] + found.counts["carry"] > 0
    assert found.total == sum(found.counts.values())
    with pytest.raises(SpecError, match="from 0 to 100, not 40 to 101"):
        built.toggles(run, first=40, last=101)


@pytest.mark.slow
@pytest.mark.usefixtures("yosys")
def test_a_ram_toggles_where_it_is_read_and_one_that_nobody_has_a_model_of_is_refused() -> None:
    built = activity.build(Store(width=8, depth=4))
    levels = {"place": [0, 1, 2, 0, 1, 2, 0], "put": [0x0F, 0xFF, 0xF0, 0, 0, 0, 0], "put_valid": [1, 1, 1, 0, 0, 0, 0]}
    run = built.simulator.run(inputs={name: np.array(own, np.uint64) for name, own in levels.items()}, cycles=7)
    # read in the cycle after: 0 0 0 0 0x0f 0xff 0xf0
    assert {"ram": 4 + 4 + 4} == built.toggles(run).counts
    with pytest.raises(UnsupportedError, match="A mapped circuit with RAMB36E1 cannot be simulated"):
        activity.build(Store(width=36, depth=1024), mapped=True)
