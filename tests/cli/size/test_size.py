"""`handfast size`: the clock that a demand takes, area and switching only where somebody counted them, and software."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from typer.testing import CliRunner

from handfast.cli import app
from handfast.cli.areas import Line, NetworkArea
from handfast.cli.size import hardware, run, software
from handfast.cli.size.demand import Demand
from handfast.cli.size.hardware import Circuit, best, circuits, clock_of, fitted, read_switching
from handfast.cli.size.software import Software
from handfast.engines.hardware import synthesize
from handfast.engines.hardware.options import SCANS
from handfast.engines.hardware.shape import CircuitShape
from handfast.errors import SpecError

ROOT = Path(__file__).resolve().parents[3]
RESULTS = ROOT / "benchmarks" / "results"
PAPER = Demand.of(500_000, "100")  # [HSJ §6.5]
AREA = NetworkArea(
    {2: 100, 4: 200}, {2: 90, 4: 190}, Line(50, 0, 0.01), Line(50, -10, 0.02), {2: (108.0, 3.0), 4: (104.0, 2.0)}
)


def test_the_clock_is_that_of_the_papers_table() -> None:
    printed = {1: 50.0, 2: 25.0, 5: 10.0, 10: 5.0}  # MHz [HSJ Table 1]
    assert printed == {cores: PAPER.paper_mhz(cores) for cores in printed}


@pytest.mark.parametrize("scan", SCANS)
@pytest.mark.parametrize("windows", ["100", "512", "100,37"])
@pytest.mark.parametrize("cores", [1, 3, 8])
def test_the_clock_is_what_the_circuit_takes(scan: str, windows: str, cores: int) -> None:
    demand = Demand.of(1_000_000, windows)
    shape = CircuitShape(cores, demand.segments(cores), scan=scan)
    assert shape.cycles_per_step == demand.mhz(cores, scan)


def test_every_new_tuple_meets_the_other_window() -> None:
    assert 10.0 * (3 + 7) == Demand.of(10, "3,7").pairs
    assert 100_000_000 == PAPER.pairs


def test_powers_of_two_are_proposed_and_what_fits_a_segment() -> None:
    assert [1, 2, 4, 8, 13, 16, 32, 64] == PAPER.proposed_cores(8)
    assert [1, 2, 3] == Demand.of(1, "3").proposed_cores(1)
    assert 256 == Demand.of(1, "1000000").proposed_cores(8)[-1]


@pytest.mark.parametrize(
    ("rate", "window", "message"),
    [
        (0, "100", "A rate is more than 0 tuples a second of each stream, not 0"),
        (float("inf"), "100", "A rate is more than 0 tuples a second of each stream, not inf"),
        (1, "0", "A window has at least 1 tuple, not 0"),
        (1, "many", "A window is a number of tuples, or two with a comma between them, not 'many'"),
        (1, "1,2,3", "A window is a number of tuples, or two with a comma between them, not '1,2,3'"),
    ],
)
def test_what_is_no_demand_is_named(rate: float, window: str, message: str) -> None:
    with pytest.raises(SpecError) as raised:
        Demand.of(rate, window)
    assert message == str(raised.value)


# --- circuits -------------------------------------------------------------------------------------------------------


def test_an_area_is_given_only_where_it_was_counted() -> None:
    demand = Demand.of(1000, "24")
    count = fitted(demand, "immediate", "tree", {"tree": AREA})
    assert (150, 140) == count(3)  # 3 × 8, between 2 and 4 cores: on the line
    assert (None, None) == count(2)  # segments of 12
    assert (None, None) == fitted(Demand.of(1000, "64"), "immediate", "tree", {"tree": AREA})(8)  # beyond the line
    assert (None, None) == fitted(demand, "eager", "tree", {"tree": AREA})(3)
    assert (None, None) == fitted(demand, "immediate", "adaptive", {"tree": AREA})(3)
    assert (None, None) == fitted(demand, "immediate", "tree", None)(3)


def test_the_clock_within_reach_is_the_lowest_that_was_estimated() -> None:
    assert 104.0 == clock_of({"tree": AREA}, "tree")
    assert clock_of({"tree": AREA}, "adaptive") is None
    assert clock_of(None, "tree") is None


def test_switching_is_taken_for_the_windows_it_was_counted_for(tmp_path: Path) -> None:
    assert {} == read_switching(tmp_path, PAPER)
    own = {"1": {"relative": {"toggles": 100.0}}, "2": {"relative": {"toggles": 64.5}}}
    (tmp_path / hardware.ENERGY).write_text(json.dumps({"window": 100, "cores": own}))
    assert {1: 100.0, 2: 64.5} == read_switching(tmp_path, PAPER)
    assert {} == read_switching(tmp_path, Demand.of(500_000, "100,50"))
    (tmp_path / hardware.ENERGY).write_text("[]")
    with pytest.raises(SpecError, match=r"is not what python -m benchmarks\.circuit_energy writes"):
        read_switching(tmp_path, PAPER)


def circuit(cores: int, luts: int | None = None, switching: float | None = None, *, meets: bool = True) -> Circuit:
    return Circuit(cores, (1, 1), 1.0, 1.0, luts, luts, switching, meets)


@pytest.mark.parametrize(
    ("found", "cores", "why"),
    [
        ([circuit(1, 10, 100.0), circuit(2, 20, 60.0), circuit(5, 50, 70.0)], 2, "it switches the fewest bits"),
        ([circuit(1, 10, 50.0, meets=False), circuit(2, 20, 60.0)], 2, "it switches the fewest bits"),
        ([circuit(1, 30), circuit(2, 20, 60.0)], 2, "it takes the fewest LUTs"),
        ([circuit(2), circuit(4, 20)], 2, "it has the fewest cores; the area of all is not known"),
    ],
)
def test_a_figure_decides_only_if_all_have_it(found: list[Circuit], cores: int, why: str) -> None:
    chosen = best(found)
    assert chosen is not None
    assert cores == chosen[0].cores
    assert chosen[1].startswith(why)
    assert best([circuit(1, meets=False)]) is None


def test_a_circuit_meets_a_demand_whose_clock_is_within_reach() -> None:
    found = circuits(PAPER, [1, 2, 5], "immediate", 52.5, lambda n: (10 * n, n), {2: 60.0})
    assert [False, True, True] == [own.meets for own in found]
    assert [(102.5, None), (52.5, 60.0), (22.5, None)] == [(own.needed, own.switching) for own in found]
    assert [(10, 1), (20, 2), (50, 5)] == [(own.luts, own.registers) for own in found]


def test_synthesis_counts_the_circuit_of_these_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Any] = []

    def area(top: Any, *, family: str) -> Any:
        seen.append((top.chain.sizes, len(top.chain.cores), len(top.fifos), family))
        return SimpleNamespace(total=SimpleNamespace(lut=7, ff=9))

    monkeypatch.setattr(synthesize, "area", area)
    count = hardware.synthesised(Demand.of(1000, "12,8"), "eager", "adaptive", "ecp5")
    assert (7, 9) == count(4)
    assert [((3, 2), 4, 4, "ecp5")] == seen


# --- software -------------------------------------------------------------------------------------------------------


def test_so_many_cores_as_the_tuples_of_both_streams_take() -> None:
    own = Software("scan", (100_000.0, 80_000.0, 130_000.0), 50.0)
    assert (10, 8, 13) == own.cores(PAPER)
    assert 50.0 * 200 == own.memory(PAPER)


def test_software_is_measured_with_windows_of_this_size() -> None:
    assert 100 == software.measured_window(PAPER)
    assert software.LARGEST == software.measured_window(Demand.of(1, "9000000"))
    scan, index = software.measure(Demand.of(1000, "300"), turns=1)
    assert ("scan", "index") == (scan.local_join, index.local_join)
    for own in (scan, index):
        median, low, high = own.tuples
        assert 0 < low <= median <= high
        assert 24 <= own.bytes_each < 10_000  # at least a time, two numbers and an id


# --- the command ----------------------------------------------------------------------------------------------------


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Software is not measured again for each test."""
    found = [Software("scan", (100_000.0, 80_000.0, 130_000.0), 50.0), Software("index", (2e6, 2e6, 2e6), 50.0)]
    monkeypatch.setattr(software, "measure", lambda demand, turns: found)


