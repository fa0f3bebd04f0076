"""`handfast synthesize`: cells by part, the clock with its spread, Verilog; nothing is left half written."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from handfast.cli import app
from handfast.engines.hardware import synthesize as tool
from handfast.engines.hardware import toolchain, verilog
from handfast.engines.hardware.synthesize import Clock
from handfast.errors import EngineError

EXAMPLE = Path(__file__).resolve().parents[3] / "examples" / "circuit" / "pipeline.toml"
CELLS = {"LUT6": 3, "FDRE": 2}


def synthesize(*asked: Any) -> tuple[int, str, str]:
    """Exit code, what is said, and the error."""
    ran = CliRunner().invoke(app, ["synthesize", str(EXAMPLE), *map(str, asked)])
    if ran.exception is not None and not isinstance(ran.exception, SystemExit):
        raise ran.exception
    return ran.exit_code, ran.stdout, ran.stderr


@pytest.fixture
def three_luts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A Yosys that finds the same cells in every module; the scripts that it was given."""
    monkeypatch.setenv("HANDFAST_CACHE", str(tmp_path / "cache"))
    scripts: list[str] = []

    def yosys(script: str, *, folder: Path) -> str:
        scripts.append(script)
        modules = re.findall(r"^module (\\\S+)$", (folder / "circuit.il").read_text(), re.MULTILINE)
        found = {"modules": {name: {"num_cells_by_type": CELLS} for name in modules}}
        (folder / "cells.json").write_text(json.dumps(found))
        return ""

    monkeypatch.setattr(toolchain, "yosys", yosys)
    return scripts


def test_cells_are_shown_by_part_with_their_sum_and_are_kept(three_luts: list[str]) -> None:
    code, said, error = synthesize("--cores", 3, "--network", "tree")
    assert (0, "") == (code, error)
    assert "join of trade and quote on Virtex-6 (xc6v)" == said.splitlines()[0]
    rows = [[cell.strip() for cell in line.split("│")[1:-1]] for line in said.splitlines() if line.startswith("│")]
    assert ["part", "how many", "LUT", "FF"] == rows[0]
    found = {row[0]: row[1:] for row in rows[1:]}
    assert ["3", "9", "6"] == found["top.chain.core_*"]
    assert ["3", "9", "6"] == found["top.buffer_*"]
    parts = sum(int(row[0]) for name, row in found.items() if name != "all")
    assert [str(parts), str(3 * parts), str(2 * parts)] == found["all"]
    assert said == synthesize("--cores", 3, "--network", "tree")[1]
    assert 1 == len(three_luts)


def test_the_clock_has_its_seeds_and_its_spread(three_luts: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []

    def clock(component: Any, *, seeds: Any, progress: Any) -> Clock:
        asked.append(list(seeds))
        return Clock(dict(zip(seeds, (101.25, 99.0, 104.5), strict=False)))

    monkeypatch.setattr(tool, "clock", clock)
    assert "clock" not in synthesize()[1]
    assert "101.2 MHz, the median of 3 seeds, from 99.0 to 104.5" in synthesize("--clock")[1]
    assert "101.2 MHz with one seed" in synthesize("--clock", "--seeds", 1)[1]
    assert [[1, 2, 3], [1]] == asked


def test_verilog_is_written_whole_or_not_at_all(
    three_luts: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "out" / "circuit.v"
    target.parent.mkdir()

    def failing(component: Any) -> str:
        raise EngineError("Yosys failed")

    monkeypatch.setattr(verilog, "export", failing)
    assert (1, "", "handfast: Yosys failed\n") == synthesize("--verilog", target)
    assert [] == list(target.parent.iterdir())
    monkeypatch.setattr(verilog, "export", lambda component: "module top; endmodule\n")
    code, said, _ = synthesize("--verilog", target)
    assert 0 == code
    assert f"Verilog: {target}" == said.splitlines()[-1]
    assert "module top; endmodule\n" == target.read_text()
    assert [target] == list(target.parent.iterdir())


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (("--family", "xc7"), "--family is one of xc6v, ecp5, not 'xc7'"),
        (("--clock", "--seeds", "0"), "--seeds must be a positive number, not 0"),
        (("--verilog", "nowhere/at/all.v"), "--verilog nowhere/at/all.v cannot be written: No such file or directory"),
        (
            ("--segment", "1"),
            "The window of stream 'trade' holds up to 16 tuples, and with --segment 1 there is room for 4",
        ),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(asked: tuple[str, ...], said: str) -> None:
    code, output, error = synthesize(*asked)
    assert "" == output
    assert error.startswith(f"handfast: {said}")
    assert code == 2


@pytest.mark.slow
@pytest.mark.usefixtures("yosys")
def test_the_example_is_synthesised() -> None:
    code, said, _ = synthesize("--family", "ecp5")
    assert 0 == code
    assert "on ECP5 (ecp5)" in said
