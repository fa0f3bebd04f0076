"""How fast does a scan try pairs, beside a tiled kernel in C with intrinsics, compiled on the spot for this CPU?

A block of new tuples meets a window, one core, by CellJoin's predicate and by four others, without NULLs and with 1%
in every column. For every instruction set that this machine has, `scan.c` is compiled in several ways (new tuples for
every vector that is loaded, vectors to a branch, tuples of a tile), and the fastest for the predicate is what ours is
held against. Both find the same pairs first; then they take turns in one process, and what is timed is CPU.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

import handfast as hf
from benchmarks.trigger import setting
from handfast.cli.bench.measure import Ratio
from handfast.core.planner import make_plan
from handfast.core.recipe import Recipe
from handfast.flow.batch import as_batch, schema_of
from handfast.flow.block import Block
from handfast.flow.time import micros
from handfast.kernels.columns import Columns
from handfast.kernels.growing import GrowingColumns
from handfast.kernels.sizes import KernelSizes
from handfast.kernels.strings import StringTable
from handfast.kernels.target import Target, reachable
from handfast.plan import SCAN

SOURCE = Path(__file__).with_suffix(".c")
RESULT = Path(__file__).parent / "results" / "scan.json"
SEED = 16
NEW, WINDOW = 256, 1 << 19
KEYS = 100_000
NULLS = 0.01
FLAGS = {
    64: ["-mavx512f", "-mavx512bw", "-mavx512dq", "-mavx512vl", "-mprefer-vector-width=512"],
    32: ["-mavx2", "-mno-avx512f"],
}
NAMES = {64: "AVX-512", 32: "AVX2"}
WAYS = [(1, 2, 2048), (1, 4, 2048), (2, 2, 2048), (2, 4, 2048), (4, 2, 2048), (1, 4, 4096), (2, 2, 1024)]
COLUMNS = {"x": 1, "k": 2, "y": 4, "z": 8, "d": 16}  # with the bit that tells C of a NULL in it


@dataclass(frozen=True)
class Shape:
    """A predicate, the function in C that has it too, and which part of C's speed ours is to reach."""

    on: str
    function: str
    goal: float
    window: str = "s"


SHAPES = {
    "CellJoin's band, the window holds s": Shape(
        "r.x BETWEEN s.x - 10 AND s.x + 10 AND r.y BETWEEN s.y - 10 AND s.y + 10", "band", 0.95
    ),
    "CellJoin's band, the window holds r": Shape(
        "r.x BETWEEN s.x - 10 AND s.x + 10 AND r.y BETWEEN s.y - 10 AND s.y + 10", "band", 0.95, "r"
    ),
    "OR and NOT with arithmetic": Shape("(ABS(r.x - s.x) < 2 OR NOT (r.y < s.y * 2)) AND r.k = s.k", "logic", 0.85),
    "arithmetic in float64": Shape("ABS(r.d * 1.5 - s.d) < 0.05 AND r.x <> s.x", "doubles", 0.85),
    "equal strings and a comparison": Shape("r.k = s.k AND r.x < s.x", "words", 0.85),
    "distance": Shape("(r.y - s.y) * (r.y - s.y) + (r.z - s.z) * (r.z - s.z) < 100", "distance", 0.85),
}
GOAL_NULLS = 0.7

Pairs = tuple[NDArray[np.int64], NDArray[np.int64]]
Arrays = dict[str, NDArray[Any]]


def values(rows: int, seed: int) -> Arrays:
    """Columns as C reads them, each at the start of a line of the cache."""
    rng = np.random.default_rng(seed)
    made: Arrays = {
        "x": rng.integers(1, 10_001, rows).astype(np.int32),
        "k": rng.integers(0, KEYS, rows).astype(np.int32),
        "y": rng.uniform(1, 10_000, rows).astype(np.float32),
        "z": rng.uniform(1, 10_000, rows).astype(np.float32),
        "d": rng.uniform(1, 10_000, rows),
    }
    return {name: in_line(own) for name, own in made.items()}


def in_line(own: NDArray[Any]) -> NDArray[Any]:
    room = np.empty(own.nbytes + 64, np.uint8)
    start = -room.ctypes.data % 64
    placed = room[start : start + own.nbytes].view(own.dtype)
    placed[:] = own
    return placed


