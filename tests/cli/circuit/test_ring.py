"""`handfast simulate` and `synthesize` take joins of three streams: a ring of stages, or a line with a stash."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from handfast.cli import app
from handfast.engines.hardware import synthesize, verilator

EXAMPLE = Path(__file__).resolve().parents[3] / "examples" / "circuit"
ON = "trade.symbol = quote.symbol AND quote.symbol = again.symbol AND ABS(trade.price - quote.price) <= 0.1"


@pytest.fixture
def pipeline(tmp_path: Path) -> Path:
    """Trades, quotes, and the trades again."""
    text = (EXAMPLE / "pipeline.toml").read_text()
    trades = text[text.index("[sources.trade]") : text.index("[sources.quote]")]
    text = text.replace("[join]", trades.replace("sources.trade", "sources.again") + "[join]")
    text = re.sub('on = ".*"', f'on = "{ON}"', text).replace("16 rows", "6 rows")
    for name in ("trades", "quotes"):
        rows = (EXAMPLE / f"{name}.csv").read_text().splitlines()
        (tmp_path / f"{name}.csv").write_text("\n".join(rows[:31]) + "\n")
    (tmp_path / "pipeline.toml").write_text(text)
    return tmp_path / "pipeline.toml"


def simulate(pipeline: Path, *asked: str) -> tuple[dict[str, str], str]:
    """What is said by name, and the last line."""
    ran = CliRunner().invoke(app, ["simulate", str(pipeline), "--simulator", "amaranth", *asked])
    assert (0, "") == (ran.exit_code, ran.stderr), ran.stdout
    lines = ran.stdout.splitlines()
    assert "join of trade, quote and again in hardware" == lines[0]
    parts = (line.strip().partition("  ") for line in lines[1:-1])
    return {name: what.strip() for name, _, what in parts}, lines[-1]


def test_a_ring_is_simulated(pipeline: Path) -> None:
    shown, verdict = simulate(pipeline, "--in-flight", "6")
    assert "a ring of 3 stages, and 6 of trade, 6 of quote, 6 of again in RAM" == shown["circuit"]
    assert int(shown["matches"]) > 20
    assert f"✔ the local engine finds the same {shown['matches']} matches" == verdict
    assert re.fullmatch(r"\d+% of all cycles of all stages", shown["stood still"])
    assert shown["network"].endswith("of 8 results in the fullest of 3 buffers")


def test_a_line_with_a_stash_is_simulated(pipeline: Path) -> None:
    shown, verdict = simulate(pipeline, "--in-flight", "6", "--algorithm", "stashed", "--stash-size", "4")
    assert "a line of 2 stages with a stash, and 6 of trade, 6 of quote, 6 of again in RAM" == shown["circuit"]
    assert f"✔ the local engine finds the same {shown['matches']} matches" == verdict


def test_a_ring_that_drops_counts_what_it_drops(pipeline: Path) -> None:
    asked = ("--algorithm", "circular", "--admission", "drop", "--stage-buffer", "1", "--comparisons", "6")
    shown, verdict = simulate(pipeline, *asked)
    dropped = int(shown["dropped"].removesuffix(" intermediates"))
    assert dropped > 0
    assert verdict.endswith("these, and others of what was dropped")
    everything, _ = simulate(pipeline)
    assert int(shown["matches"]) < int(everything["matches"])


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        (("--cores", "4"), "--cores is for joins of two streams"),
        (("--memory", "registers"), "--memory registers is for the handshake"),
        (("--algorithm", "handshake"), "--algorithm handshake joins two streams, not 3"),
        (("--segment", "2"), "and with --segment 2 there is room for 2; it takes --segment 6"),
    ],
)
def test_what_is_not_for_a_ring_is_named_as_it_is_typed(pipeline: Path, asked: tuple[str, ...], message: str) -> None:
    ran = CliRunner().invoke(app, ["simulate", str(pipeline), *asked])
    assert (2, "") == (ran.exit_code, ran.stdout)
    assert message in ran.stderr and "HardwareOptions" not in ran.stderr


@pytest.mark.usefixtures("yosys")
def test_a_ring_is_exported(pipeline: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    area = synthesize.Area("xc6v", {"top": synthesize.Cells({"LUT6": 1})})
    monkeypatch.setattr(synthesize, "area", lambda component, **asked: area)
    target = tmp_path / "ring.v"
    ran = CliRunner().invoke(app, ["synthesize", str(pipeline), "--in-flight", "4", "--verilog", str(target)])
    assert (0, "") == (ran.exit_code, ran.stderr)
    assert r"module \top.stage_2 " in target.read_text()
    verilator.lint(target.read_text())
