"""The options of a circuit on the command line are those of HardwareOptions, whatever these are."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

import pytest
from typer.testing import CliRunner

from handfast.cli import app
from handfast.cli.circuit.options import circuit_options
from handfast.engines.hardware.options import HardwareOptions
from handfast.errors import SpecError

EXAMPLE = Path(__file__).resolve().parents[3] / "examples" / "circuit" / "pipeline.toml"
DEFAULTS = {field.name: field.default for field in fields(HardwareOptions)}


@pytest.mark.parametrize(("command", "without"), [("simulate", set()), ("synthesize", {"simulator"})])
def test_every_option_is_there_with_its_words(command: str, without: set[str]) -> None:
    said = CliRunner().invoke(app, [command, "--help"], env={"COLUMNS": "200"}).stdout
    for name in DEFAULTS:
        assert (name in without) == (f"--{name.replace('_', '-')} " not in said)
    assert "How many results fit into each buffer of the network." in said
    assert "[default: 8]" in said


def test_cores_are_the_pipelines_if_nothing_is_said_and_the_nested_loop_has_none() -> None:
    assert HardwareOptions(cores=7) == circuit_options(DEFAULTS, cores=7)
    assert HardwareOptions(cores=3) == circuit_options(DEFAULTS | {"cores": 3}, cores=7)
    loop = DEFAULTS | {"algorithm": "nested_loop"}
    assert HardwareOptions(algorithm="nested_loop") == circuit_options(loop, cores=7)


def test_an_error_names_the_option_as_it_is_written_here() -> None:
    with pytest.raises(SpecError, match=r"^--network-buffer must be more than its margin=3, not 2"):
        circuit_options(DEFAULTS | {"network_buffer": 2}, cores=1)
    with pytest.raises(SpecError, match=r"^--admission drop drops from the buffers behind the cores.* --network tree"):
        circuit_options(DEFAULTS | {"admission": "drop", "network": "adaptive"}, cores=1)
    ran = CliRunner().invoke(app, ["simulate", str(EXAMPLE), "--network", "star"])
    assert (2, "") == (ran.exit_code, ran.stdout)
    assert "handfast: --network is one of " in ran.stderr