def invoke(*arguments: str) -> Any:
    return CliRunner().invoke(app, ["size", *arguments])


@pytest.mark.usefixtures("quick")
def test_the_command_shows_circuits_and_software_and_marks_the_best(tmp_path: Path) -> None:
    asked = ("--rate", "500000", "--window", "100", "--cores", "10,1,2", "--clock", "60", "--results", str(tmp_path))
    ran = invoke(*asked)
    assert 0 == ran.exit_code, ran.output
    lines = [line.split() for line in ran.output.splitlines()]
    assert ["1", "100", "50", "102", "—", "—", "—", "✘"] in lines
    assert ["2", "50", "25", "52", "—", "—", "—", "✔", "best"] in lines
    assert ["10", "10", "5.00", "12", "—", "—", "—"] in lines
    assert ["scan", "100,000", "(80,000–130,000)", "10", "(8–13)", "10.0", "kB"] in lines
    assert ["index", "2,000,000", "(2,000,000–2,000,000)", "1", "10.0", "kB"] in lines
    assert "500,000 tuples a second of each stream, windows of 100 and 100 tuples:" in ran.output


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize(
    ("arguments", "column"),
    [
        ((), ["100", "55", "—", "25", "20"]),
        (("--scan", "eager"), ["—"] * 5),
        (("--network", "adaptive"), ["—"] * 5),
        (("--window", "50"), ["—"] * 5),
    ],
)
def test_switching_is_shown_for_the_circuits_that_were_counted(arguments: tuple[str, ...], column: list[str]) -> None:
    asked = ("--rate", "500000", "--window", "100", "--cores", "1,2,4,5,10", "--clock", "200", "--results")
    ran = invoke(*asked, str(RESULTS), *arguments)
    assert 0 == ran.exit_code, ran.output
    lines = [line.split() for line in ran.output.splitlines()]
    assert column == [line[6] for line in lines if line and line[0] in ("1", "2", "4", "5", "10")]
    assert ("neither wires nor the clock are counted" in ran.output) == (not arguments)
    assert "switching, where there is none: python -m benchmarks.circuit_energy counts it" in ran.output


