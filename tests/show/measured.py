"""The claims that are measured by running handfast as its users do: a newcomer, a trigger, `handfast bench scaling`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.show.report import ROOT, Line, tail

_Done = subprocess.CompletedProcess[str]


def newcomer() -> list[Line]:
    """A fresh clone without `.venv`: set-up, then the demo, with nothing but `make`."""
    with tempfile.TemporaryDirectory() as folder:
        clone = Path(folder) / "handfast"
        environment = {k: v for k, v in os.environ.items() if k not in ("VIRTUAL_ENV", "PYSPARK_PYTHON", "PYTHONPATH")}
        steps: dict[str, tuple[list[str], float]] = {
            "newcomer: a fresh clone": (["git", "clone", "-q", str(ROOT), str(clone)], float("inf")),
            "newcomer: set-up in it": (["make", "setup"], float("inf")),
            "newcomer: make demo, verified by the oracle": (["make", "demo"], 180),
            "newcomer: README executed in that clone": (
                [".venv/bin/python", "-m", "pytest", "-q", "tests/test_readme.py"],
                float("inf"),
            ),
        }
        lines: list[Line] = []
        for name, (command, limit) in steps.items():
            start = time.monotonic()
            done = _run(command, clone if clone.exists() else ROOT, environment)
            lines.append(_timed(name, done, time.monotonic() - start, limit))
            if not lines[-1].passed:
                break  # the other steps need this one
        return lines


def _timed(name: str, done: _Done, seconds: float, limit: float) -> Line:
    goal = "works" if limit == float("inf") else f"< {limit:.0f} s"
    figure = f"{seconds:.0f} s, exit {done.returncode}"
    return Line(name, figure, goal, done.returncode == 0 and seconds < limit, _said(done))


def trigger() -> list[Line]:
    """A warm trigger of a small batch."""
    result = ROOT / "benchmarks" / "results" / "trigger.json"
    before = result.read_text() if result.exists() else None
    done = _run([sys.executable, "-m", "benchmarks.trigger"], ROOT)
    queries = json.loads(result.read_text())["queries"] if done.returncode == 0 else {}
    ratios = {name: own["ratio"] for name, own in queries.items() if name.startswith("handfast")}
    if before is not None:
        result.write_text(before)  # the committed figures stay those of the committed run
    worst = max(ratios.values(), default=float("inf"))
    shown = ", ".join(f"{name} {ratio:.2f}" for name, ratio in ratios.items()) or "failed"
    return [Line("warm trigger of a small batch ÷ bare stateful operator", shown, "≤ 2", worst <= 2, _said(done))]


def windows() -> list[Line]:
    """What a join costs with few keys and short windows."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "windows.json"
        done = _run([sys.executable, "-m", "benchmarks.windows", "--turns", "3", "--save", str(path)], ROOT)
        if not path.exists():
            return [Line("benchmarks.windows", f"exit {done.returncode}", "runs", False, _said(done))]
        result = json.loads(path.read_text())
    figures = {
        "20 keys, windows of 100 ms: CPU over Polars with buckets": result["CPU over Polars"],
        "CPU of a match among 200 k rows over among 20 k, local": result["growth"]["local"],
        "the same on Spark batch": result["growth"]["Spark batch"],
        "a streaming batch of one hot key over one of many": result["one hot key over many"],
    }
    return [
        Line(name, f"{own['median']:.2f}", f"≤ {own['goal']}", own["median"] <= own["goal"], _said(done))
        for name, own in figures.items()
    ]


def scaling() -> list[Line]:
    """What the local engine does in a second, by cores."""
    with tempfile.TemporaryDirectory() as folder:
        command = [str(Path(sys.executable).parent / "handfast"), "bench", "scaling", "--out", folder]
        done = _run(command, Path(folder))
        if done.returncode:
            return [Line("handfast bench scaling", f"exit {done.returncode}", "runs", False, _said(done))]
        figures = json.loads((Path(folder) / "scaling.json").read_text())["figures"]
    balance = max(figures["balance low-latency"], figures["balance handshake"])
    slow, waits = figures["slow core"]["median"], figures["latency"]["median"]
    return [
        _at_least("scan, 2 cores over 1, pairs/s", figures["scan 2/1"]["median"], 1.8),
        _at_least("index, 2 cores over 1, matches/s", figures["index 2/1"]["median"], 1.7),
        Line("balance under bursts and skew, largest over mean segment", f"{balance:.2f}", "≤ 1.2", balance <= 1.2),
        _at_least("one core slowed ten times, of what is left", slow, 0.8),
        Line("latency at half load, p99 over a block's scan", f"{waits:.1f}", "≤ 3", waits <= 3),
    ]


def _at_least(name: str, figure: float, goal: float) -> Line:
    return Line(name, f"{figure:.2f}", f"≥ {goal}", figure >= goal)


def _run(command: list[str], folder: Path, environment: dict[str, str] | None = None) -> _Done:
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


def _said(done: _Done) -> str:
    return tail(done.stdout + done.stderr)
