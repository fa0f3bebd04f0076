"""`handfast simulate`: what the circuit did, compared with the local engine; and what cannot be, in one line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from handfast import api
from handfast.cli import app
from handfast.engines.hardware import engine, toolchain

EXAMPLE = Path(__file__).resolve().parents[3] / "examples" / "circuit" / "pipeline.toml"
TEXT = Path(__file__).resolve().parents[3] / "examples" / "pipeline" / "pipeline.toml"


def simulate(*asked: Any) -> tuple[int, str, str]:
    """Exit code, what is said, and the error."""
    ran = CliRunner().invoke(app, ["simulate", *map(str, asked)])
    if ran.exception is not None and not isinstance(ran.exception, SystemExit):
        raise ran.exception
    return ran.exit_code, ran.stdout, ran.stderr


@pytest.mark.parametrize("simulator", ["amaranth", "model"])
def test_it_shows_what_the_circuit_did_and_that_it_is_right(simulator: str) -> None:
    code, said, error = simulate(EXAMPLE, "--simulator", simulator, "--network", "tree", "--cores", 2)
    assert (0, "") == (code, error)
    lines = said.splitlines()
    assert "join of trade and quote in hardware" == lines[0]
    shown = {name: what for name, _, what in (line.strip().partition("  ") for line in lines[1:-1])}
    assert "2 cores with 8 of trade and 8 of quote in registers; tree network" == shown["circuit"].strip()
    assert "60 of trade, 120 of quote" == shown["rows"].strip()
    assert "193" == shown["matches"].strip()
    finds = "the local engine finds the same 193 matches"
    # the model has its matches from the kernels, so that they are the same is no check of the circuit
    assert lines[-1].startswith(f"{finds}; it must" if simulator == "model" else f"✔ {finds}")
    cycles = int(shown["cycles"].partition(":")[0].replace(",", ""))
    assert f"{cycles / 180:.1f} for a tuple, {193 / cycles:.2f} results a cycle" in shown["cycles"]
    assert " of 8 results in the fullest of 2 buffers" in shown["core buffers"]
    assert " of 8 results in the fullest of 1 buffer" in shown["network"]


def test_a_waveform_is_written_whole(tmp_path: Path) -> None:
    code, said, _ = simulate(EXAMPLE, "--simulator", "amaranth", "--vcd", tmp_path / "run.vcd")
    assert 0 == code
    assert f"waveform   {tmp_path / 'run.vcd'}" in said
    assert [tmp_path / "run.vcd"] == list(tmp_path.iterdir())
    assert "$enddefinitions" in (tmp_path / "run.vcd").read_text()


def test_ctrl_c_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(self: Any, *, waveform: Path, progress: Any) -> Any:
        waveform.write_text("half of it")
        raise KeyboardInterrupt

    monkeypatch.setattr(engine.Job, "observed", interrupted)
    assert (130, "", "handfast: stopped\n") == simulate(EXAMPLE, "--vcd", tmp_path / "run.vcd")
    assert [] == list(tmp_path.iterdir())


def test_a_difference_is_shown_and_is_exit_code_1(monkeypatch: pytest.MonkeyPatch) -> None:
    join = api.join
    monkeypatch.setattr(api, "join", lambda *given, **asked: join(*given, **asked).slice(1))
    code, said, _ = simulate(EXAMPLE, "--simulator", "model")
    assert 1 == code
    assert "✘ the local engine finds something else" in said
    assert "extra" in said


def test_what_no_circuit_can_do_names_an_engine_that_can() -> None:
    code, said, error = simulate(TEXT)
    assert (2, "") == (code, said)
    assert error.startswith("handfast: Engine 'hardware' cannot compute 'trade.symbol': it is text (string)")
    assert error.endswith("use engine 'local' or 'spark'\n")


def test_a_stream_without_rows_is_named(tmp_path: Path) -> None:
    for name in ("trades", "quotes"):
        text = EXAMPLE.with_name(f"{name}.csv").read_text()
        (tmp_path / f"{name}.csv").write_text(text if name == "trades" else text.splitlines()[0] + "\n")
    (tmp_path / "pipeline.toml").write_text(EXAMPLE.read_text())
    code, _, error = simulate(tmp_path / "pipeline.toml")
    assert 2 == code
    assert error.startswith("handfast: Stream 'quote' has no rows, and a circuit is as large as the rows")


@pytest.mark.parametrize(("target", "why"), [("nowhere/run.vcd", "No such file or directory"), ("", "is a folder")])
def test_a_waveform_that_cannot_be_written_is_refused(target: str, why: str, tmp_path: Path) -> None:
    code, said, error = simulate(EXAMPLE, "--vcd", tmp_path / target)
    assert (2, "") == (code, said)
    assert error.startswith(f"handfast: --vcd {tmp_path / target}")
    assert why in error
    assert [] == list(tmp_path.iterdir())


def test_without_a_compiler_it_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CXX", raising=False)
    monkeypatch.setattr(toolchain, "yosys", lambda script, *, folder: (folder / "circuit.v").write_text("\n"))
    code, _, error = simulate(EXAMPLE, "--simulator", "verilator")
    assert 1 == code
    assert "Simulating a circuit takes a C++ compiler, and there is no g++ on the PATH" in error


@pytest.mark.parametrize("command", ["simulate", "synthesize"])
def test_without_the_extra_it_is_named(command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(toolchain.importlib.util, "find_spec", lambda module: None)
    ran = CliRunner().invoke(app, [command, str(EXAMPLE)])
    assert 1 == ran.exit_code
    assert "handfast: The tools for circuits need the 'hardware' extra (amaranth is missing): pip install" in ran.stderr