def unknown(rows: int, seed: int) -> NDArray[np.uint8]:
    """Which columns of each tuple are NULL, as bits."""
    rng = np.random.default_rng(seed)
    bits = np.zeros(rows, np.uint8)
    for bit in COLUMNS.values():
        bits |= np.where(rng.random(rows) < NULLS, np.uint8(bit), np.uint8(0))
    return bits


def table(own: Arrays, nulls: NDArray[np.uint8] | None) -> pa.Table:
    rows = len(own["x"])
    texts = pa.array([f"key {k}" for k in range(KEYS)])
    columns: dict[str, Any] = {"ts": pa.array(np.arange(rows)).cast(pa.timestamp("us"))}
    for name, bit in COLUMNS.items():
        mask = None if nulls is None else (nulls & bit) != 0
        column = pa.array(own[name], mask=mask)
        columns[name] = pa.DictionaryArray.from_arrays(column, texts) if name == "k" else column
    return pa.table(columns)


# -- ours -------------------------------------------------------------------------------------------------------------


def ours(shape: Shape, tables: dict[str, pa.Table], sizes: KernelSizes) -> Callable[[], Pairs]:
    """The scan of the local engine, its columns read and its kernels compiled."""
    spec = hf.JoinSpec(["r", "s"], shape.on, window="1 hour", time="ts")
    join = spec.bind({name: schema_of(own.schema) for name, own in tables.items()})
    recipe = Recipe(make_plan(join, 1, local_join=SCAN), sizes)
    kernels, reader = recipe.pairing(0, 1).kernels, recipe.reader(StringTable())
    literals = reader.literals(kernels.literals)

    def stored(stream: int, own: pa.Table) -> Columns:
        """The tuples as a segment holds them: copied to its own arrays, and known to be in order."""
        batch = as_batch(own)
        columns = GrowingColumns()
        columns.append(reader.read(stream, Block(batch, micros(batch.column("ts")), np.zeros(len(batch), np.uint8))))
        return columns.all()

    r, s = stored(0, tables["r"]), stored(1, tables["s"])

    def run() -> Pairs:
        found = list(kernels.scan(r, s, literals, (0, 0)))
        r_at, s_at = (np.concatenate([np.empty(0, np.int64), *(pair[k] for pair in found)]) for k in (0, 1))
        return r_at, s_at

    return run


# -- C ----------------------------------------------------------------------------------------------------------------


def compiled(target: Target, folder: Path) -> list[ctypes.CDLL]:
    """The yardstick for a CPU, in every way."""
    libraries = []
    for block, group, tile in WAYS:
        file = folder / f"{target.width}_{block}_{group}_{tile}.so"
        ways = [f"-DBLOCK={block}", f"-DGROUP={group}", f"-DTILE={tile}"]
        command = ["gcc", "-O3", "-march=native", *FLAGS[target.width], "-ffp-contract=off", *ways]
        subprocess.run([*command, "-shared", "-fPIC", "-o", str(file), str(SOURCE)], check=True)
        libraries.append(ctypes.CDLL(str(file)))
    return libraries


class Yardstick:
    """One function in C, with a window and new tuples to try it on."""

    def __init__(self, shape: Shape, new: Arrays, window: Arrays, nulls: list[NDArray[np.uint8]] | None) -> None:
        self._shape = shape
        self._arrays = new, window, nulls  # held as long as C reads them
        self._tuples = [
            (ctypes.c_void_p * 6)(*(own[name].ctypes.data for name in COLUMNS), nulls[k].ctypes.data if nulls else None)
            for k, own in enumerate((new, window))
        ]
        self._out = np.empty(1 << 20, np.int32), np.empty(1 << 20, np.int32)

    def run(self, library: ctypes.CDLL) -> Pairs:
        function = getattr(library, self._shape.function)
        function.restype = ctypes.c_int64
        function.argtypes = [ctypes.c_void_p] * 2 + [ctypes.c_int64] * 2 + [ctypes.c_void_p] * 2
        found = function(*self._tuples, NEW, WINDOW, *(out.ctypes.data for out in self._out))
        new, old = (out[:found].astype(np.int64) for out in self._out)
        return (new, old) if self._shape.window == "s" else (old, new)


