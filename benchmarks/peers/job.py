"""What a peer's program is given, and what it writes: two files of tuples, a file of matches, and the CPU it took.

A program runs in an environment that has its engine and perhaps nothing else, so this file imports numpy alone. Its
arguments are a folder and a form of the join; the folder has `r.csv` and `s.csv`, in the order of time.
"""

from __future__ import annotations

import json
import os
import resource
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

LENGTH = 60_000_000  # of both windows, in microseconds
WIDTH = 10  # of the band, to either side, in both columns
BUCKET = 2 * WIDTH  # a tuple's partners lie in at most two buckets by two
COLUMNS = {"r": ("number", "ts", "k", "x", "y"), "s": ("number", "ts", "k", "a", "b")}

Pair = tuple[int, int]


def buckets(a: int, b: int) -> list[int]:
    """Every bucket in which a partner of these coordinates can lie, both columns in one number."""
    columns = range((a - WIDTH) // BUCKET, (a + WIDTH) // BUCKET + 1)
    rows = range((b - WIDTH) // BUCKET, (b + WIDTH) // BUCKET + 1)
    return [bucket(x * BUCKET, y * BUCKET) for x in columns for y in rows]


def bucket(x: int, y: int) -> int:
    """The one bucket of these coordinates."""
    return x // BUCKET * 100_000 + y // BUCKET


def rows_of(folder: Path, stream: str) -> list[tuple[int, ...]]:
    """A stream's tuples, as Python's own numbers."""
    found = np.loadtxt(folder / f"{stream}.csv", dtype=np.int64, delimiter=",", ndmin=2)
    return [tuple(row) for row in found.tolist()]


def main(run: Callable[[Path, str], Iterable[Pair] | NDArray[np.int64]]) -> None:
    """Run a program: the join of a folder in a form, timed from when its engine has been imported."""
    folder, form = Path(sys.argv[1]), sys.argv[2]
    start = cpu_seconds()
    found = run(folder, form)
    spent = cpu_seconds() - start
    pairs = found if isinstance(found, np.ndarray) else np.array(list(found), dtype=np.int64).reshape(-1, 2)
    np.save(folder / "matches.npy", pairs[np.lexsort((pairs[:, 1], pairs[:, 0]))])
    (folder / "cpu.json").write_text(json.dumps(spent))


def cpu_seconds() -> float:
    """CPU of this process and of all that it started, those still running too (a JVM, workers)."""
    own = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    ticks = sum(_ticks(process) for process in _below())
    return ticks / os.sysconf("SC_CLK_TCK") + sum(each.ru_utime + each.ru_stime for each in own)


def _below() -> list[int]:
    """The processes that this one has started, and those that they have."""
    parents = {int(path.name): _stat(int(path.name)) for path in Path("/proc").iterdir() if path.name.isdigit()}
    family = [os.getpid()]
    for process in family:
        family += [child for child, stat in parents.items() if stat and int(stat[1]) == process]
    return family[1:]


def _ticks(process: int) -> int:
    stat = _stat(process)
    return int(stat[11]) + int(stat[12]) if stat else 0


def _stat(process: int) -> list[str]:
    """What the system says of a process behind its name; nothing if it has gone."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return []
