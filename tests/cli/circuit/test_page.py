"""The commands in docs/hardware.md say what the page says."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner

from handfast.cli import app
from tests.pages import says

ROOT = Path(__file__).resolve().parents[3]
PAGE = (ROOT / "docs" / "hardware.md").read_text(encoding="utf-8")
SIMULATE, SYNTHESIZE = re.findall(r"^```console\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)


def check(block: str) -> None:
    command, _, expected = block.partition("\n")
    ran = CliRunner().invoke(app, command.removeprefix("$ handfast ").split())
    assert 0 == ran.exit_code, ran.output
    assert says(expected.strip(), ran.stdout.strip()), f"{command} prints\n{ran.stdout}"


@pytest.fixture(autouse=True)
def example(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(shutil.copytree(ROOT / "examples" / "circuit", tmp_path / "example"))


def test_simulate_says_what_the_page_says() -> None:
    check(SIMULATE)


@pytest.mark.slow
@pytest.mark.usefixtures("yosys")
def test_synthesize_says_what_the_page_says() -> None:
    check(SYNTHESIZE)
