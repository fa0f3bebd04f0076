"""Verilator: agrees with Amaranth's own simulator in every cycle, is built once, and leaves nothing behind."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from amaranth.hdl import Assert, Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from amaranth.sim import Simulator as AmaranthSimulator

from handfast.engines.hardware import toolchain, verilator
from handfast.engines.hardware.simulator import Feed, Run, Simulator
from handfast.errors import EngineError, MissingExtraError, SpecError
from tests.engines.hardware.subjects import Countdown, Queue, Row, Scramble

pytestmark = pytest.mark.usefixtures("yosys")


@pytest.fixture(scope="module")
def row() -> Simulator:
    component = Row(width=80, depth=3)
    return verilator.build(component, probes={f"queue {n}": each.level for n, each in enumerate(component.queues)})


def pairs(values: list[int]) -> np.ndarray:
    """Numbers of more than 64 bits as words, the lowest first."""
    return np.array([(value % (1 << 64), value >> 64) for value in values], np.uint64).reshape(-1, 2)


def number(words: Any) -> int:
    return sum(int(word) << (64 * place) for place, word in enumerate(np.atleast_1d(words)))


def rows(values: list[int], width: int) -> np.ndarray:
    count = -(-width // 64)
    words = [[value >> (64 * place) & (2**64 - 1) for place in range(count)] for value in values]
    return np.array(words, np.uint64) if count > 1 else np.array([word for (word,) in words], np.uint64)


def in_amaranth(component: Scramble, words: list[list[int]], at: list[int], turns: list[int], ready: list[int]) -> Any:
    """The same run in Amaranth's simulator: what moved when, and each probe in each cycle."""
    taken: list[list[int]] = [[], []]
    moved: list[tuple[int, int]] = []
    seen: list[list[int]] = []

    async def bench(context: Any) -> None:
        left = [list(zip(each, at, strict=True)) for each in words]
        for cycle, turn in enumerate(turns):
            context.set(component.turn, turn)
            context.set(component.output.ready, ready[cycle % len(ready)])
            for each, queue in zip(component.inputs, left, strict=True):
                offered = bool(queue) and queue[0][1] <= cycle
                context.set(each.valid, offered)
                context.set(each.payload, queue[0][0] if offered else 0)
            for place, each in enumerate(component.inputs):
                if context.get(each.valid) and context.get(each.ready):
                    taken[place].append(cycle)
                    left[place].pop(0)
            if context.get(component.output.valid) and context.get(component.output.ready):
                moved.append((cycle, context.get(component.output.payload)))
            narrow = context.get(component.narrow) % 128
            seen.append([context.get(component.wide), narrow, *map(context.get, component.registers)])
            await context.tick()

    simulator = AmaranthSimulator(component)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()
    return taken, moved, seen


@pytest.mark.parametrize("seed", [1, *(pytest.param(seed, marks=pytest.mark.more) for seed in range(2, 8))])
def test_every_signal_is_the_same_as_in_amaranths_simulator_in_every_cycle(seed: int) -> None:
    random = np.random.default_rng(seed)
    component = Scramble(seed)
    width = component.widths[0]
    cycles = 300
    words = [[int.from_bytes(random.bytes(20)) % (1 << width) for _ in range(200)] for _ in range(2)]
    at = sorted(int(each) for each in random.integers(0, cycles, 200))
    turns = [int(each) for each in random.integers(0, 4, cycles)]
    ready = [1, 0, 1, 1, 0]
    names = ["wide", "narrow", *(signal.name for signal in component.registers)]

    taken, moved, seen = in_amaranth(component, words, at, turns, ready)
    same = Scramble(seed)
    simulator = verilator.build(same, probes={signal.name: signal for signal in same.registers})
    run = simulator.run(
        {f"inputs__{place}": Feed(rows(each, width), at) for place, each in enumerate(words)},
        inputs={"turn": turns},
        ready={"output": ready},
        cycles=cycles,
    )

    assert taken == [run.taken[f"inputs__{place}"].tolist() for place in range(2)]
    output = run.outputs["output"]
    assert moved == list(zip(output.cycles.tolist(), map(number, output.words), strict=True))
    columns = [[number(each) for each in run.probes[name].each_cycle(cycles)] for name in names]
    assert seen == [list(each) for each in zip(*columns, strict=True)]
    assert len({tuple(each) for each in seen}) > cycles / 2, "the circuit does next to nothing"


