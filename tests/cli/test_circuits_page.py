"""docs/circuits.md: its Python runs, its commands say what the page says, and its grid is one."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from handfast.cli import app
from handfast.cli.sweep.grid import parameters
from handfast.cli.sweep.kinds import CHAINS, RINGS, kind_of, read_grid
from handfast.cli.sweep.ring_grid import ring_parameters
from tests.pages import run_page, says

PAGE = Path(__file__).resolve().parents[2] / "docs" / "circuits.md"


def blocks(kind: str) -> list[str]:
    return re.findall(rf"^```{kind}\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


def test_circuits_runs_as_it_stands() -> None:
    run_page(PAGE)


@pytest.mark.parametrize("block", blocks("console"))
def test_every_command_says_what_the_page_says(block: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    command, _, expected = block.partition("\n")
    ran = CliRunner().invoke(app, command.removeprefix("$ handfast ").split())
    assert 0 == ran.exit_code, ran.output
    lines = "\n".join(line.rstrip() for line in ran.stdout.strip().splitlines())
    assert says(expected.strip(), lines), f"{command} prints\n{lines}"


def test_the_grids_on_the_page_are_grids(tmp_path: Path) -> None:
    chains, rings = blocks("toml")
    for text, kind, count in ((chains, CHAINS, 3 * 2 * 3 * 6 * 3 * 3), (rings, RINGS, 3 * 2 * 2 * 2)):
        (tmp_path / "grid.toml").write_text(text)
        grid = read_grid(tmp_path / "grid.toml", {})
        assert (kind, count) == (kind_of(grid), len(grid.configurations))


def test_the_page_names_every_parameter() -> None:
    chains, _, rings = PAGE.read_text(encoding="utf-8").partition("| of a ring | is |")
    for part, known in ((chains, parameters()), (rings, ring_parameters())):
        rows = [line for line in part.splitlines() if line.startswith("| `")]
        named = [name for row in rows for name in re.findall(r"`(\w+)`", row.split(" | ")[0])]
        assert sorted(known) == sorted(named)
