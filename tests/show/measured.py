"""The claims that are measured by running handfast as its users do: a newcomer, the wheel, a trigger, benchmarks."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from benchmarks.page import MEMORY, SLOWEST
from tests.show.report import ROOT, Line, tail

_Done = subprocess.CompletedProcess[str]


def newcomer() -> list[Line]:
    """A fresh clone without `.venv`: set-up, then the demo, with nothing but `make`."""
    with tempfile.TemporaryDirectory() as folder:
        clone = Path(folder) / "handfast"
        return _one_by_one(
            {
                "newcomer: a fresh clone": _Step(["git", "clone", "-q", str(ROOT), str(clone)], ROOT),
                "newcomer: set-up in it": _Step(["make", "setup"], clone),
                "newcomer: make demo, verified by the oracle": _Step(["make", "demo"], clone, 180),
                "newcomer: README executed in that clone": _Step(
                    [".venv/bin/python", "-m", "pytest", "-q", "tests/test_readme.py"], clone
                ),
            }
        )


def wheel() -> list[Line]:
    """`make dist`, and its wheel alone, with the `spark` extra, in a fresh environment and an empty folder."""
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        python, empty = str(home / "venv" / "bin" / "python"), home / "empty"
        empty.mkdir()
        install = f'{python} -m pip install -q -c {ROOT}/requirements.lock "$(ls {home}/dist/*.whl)[spark]"'
        return _one_by_one(
            {
                "wheel: make dist": _Step(["make", "dist", f"DIST={home}/dist"], ROOT),
                "wheel: a fresh environment": _Step([sys.executable, "-m", "venv", str(home / "venv")], empty),
                "wheel: installed alone, with its spark extra": _Step(["sh", "-c", install], empty),
                "wheel: README runs in an empty folder": _Step(
                    [python, "-P", f"{ROOT}/tests/pages.py", f"{ROOT}/README.md"], empty
                ),
            }
        )


@dataclass(frozen=True)
class _Step:
    """A command, the folder it runs in, and the seconds it may take."""

    command: list[str]
    folder: Path
    limit: float = float("inf")


def _one_by_one(steps: dict[str, _Step]) -> list[Line]:
    """Run the steps as a user would who has set nothing, up to the first that fails: the others need it."""
    unset = ("VIRTUAL_ENV", "PYSPARK_PYTHON", "PYTHONPATH")
    environment = {name: value for name, value in os.environ.items() if name not in unset}
    lines: list[Line] = []
    for name, step in steps.items():
        start = time.monotonic()
        done = _run(step.command, step.folder, environment)
        lines.append(_timed(name, done, time.monotonic() - start, step.limit))
        if not lines[-1].passed:
            break
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
        done = _run([sys.executable, "-m", "benchmarks.windows", "--turns", "9", "--save", str(path)], ROOT)
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


def multiway() -> list[Line]:
    """What three streams cost in this process, against two joins of two; and how a ring of stages grows."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "multiway.json"
        done = _run([sys.executable, "-m", "benchmarks.multiway", "--save", str(path)], ROOT)
        if not path.exists():
            return [Line("benchmarks.multiway", f"exit {done.returncode}", "runs", False, _said(done))]
        goals = json.loads(path.read_text())["goals"]
    lines = []
    for name, own in goals.items():
        if name.startswith("automatic over best"):
            goal, passed = f"≤ {own['goal']}", own["median"] <= own["goal"]
        else:
            goal, passed = f"≥ {own['goal']}", own["median"] >= own["goal"]
        lines.append(Line(f"three streams, {name}, at {own['at']}", f"{own['median']:.2f}", goal, passed, _said(done)))
    return lines + _ring()


