"""docs/hardware.md runs from top to bottom, and prints what the page says."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.pages import run_page


@pytest.mark.usefixtures("yosys")
def test_hardware_runs_as_it_stands() -> None:
    run_page(Path(__file__).resolve().parents[3] / "docs" / "hardware.md")
