"""What the tests of running pipelines share."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

Write = Callable[..., Path]

SOURCE = """
[sources.{name}]
format = "handfast"
options = {{ workload = "equality", matchRate = 0.02, stream = "{name}", rate = 100, rows = {rows}, \
rowsPerTrigger = 100, disorder = "1 second" }}
"""
JOIN = """
[join]
on = "r.key = s.key"
window = "2 seconds"
time = "ts"
lateness = "1 second"
"""


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Writes a pipeline of a generated workload, or of the parts that are given, and gives the file."""

    def pipeline(
        *top: str, sources: str | None = None, join: str = JOIN, sink: str = 'format = "none"', rows: int = 300
    ) -> Path:
        file = tmp_path / "pipeline.toml"
        own = sources if sources is not None else "".join(SOURCE.format(name=name, rows=rows) for name in "rs")
        file.write_text("\n".join([*top, own, join, "[sink]", sink]))
        return file

    return pipeline