def _ring() -> list[Line]:
    with tempfile.TemporaryDirectory() as folder:
        command = [str(Path(sys.executable).parent / "handfast"), "bench", "multiway", "--out", folder]
        done = _run(command, Path(folder))
        if done.returncode:
            return [Line("handfast bench multiway", f"exit {done.returncode}", "runs", False, _said(done))]
        figures = json.loads((Path(folder) / "multiway.json").read_text())["figures"]
    lines = [_at_least("ring modelled, 8 stages over 3, of linear", figures["growth over linear"], 0.9)]
    for name, own in figures.items():
        if "over modelled" in name:
            close = 0.8 <= own["median"] <= 1.25
            lines.append(Line(f"ring, {name}", f"{own['median']:.2f}", "0.8 to 1.25", close))
    return lines


def stage_area() -> list[Line]:
    """How the cells of a ring, and of a line with a stash, grow with the streams; a synthesis is kept."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "stage_area.json"
        done = _run([sys.executable, "-m", "benchmarks.stage_area", "--save", str(path)], ROOT)
        if not path.exists():
            return [Line("benchmarks.stage_area", f"exit {done.returncode}", "runs", False, _said(done))]
        result = json.loads(path.read_text())
    lines = []
    for algorithm, own in result["area"].items():
        off = {kind: own["line"][kind]["deviation"] for kind in result["held_to_it"]}
        shown = ", ".join(f"{kind} {deviation:.1%}" for kind, deviation in off.items())
        name = f"{algorithm}, 3 to 8 streams: cells off a straight line"
        limit = result["limit"]
        lines.append(Line(name, shown, f"≤ {limit:.0%}", max(off.values()) <= limit, _said(done)))
    return lines


def scan() -> list[Line]:
    """What a scan does beside a kernel in C, compiled on the spot, with the widest instructions of this CPU."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "scan.json"
        done = _run([sys.executable, "-m", "benchmarks.scan", "--widest", "--save", str(path)], ROOT)
        if not path.exists():
            return [Line("benchmarks.scan", f"exit {done.returncode}", "runs", False, _said(done))]
        figures = json.loads(path.read_text())["figures"]
    return [_at_least(f"scan over C, {name}", own["median"], own["goal"]) for name, own in figures.items()]