def test_words_leave_in_order_with_their_cycles_and_levels(row: Simulator) -> None:
    values = [3 << 70 | 5, 1, (1 << 80) - 1, 7]

    run = row.run({"write": pairs(values)}, quiet=10)

    assert values == [number(each) for each in run.outputs["read"].words]
    assert [0, 1, 2, 3] == run.taken["write"].tolist()
    assert [2, 3, 4, 5] == run.outputs["read"].cycles.tolist()  # a cycle in each of the two queues
    assert [0, 1, 1, 1, 1, 0, 0] == run.probes["queue 0"].each_cycle(7).tolist()
    assert [0, 0, 1, 1, 1, 1, 0] == run.probes["queue 1"].each_cycle(7).tolist()
    assert (True, 16) == (run.finished, run.cycles)  # ten quiet ones after cycle 5


def test_words_that_nobody_takes_are_not_finished(row: Simulator) -> None:
    run = row.run({"write": pairs(list(range(20)))}, ready={"read": [0]}, quiet=100)

    assert not run.finished
    assert 6 == len(run.taken["write"])  # the room of both queues
    assert 0 == len(run.outputs["read"].words)
    assert 3 == number(run.probes["queue 1"].words[-1])


def test_a_run_waits_for_a_word_that_comes_late(row: Simulator) -> None:
    run = row.run({"write": Feed(pairs([1, 2]), [0, 500])}, quiet=20)

    assert (True, [0, 500]) == (run.finished, run.taken["write"].tolist())


def test_a_run_ends_when_the_circuit_is_idle_however_long_it_is_silent_before() -> None:
    countdown = verilator.build(Countdown())

    run = countdown.run({"write": [50_000, 3]}, quiet=1 << 40, idle="idle")
    gives_up = countdown.run({"write": [50_000, 3]}, quiet=2_000, idle="idle")

    assert (True, [0, 50_001]) == (run.finished, run.taken["write"].tolist())
    assert 50_005 == run.probes["idle"].cycles[-1]
    assert 1 == run.probes["idle"].words[-1]
    assert run.cycles < 3 * 50_000
    assert (False, 2_001, 0) == (gives_up.finished, gives_up.cycles, gives_up.probes["idle"].words[-1])
    with pytest.raises(SpecError, match="no output 'done'; it has idle"):
        countdown.run({"write": [1]}, idle="done")


def test_every_run_begins_at_power_up(row: Simulator) -> None:
    def once() -> Run:
        return row.run({"write": pairs([1, 2, 3])}, ready={"read": [0, 0, 1]}, cycles=6)

    first, second = once(), once()
    assert first.outputs["read"].cycles.tolist() == second.outputs["read"].cycles.tolist()
    assert [0] == second.probes["queue 0"].words[:1].tolist()


def test_progress_is_told_the_cycles_so_far(row: Simulator) -> None:
    told: list[int] = []
    row.run(cycles=200_000, progress=told.append)

    assert sorted(told) == told
    assert 200_000 == told[-1]
    assert len(told) > 1


def test_a_failed_assertion_is_an_error_with_its_cycle_and_the_process_lives() -> None:
    simulator = verilator.build(Queue(width=4, depth=2, broken=True))

    with pytest.raises(EngineError, match=r"(?s)cycle 3.*more than it has room for"):
        simulator.run({"write": [1, 2, 3, 4]}, ready={"read": [0]})
    assert [1, 2] == simulator.run({"write": [1, 2]}).outputs["read"].words.tolist()


class Alternating(wiring.Component):
    """Claims that `go` is 1 in even cycles only: itself, through a part without registers, and one inside that."""

    def __init__(self, depth: int = 0) -> None:
        self.depth = depth
        super().__init__({"go": In(1), "odd": In(1) if depth else Out(1)})

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        if self.depth == 0:
            m.d.sync += self.odd.eq(~self.odd)
        if self.depth < 2:
            m.submodules.part = part = Alternating(self.depth + 1)
            m.d.comb += [part.go.eq(self.go), part.odd.eq(self.odd)]
        m.d.comb += Assert(~(self.go & self.odd), f"go in an odd cycle, depth {self.depth}")
        return m