def seconds_of(run: Callable[[], object]) -> float:
    start = time.thread_time()
    run()
    return time.thread_time() - start


def measured(shape: Shape, target: Target, libraries: list[ctypes.CDLL], nulls: bool, turns: int) -> dict[str, Any]:
    """Both kernels by turns, and how many pairs they try in a second."""
    rows = {"s": WINDOW, "r": NEW} if shape.window == "s" else {"s": NEW, "r": WINDOW}
    arrays = {name: values(rows[name], SEED + k) for k, name in enumerate("rs")}
    bits = {name: unknown(rows[name], SEED + 9 + k) if nulls else None for k, name in enumerate("rs")}
    tables = {name: table(own, bits[name]) for name, own in arrays.items()}
    new, window = ("r", "s") if shape.window == "s" else ("s", "r")
    known = [own for own in (bits[new], bits[window]) if own is not None]
    yardstick = Yardstick(shape, arrays[new], arrays[window], known or None)
    run = ours(shape, tables, KernelSizes.of(target))
    mine = run()
    for library in libraries:
        theirs = yardstick.run(library)
        assert in_order(mine) == in_order(theirs), f"{shape.on}: {len(mine[0])} pairs and {len(theirs[0])}"
    best = min(libraries, key=lambda own: min(seconds_of(lambda: yardstick.run(own)) for _ in range(5)))
    spent = []
    for turn in range(turns):
        both: dict[bool, float] = {}
        for is_ours in (True, False) if turn % 2 else (False, True):
            both[is_ours] = seconds_of(run if is_ours else lambda: yardstick.run(best))
        spent.append((both[False], both[True]))
    ratio = Ratio.of(*zip(*spent, strict=True))
    medians = (statistics.median(own) for own in zip(*spent, strict=True))
    speeds = {who: NEW * WINDOW / own / 1e9 for who, own in zip(("C", "ours"), medians, strict=True)}
    way = dict(zip(("block", "group", "tile"), WAYS[libraries.index(best)], strict=True))
    return asdict(ratio) | {"pairs": len(mine[0]), "G pairs/s": speeds, "C compiled with": way}


def in_order(pairs: Pairs) -> list[tuple[int, int]]:
    return sorted(zip(*(own.tolist() for own in pairs), strict=True))


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--turns", type=int, default=41)
    parser.add_argument("--save", type=Path, nargs="?", const=RESULT, help=f"write {RESULT.name}, or another file")
    parser.add_argument("--widest", action="store_true", help="only the widest instructions that this CPU has")
    asked = parser.parse_args()
    targets = [target for target in reachable() if target.width in FLAGS]
    if not targets:
        sys.exit("The yardstick in C needs AVX2 or AVX-512, which this CPU has not; run it on one that has")
    targets = targets[:1] if asked.widest else targets
    figures: dict[str, Any] = {}
    met = True
    for target, nulls in product(targets, (False, True)):
        with tempfile.TemporaryDirectory() as folder:
            libraries = compiled(target, Path(folder))
            for name, shape in SHAPES.items():
                own = measured(shape, target, libraries, nulls, asked.turns)
                own["goal"] = GOAL_NULLS if nulls else shape.goal
                title = f"{NAMES[target.width]}, {name}{', 1% NULLs' * nulls}"
                figures[title] = own
                speeds = " and ".join(f"{who} {speed:.2f}" for who, speed in own["G pairs/s"].items())
                print(
                    f"{title}: {own['median']:.2f} ({own['low']:.2f}–{own['high']:.2f}) of C, goal {own['goal']}; "
                    f"{speeds} G pairs/s, {own['pairs']} matches",
                    flush=True,
                )
                if target is targets[0]:
                    met = met and own["median"] >= own["goal"]
    result = {
        "question": (__doc__ or "").splitlines()[0],
        "seed": SEED,
        "turns": asked.turns,
        "new tuples": NEW,
        "window": WINDOW,
        **setting(),
        "features": targets[0].features,
        "figures": figures,
    }
    if asked.save:
        asked.save.write_text(json.dumps(result, indent=1, ensure_ascii=False) + "\n")
    sys.exit(0 if met else 1)


if __name__ == "__main__":
    main()
