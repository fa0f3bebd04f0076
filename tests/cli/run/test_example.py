"""The example of a pipeline, on both engines."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from handfast.connectors.pipeline import Pipeline
from tests.cli.run.files import (
    cli,
)

if TYPE_CHECKING:
    pass

EXAMPLE = Path(__file__).parents[3] / "examples" / "pipeline"


def test_what_the_example_writes_is_not_to_be_committed() -> None:
    pipeline = Pipeline.read(EXAMPLE / "pipeline.toml")
    assert pipeline.sink.path is not None
    assert pipeline.checkpoint is not None
    ignored = (EXAMPLE / ".gitignore").read_text().splitlines()
    assert {f"/{Path(path).name}/" for path in (pipeline.sink.path, pipeline.checkpoint)} <= set(ignored)


@pytest.mark.spark
@pytest.mark.usefixtures("shared_session")
def test_engines_do_not_write_among_the_rows_of_each_other(tmp_path: Path) -> None:
    shutil.copytree(EXAMPLE, tmp_path, ignore=shutil.ignore_patterns("matches", "checkpoint"), dirs_exist_ok=True)
    file, out = tmp_path / "pipeline.toml", tmp_path / "matches"
    assert 0 == cli("run", file, "--engine", "local")[0]
    written = sorted(path.name for path in out.iterdir())
    for engine in ("spark", "local"):
        code, _, error = cli("run", file, "--engine", engine)
        assert (2, f"handfast: [sink] writes to {out}, and something is there already") == (code, error.split(";")[0])
    assert written == sorted(path.name for path in out.iterdir())
    shutil.rmtree(out)
    assert 0 == cli("run", file, "--engine", "spark")[0]
    code, _, error = cli("run", file, "--engine", "local")
    assert (2, f"handfast: [sink] writes to {out}, and something is there already") == (code, error.split(";")[0])