def test_assertions_are_about_settled_values_in_every_part() -> None:
    simulator = verilator.build(Alternating())

    simulator.run(inputs={"go": [1, 0, 1, 0, 1, 0]}, cycles=6)  # between two cycles, go is still 1 when odd is already
    with pytest.raises(EngineError, match=r"(?s)cycle 3:(?=.*depth 0)(?=.*depth 1)(?=.*depth 2)"):
        simulator.run(inputs={"go": [1, 0, 1, 1, 1, 0]}, cycles=6)


def test_a_waveform_is_written_on_request(tmp_path: Path, row: Simulator) -> None:
    with pytest.raises(SpecError, match="waveform=True"):
        row.run(waveform=tmp_path / "row.vcd")
    simulator = verilator.build(Row(width=8, depth=2), waveform=True)

    simulator.run({"write": [1, 2, 3]}, waveform=tmp_path / "row.vcd", quiet=10)

    text = (tmp_path / "row.vcd").read_text()
    assert "$enddefinitions" in text
    assert "word_1" in text


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"streams": {"writ": [1]}}, "no input stream 'writ'; it has write"),
        ({"streams": {"write": [1]}}, "2 words a value"),
        ({"streams": {"write": [[0, 1 << 16]]}}, "80 bits, and a value does not fit"),
        ({"streams": {"write": [[-1, 0]]}}, "unsigned"),
        ({"streams": {"write": Feed([[1, 0]], [1, 2])}}, "1 words and 2 cycles"),
        ({"inputs": {"clk": 1}}, "no input 'clk'; it has none"),
        ({"ready": {"read": []}}, "at least one cycle"),
    ],
)
def test_what_does_not_fit_the_circuit_is_refused(row: Simulator, arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(SpecError, match=message):
        row.run(**arguments)


def test_a_simulator_is_built_once_and_a_damaged_one_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    built = []
    build = verilator._build
    runtime = verilator._runtime(toolchain.compiler())
    monkeypatch.setattr(verilator, "_runtime", lambda compiler: runtime)
    monkeypatch.setattr(verilator, "_build", lambda *arguments: built.append(1) or build(*arguments))
    monkeypatch.setenv("HANDFAST_CACHE", str(tmp_path))
    for _ in range(2):
        verilator.build(Queue(width=4, depth=1))
    assert 1 == len(built)

    largest = max((tmp_path / "hardware").iterdir(), key=lambda path: path.stat().st_size)
    code = bytearray(largest.read_bytes())
    code[len(code) // 2] ^= 1
    largest.write_bytes(code)
    assert [3] == verilator.build(Queue(width=4, depth=1)).run({"write": [3]}).outputs["read"].words.tolist()
    assert 2 == len(built)


@pytest.fixture
def empty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache and an empty folder for temporary files."""
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    monkeypatch.setenv("HANDFAST_CACHE", str(tmp_path / "cache"))
    return tmp_path


def left(folder: Path) -> list[str]:
    """The files that are left, but for the exported Verilog, which was whole."""
    found = [path for path in folder.rglob("*") if path.is_file()]
    return [path.name for path in found if b"\nmodule " not in path.read_bytes()]


def test_a_build_that_fails_says_the_compilers_last_lines_and_leaves_nothing(
    empty: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(verilator, "_runtime", lambda compiler: b"")
    monkeypatch.setattr(verilator, "driver", lambda *_: "int main() { return missing_name; }")

    with pytest.raises(EngineError, match=r"(?s)C\+\+ compiler failed.*missing_name"):
        verilator.build(Queue(width=4, depth=1))
    assert [] == left(empty)


def test_an_interrupted_build_leaves_nothing(empty: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: Any) -> str:
        raise KeyboardInterrupt

    monkeypatch.setattr(verilator, "_runtime", lambda compiler: b"")
    monkeypatch.setattr(verilator, "driver", interrupted)

    with pytest.raises(KeyboardInterrupt):
        verilator.build(Queue(width=4, depth=1))
    assert [] == left(empty)


def test_a_missing_compiler_is_named_with_its_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CXX", raising=False)
    monkeypatch.setenv("PATH", os.devnull)

    with pytest.raises(EngineError, match=r"no g\+\+ on the PATH; .* apt-get install g\+\+"):
        verilator.build(Queue(width=4, depth=1))


def test_a_missing_tool_is_named_with_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(toolchain.importlib.util, "find_spec", lambda name: None)

    with pytest.raises(MissingExtraError, match=r"'hardware' extra \(verilator is missing\)"):
        verilator.lint("module top; endmodule")
