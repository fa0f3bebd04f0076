"""A case as a pipeline file that `handfast run` runs, from Parquet files to Parquet files."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from typer.testing import CliRunner

import handfast as hf
from handfast.cli import app
from tests.agreement.runs import Result, write_steps
from tests.judges.rows import multiset, result_of
from tests.strategies import Case


def run_pipeline(case: Case, folder: Path, *, engine: str, mode: str) -> dict[str, Result]:
    """What `handfast run` writes, by folder: `matches`, and for a stream `late/…` and `rejected/…`."""
    write_steps(case, folder)
    file = folder / "pipeline.toml"
    file.write_text(_text(case, mode))
    ran = CliRunner().invoke(app, ["run", str(file), "--engine", engine])
    assert ran.exit_code == 0, f"{ran.output}{case}"
    refused = [f"{kind}/{name}" for kind in ("late", "rejected") for name in case.streams] if mode == "stream" else []
    return {place: _read(folder / place) for place in ("matches", *refused)}


def _text(case: Case, mode: str) -> str:
    """The file: every stream is a folder, read file by file."""
    lines = [f"mode = {_toml(mode)}", f"cores = {case.cores}"]
    if mode == "stream":
        lines += ['trigger = "available now"', 'checkpoint = "checkpoint"']
    for name in case.streams:
        lines += [f"[sources.{_toml(name)}]", 'format = "parquet"', f"path = {_toml(name)}", "files_per_trigger = 1"]
    asked = {**case.kwargs, "lateness": case.lateness}
    lines += ["[join]", *(f"{name} = {_toml(value)}" for name, value in asked.items() if value is not None)]
    places = {"sink": "matches"} | ({"late_rows": "late", "rejected_rows": "rejected"} if mode == "stream" else {})
    for table, place in places.items():
        lines += [f"[{table}]", 'format = "parquet"', f"path = {_toml(place)}"]
    return "\n".join(lines)


def _toml(value: Any) -> str:
    if isinstance(value, Mapping):
        return f"{{ {', '.join(f'{_toml(name)} = {_toml(own)}' for name, own in value.items() if own is not None)} }}"
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, timedelta):
        return _toml(f"{value // timedelta(microseconds=1)} microseconds")
    if isinstance(value, hf.CountWindow):
        return _toml(f"{value.rows} rows")
    return json.dumps(value, ensure_ascii=False)


def _read(place: Path) -> Result:
    found: Result = Counter()
    for path in sorted(place.rglob("*.parquet")):
        table = pq.ParquetFile(path).read()  # the batch's number is in the folder's name alone
        found += multiset(result_of(table))
    return found
