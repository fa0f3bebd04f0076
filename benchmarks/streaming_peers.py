"""How much CPU does the same join take in other stream engines that Python programs use?

Each engine's program (`benchmarks/peers`) reads the same two files and runs in an environment of its own, by turns, on
one core's worth of parallelism. What counts is the CPU of all its processes, reading and writing included, less that of
the same program on a hundred tuples: starting an engine is not counted. All must find the matches that numpy finds.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.peers.job import LENGTH, WIDTH
from benchmarks.trigger import setting
from handfast.cli.bench.measure import Ratio

HOME = Path(__file__).parent
RESULT = HOME / "results" / "streaming_peers.json"
SEED, RATE, FEW, GOAL = 9, 1_000, 100, 25.0
OURS = "handfast"

Rows = NDArray[np.int64]


@dataclass(frozen=True)
class Peer:
    """An engine, its package, and the tuples of each stream that it is given in each form of the join."""

    name: str
    package: str
    rows: dict[str, int]

    @property
    def program(self) -> Path:
        return HOME / "peers" / f"{self.name.lower()}_join.py"

    @property
    def home(self) -> Path:
        """The environment that has it: `make peers` installs it there."""
        return HOME.parent / ".venv-peers" / self.package

    @property
    def python(self) -> str:
        return sys.executable if self.name == OURS else str(self.home / "bin" / "python")

    @property
    def there(self) -> bool:
        return Path(self.python).exists()


# A form that tries every pair is quadratic, so it gets few tuples.
PEERS = [
    Peer("Pathway", "pathway", {"equality": 300_000, "band": 2_000, "buckets": 100_000}),
    Peer("Bytewax", "bytewax", {"equality": 300_000, "band": 10_000, "buckets": 100_000}),
    Peer("Flink", "apache-flink", {"equality": 300_000, "band": 10_000, "buckets": 100_000}),
]
SELF = Peer(OURS, OURS, {})


def tuples(stream: str, count: int) -> Rows:
    """So many tuples of a stream: number, time, key, two coordinates. A tuple has a match or half a one."""
    rng = np.random.default_rng([SEED, ord(stream)])
    numbers = np.arange(count)
    key = rng.integers(0, 2 * RATE * LENGTH // 1_000_000, count)
    return np.column_stack([numbers, numbers * 1_000_000 // RATE, key, *rng.integers(1, 10_001, (2, count))])


def matches(r: Rows, s: Rows, form: str) -> Rows:
    """The pairs of numbers that match, by sorting: nothing of any engine."""
    columns = (2, 2) if form == "equality" else (3, 3)
    width = 0 if form == "equality" else WIDTH
    order = np.argsort(s[:, columns[1]], kind="stable")
    values = s[order, columns[1]]
    first = np.searchsorted(values, r[:, columns[0]] - width, "left")
    count = np.searchsorted(values, r[:, columns[0]] + width, "right") - first
    at = np.repeat(np.arange(len(r)), count)
    near = order[np.arange(len(at)) - np.repeat(np.cumsum(count) - count, count) + np.repeat(first, count)]
    good = np.abs(r[at, 1] - s[near, 1]) < LENGTH
    if form != "equality":
        good &= np.abs(r[at, 4] - s[near, 4]) <= WIDTH
    found = np.column_stack([r[at[good], 0], s[near[good], 0]])
    return found[np.lexsort((found[:, 1], found[:, 0]))]


def spent(peer: Peer, form: str, count: int) -> float:
    """CPU seconds of a peer's program on so many tuples of each stream, its matches compared with numpy's."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        streams = {stream: tuples(stream, count) for stream in "rs"}
        for stream, own in streams.items():
            np.savetxt(folder / f"{stream}.csv", own, fmt="%d", delimiter=",")
        environment = os.environ | {"PYTHONPATH": str(HOME.parent), "PATHWAY_THREADS": "1", "OMP_NUM_THREADS": "1"}
        command = [peer.python, str(peer.program), str(folder), form]
        done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
        if done.returncode:
            raise SystemExit(f"{peer.name}, {form}: exit {done.returncode}\n{(done.stdout + done.stderr)[-3000:]}")
        found, expected = np.load(folder / "matches.npy"), matches(streams["r"], streams["s"], form)
        assert np.array_equal(found, expected), (
            f"{peer.name}, {form}: {len(found)} matches, numpy finds {len(expected)}"
        )
        return float(json.loads((folder / "cpu.json").read_text()))


def compare(peer: Peer, form: str, turns: int) -> dict[str, Any]:
    """The CPU of a peer over that of handfast, in the same turns, starting not counted."""
    count = peer.rows[form]
    taken: dict[str, list[float]] = {peer.name: [], OURS: []}
    for _ in range(turns):
        for own in (peer, SELF):
            taken[own.name].append(max(spent(own, form, count) - spent(own, form, FEW), 0.01))
    ratio = Ratio.of(taken[peer.name], taken[OURS])
    seconds = {name: statistics.median(own) for name, own in taken.items()}
    print(
        f"{peer.name}, {form}, {count:,} tuples of each stream: {ratio} × handfast's CPU; seconds {seconds}", flush=True
    )
    return {"peer": peer.name, "form": form, "rows": count, "CPU s": seconds} | asdict(ratio)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--only", default="", help="one peer's name")
    parser.add_argument("--save", type=Path, nargs="?", const=RESULT, help=f"write {RESULT.name}, or another file")
    asked = parser.parse_args()
    if shutil.which("java") is None:
        print("Flink needs Java, and there is none on the PATH", flush=True)
    missing = [peer.name for peer in PEERS if not peer.there]
    if missing:
        print(f"Not installed: {', '.join(missing)}; `make peers` installs them", flush=True)
    asked_for = [peer for peer in PEERS if peer.there and asked.only in peer.name]
    results = [compare(peer, form, asked.turns) for peer in asked_for for form in peer.rows]
    least = {
        peer.name: min(own["median"] for own in results if own["peer"] == peer.name and own["form"] == form)
        for peer in asked_for
        for form in ("equality", "buckets")
    }
    if asked.save:
        question = (__doc__ or "").splitlines()[0]
        result = {"question": question, "seed": SEED, "goal": GOAL, **setting(), "missing": missing, "runs": results}
        asked.save.write_text(json.dumps(result, indent=1, ensure_ascii=False) + "\n")
    sys.exit(0 if least and min(least.values()) >= GOAL else 1)


if __name__ == "__main__":
    main()