def indexes() -> list[Line]:
    """How fast the indexes are over full windows, and against peers on bounded tables."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "indexes.json"
        done = _run([sys.executable, "-m", "benchmarks.indexes", "--save", str(path)], ROOT)
        if not path.exists():
            return [Line("benchmarks.indexes", f"exit {done.returncode}", "runs", False, _said(done))]
        result = json.loads(path.read_text())
    sliding, bounded = result["sliding"], result["bounded"]
    lines = [
        _at_least(f"{name}: tuples/s/stream", own["tuples/s/stream"], own["goal"])
        for name, own in sliding.items()
        if own["goal"] is not None
    ]
    for name, own in sliding.items():
        slowest, memory = own["slowest push over median"], own["resident over raw"]
        lines.append(Line(f"{name}: slowest push over median", f"{slowest:.2f}", f"≤ {SLOWEST}", slowest <= SLOWEST))
        lines.append(Line(f"{name}: resident over raw columns", f"{memory:.2f}", f"≤ {MEMORY}", memory <= MEMORY))
    for name, figure in result["beside"].items():
        lines.append(_at_least(f"{name}: tuples/s/stream", figure["ratio"], figure["goal"]))
    for own in bounded:
        name = f"bounded, {own['rows']:,} rows each, {own['on']}: CPU over {own['against']}"
        lines.append(Line(name, f"{own['median']:.2f}", f"≤ {own['goal']}", own["median"] <= own["goal"], _said(done)))
    return lines


def chain() -> list[Line]:
    """What a hop of the handshake chain costs, and what two cores do over one while both windows slide."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "chain.json"
        done = _run([sys.executable, "-m", "benchmarks.chain", "--short", "--save", str(path)], ROOT)
        if not path.exists():
            return [Line("benchmarks.chain", f"exit {done.returncode}", "runs", False, _said(done))]
        result = json.loads(path.read_text())
    hop, ratio = result["hops"]["hop"], result["sliding"]["2/1"]
    cost = f"{hop['median'] * 1e6:.1f} µs"
    name = "chain: a hop of 256 tuples with an empty neighbour"
    return [
        Line(name, cost, f"≤ {hop['goal'] * 1e6:.0f} µs", hop["median"] <= hop["goal"], _said(done)),
        _at_least("chain: 2 cores over 1, both windows slide, pairs/s", ratio["median"], ratio["goal"]),
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


def cores() -> list[Line]:
    """Two cores over one by the clock, in joins of tables and in sessions."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "cores.json"
        done = _run([sys.executable, "-m", "benchmarks.cores", "--save", str(path)], ROOT)
        if not path.exists():
            return [Line("benchmarks.cores", f"exit {done.returncode}", "runs", False, _said(done))]
        figures = json.loads(path.read_text())["figures"]
    return [_at_least(f"two cores over one, {name}", own["median"], own["goal"]) for name, own in figures.items()]


def pushes() -> list[Line]:
    """What a push of 256 tuples costs beside its kernels, and how soon matches are there."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "pushes.json"
        done = _run([sys.executable, "-m", "benchmarks.pushes", "--save", str(path)], ROOT)
        if not path.exists():
            return [Line("benchmarks.pushes", f"exit {done.returncode}", "runs", False, _said(done))]
        result = json.loads(path.read_text())
    lines = []
    for what, unit in (("push", "us of CPU for 256 tuples"), ("latency", "ms, p99 at half load")):
        for name, own in result[what].items():
            seen, goal = f"{own['median']:.2f}", f"≤ {own['goal']:g}"
            lines.append(Line(f"{name}: {unit}", seen, goal, own["median"] <= own["goal"], _said(done)))
    return lines


def spark_multiway() -> list[Line]:
    """Three streams on Spark, against two of Spark's own joins one behind the other."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "spark_multiway.json"
        done = _run([sys.executable, "-m", "benchmarks.spark_multiway", "--short", "--save", str(path)], ROOT)
        if not path.exists():
            return [Line("benchmarks.spark_multiway", f"exit {done.returncode}", "runs", False, _said(done))]
        result = json.loads(path.read_text())
    ratio = result["streaming"]["100,000 rows"]["times as fast as"]["native"]["median"]
    return [_at_least("3 streams on Spark, Spark's own two joins ÷ handfast, a trigger", ratio, result["goal"])]


def spark_streaming() -> list[Line]:
    """Triggers on Spark beside Spark's own joins: large, small, the first, the last of fifty windows."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "spark_streaming.json"
        done = _run([sys.executable, "-m", "benchmarks.spark_streaming", "--short", "--save", str(path)], ROOT)
        if not path.exists():
            return [Line("benchmarks.spark_streaming", f"exit {done.returncode}", "runs", False, _said(done))]
        goals = json.loads(path.read_text())["goals"]
    lines = []
    for name, own in goals.items():
        if own.get("least") is not None:
            lines.append(_at_least(f"Spark, {name}", own["median"], own["least"]))
        if own.get("most") is not None:
            passed = own["median"] <= own["most"]
            lines.append(Line(f"Spark, {name}", f"{own['median']:.2f}", f"≤ {own['most']}", passed, _said(done)))
    return lines


def spark_batch() -> list[Line]:
    """Bounded joins on Spark, against what Spark does by itself and with buckets."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "spark_batch.json"
        done = _run([sys.executable, "-m", "benchmarks.spark_batch", "--short", "--save", str(path)], ROOT)
        if not path.exists():
            return [Line("benchmarks.spark_batch", f"exit {done.returncode}", "runs", False, _said(done))]
        joins = json.loads(path.read_text())["joins"]
    return [
        _at_least(
            f"batch on Spark, {title}: {own['against']} ÷ handfast",
            own["times as fast as"][own["against"]]["median"],
            own["goal"],
        )
        for title, own in joins.items()
    ]


def _at_least(name: str, figure: float, goal: float) -> Line:
    return Line(name, f"{figure:.2f}", f"≥ {goal}", figure >= goal)


def _run(command: list[str], folder: Path, environment: dict[str, str] | None = None) -> _Done:
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


def _said(done: _Done) -> str:
    return tail(done.stdout + done.stderr)