def test_the_page_on_hardware_has_the_figures_that_were_counted() -> None:
    cores = json.loads((RESULTS / hardware.ENERGY).read_text(encoding="utf-8"))["cores"]
    assert ["1", "2", "5", "10"] == list(cores)
    page = (ROOT / "docs" / "hardware.md").read_text(encoding="utf-8")
    paragraph = " ".join(next(part for part in page.split("\n\n") if "benchmarks.circuit_energy" in part).split())
    for said, kind in (
        ("all toggles are as", "toggles"),
        ("those of flip-flops alone as", "flip_flop"),
        ("the flip-flops that are clocked as", "clocked"),
    ):
        counted = " : ".join(f"{own['relative'][kind]:.0f}" for own in cores.values())
        assert f"{said} {counted}" in paragraph
    printed = " : ".join(str(own["printed"]["dynamic_mw"]) for own in cores.values())
    assert f"dynamic power as {printed} mW" in paragraph


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize(("window", "told"), [("1000000", True), ("1000000,1000001", True), ("1000000000000", False)])
def test_no_cores_are_told_for_windows_longer_than_what_was_measured(window: str, told: bool) -> None:
    ran = invoke("--rate", "10", "--window", window, "--clock", "100")
    assert 0 == ran.exit_code, ran.output
    (line,) = [line.split() for line in ran.output.splitlines() if line.strip().startswith("scan ")]
    assert told == ("—" not in line)
    assert told == ("measured with windows of 1,000,000 tuples, the longest that are" not in ran.output)


@pytest.mark.usefixtures("quick")
def test_where_no_circuit_is_fast_enough_the_way_out_is_said(tmp_path: Path) -> None:
    ran = invoke("--rate", "1e9", "--window", "100", "--cores", "1", "--clock", "60", "--results", str(tmp_path))
    assert 0 == ran.exit_code, ran.output
    assert "none is fast enough; take more cores (--cores), or a faster device (--clock)" in ran.output


@pytest.mark.usefixtures("quick")
def test_the_clock_is_taken_from_the_benchmark(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "read_areas", lambda folder: {"tree": AREA})
    ran = invoke("--rate", "1000", "--window", "32")
    assert 0 == ran.exit_code, ran.output
    assert "within reach: 104 MHz, nextpnr's lowest estimate for such circuits on an ECP5" in ran.output
    assert ["4", "8", "0.01", "0.02", "200", "190", "—"] in [line.split() for line in ran.output.splitlines()]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--cores", "some"), "--cores takes numbers from 1 on with commas between them, like 1,2,5,10, not 'some'"),
        (("--cores", "0"), "--cores takes numbers from 1 on with commas between them, like 1,2,5,10, not '0'"),
        (("--clock", "0"), "A clock is more than 0 MHz, not 0"),
        (("--network", "bus"), "A circuit's network is one of 'tree', 'adaptive', 'pipelined', not 'bus'"),
        (("--scan", "lazy"), "A circuit's scan is one of 'immediate', 'eager', not 'lazy'"),
    ],
)
def test_what_is_asked_wrongly_is_named(arguments: tuple[str, ...], message: str, tmp_path: Path) -> None:
    asked = ["--rate", "1", "--window", "8", "--results", str(tmp_path)]
    clock = [] if "--clock" in arguments else ["--clock", "100"]
    ran = invoke(*asked, *clock, *arguments)
    assert (2, f"handfast: {message}\n") == (ran.exit_code, ran.stderr)


@pytest.mark.usefixtures("quick")
def test_a_folder_that_was_asked_for_has_to_be_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = ("--rate", "1", "--window", "8", "--clock", "100")
    for missing in (tmp_path / "none", Path(__file__)):
        ran = invoke(*asked, "--results", str(missing))
        message = f"--results takes a folder that the benchmarks wrote into; there is none at {str(missing)!r}"
        assert (2, f"handfast: {message}\n") == (ran.exit_code, ran.stderr)
    monkeypatch.chdir(tmp_path)  # as where handfast was installed from a wheel
    assert 0 == invoke(*asked).exit_code


def test_without_an_estimate_the_clock_has_to_be_said(tmp_path: Path) -> None:
    ran = invoke("--rate", "1", "--window", "8", "--results", str(tmp_path))
    assert 2 == ran.exit_code
    assert "say what your device reaches: --clock 100, in MHz" in ran.stderr
