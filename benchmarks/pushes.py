"""What does a small push cost beside its kernels, and how soon are its matches there at half load?

A session with one core and small windows takes pushes of 256 tuples that find next to nothing; what is timed is the CPU
of a push, which is Python's and that of kernels with little to do. It is told apart into the door (the batch is fitted,
copied, split and admitted), and the core, which joins and stores it. Then blocks come by the clock, half as many as the
cores can bear: how long a match waits from when its block was due. Matches are verified first.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import handfast as hf
from benchmarks.trigger import setting
from handfast.cli.bench.measure import Latency, checked, latency, quantile
from handfast.cli.bench.workload import Bench
from handfast.engines.local.session import Session
from handfast.plan import INDEX, SCAN

RESULT = Path(__file__).parent / "results" / "pushes.json"
SEED = 17
ROWS = 256  # tuples of a push
RATE = 256_000  # tuples of each stream in a second
KEYS = 1 << 40  # so many that two tuples hardly ever match
GOAL_PUSH, GOAL_LATENCY = 150, 3.0  # microseconds, milliseconds
WINDOW = 50_000  # tuples that a block meets where latency is measured


@dataclass(frozen=True)
class Join:
    """A join and how a core finds what matches."""

    on: str
    local_join: str = INDEX

    def session(self, window: str = "4 ms") -> Session:
        """One core; of each stream the window has four pushes."""
        spec = hf.JoinSpec(
            ("r", "s"), self.on, window=window, time="ts", lateness="0 seconds", select="r.id, s.id AS s"
        )
        schema = stream(0, 0, 1).schema
        return hf.session(spec, {"r": schema, "s": schema}, options=hf.LocalOptions(local_join=self.local_join))


JOINS = {
    "equality": Join("r.k = s.k"),
    "band": Join("r.k BETWEEN s.k - 1000 AND s.k + 1000"),
    "scan": Join("r.k BETWEEN s.k - 1000 AND s.k + 1000", SCAN),
}


def stream(number: int, start: int, count: int, keys: int = KEYS) -> pa.Table:
    """Tuples of a stream in their order."""
    rng = np.random.default_rng([SEED, number, start])
    times = pa.array(np.arange(start, start + count) * 1_000_000 // RATE)
    columns = {"id": np.arange(start, start + count), "k": rng.integers(0, keys, count), "v": rng.random(count)}
    return pa.table({"ts": times.cast(pa.timestamp("us", "UTC"))} | columns)


def check(join: Join) -> int:
    """The matches of a few pushes with few keys, as numpy counts them; how many they are."""
    session, pushes = join.session(), 12
    tables = [[stream(number, k * ROWS, ROWS, keys=1 << 16) for k in range(pushes)] for number in (0, 1)]
    found = 0
    for own in zip(*tables, strict=True):
        found += sum(
            batch.num_rows for name, table in zip("rs", own, strict=True) for batch in session.push(name, table)
        )
    found += sum(batch.num_rows for batch in session.close())
    r, s = (pa.concat_tables(own) for own in tables)
    times = [own["ts"].cast(pa.int64()).to_numpy() for own in (r, s)]
    keys = [own["k"].to_numpy() for own in (r, s)]
    near = np.abs(times[0][:, None] - times[1]) < 4_000
    apart = np.abs(keys[0][:, None] - keys[1])
    expected = int(np.count_nonzero(near & (apart <= (0 if " = " in join.on else 1000))))
    assert found == expected > 0, f"{join}: {found} matches, numpy counts {expected}"
    return found


# -- what a push costs ------------------------------------------------------------------------------------------------


def pushed(join: Join, pushes: int) -> dict[str, list[float]]:
    """Microseconds of CPU of each push: of all, and of that at the core."""
    session = join.session()
    cores, at_core = session.cores, 0
    feed = cores.feed

    def timed(*given: Any) -> Iterator[pa.RecordBatch]:
        nonlocal at_core
        start = time.thread_time_ns()
        found = list(feed(*given))
        at_core += time.thread_time_ns() - start
        return iter(found)

    cores.feed = timed  # type: ignore[method-assign]
    spent: dict[str, list[float]] = {"push": [], "core": [], "door": []}
    warm = pushes // 4
    for k in range(warm + pushes):
        for number, name in enumerate("rs"):
            table = stream(number, k * ROWS, ROWS)
            at_core, start = 0, time.thread_time_ns()
            session.push(name, table)
            whole = time.thread_time_ns() - start
            if k >= warm:
                spent["push"].append(whole / 1e3)
                spent["core"].append(at_core / 1e3)
                spent["door"].append((whole - at_core) / 1e3)
    session.close()
    return spent


def cost(name: str, join: Join, pushes: int) -> dict[str, Any]:
    """What a push costs, and which part of it where."""
    spent = pushed(join, pushes)
    low, median, high = (quantile(spent["push"], share) for share in (0.25, 0.5, 0.75))
    parts = {f"{part}, us": statistics.median(spent[part]) for part in ("door", "core")}
    print(f"{name}: {median:.0f} us a push ({low:.0f}–{high:.0f}), of these {parts}", flush=True)
    return {"median": median, "low": low, "high": high, "goal": GOAL_PUSH} | parts


# -- how soon matches are there ---------------------------------------------------------------------------------------


def waits(cores: int, turns: int, blocks: int) -> dict[str, Any]:
    """How long matches wait at half load, in milliseconds: the median turn's median and 99th percentile."""
    bench = Bench(WINDOW, domain=2_000)
    checked(Bench(2_000, domain=200), [hf.LocalOptions(cores=cores, local_join=SCAN)], block=ROWS)
    seen = [latency(bench, cores=cores, block=ROWS, blocks=blocks) for _ in range(turns)]
    tails = [1e3 * quantile(own.low_latency, 0.99) for own in seen]
    low, median, high = (quantile(tails, share) for share in (0.25, 0.5, 0.75))
    result = {"median": median, "low": low, "high": high, "goal": GOAL_LATENCY} | _about(seen)
    print(f"{cores} cores at half load: p99 {median:.2f} ms ({low:.2f}–{high:.2f}), {_about(seen)}", flush=True)
    return result


def _about(seen: list[Latency]) -> dict[str, float]:
    return {
        "p50, ms": 1e3 * statistics.median(quantile(own.low_latency, 0.5) for own in seen),
        "a block's scan, ms": 1e3 * statistics.median(own.scan for own in seen),
        "stolen": statistics.median(own.stolen for own in seen),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--pushes", type=int, default=2_000, help="of each stream")
    parser.add_argument("--turns", type=int, default=5, help="in which the latency is measured")
    parser.add_argument("--blocks", type=int, default=400, help="of each turn")
    parser.add_argument("--save", type=Path, nargs="?", const=RESULT, help=f"write {RESULT.name}, or another file")
    asked = parser.parse_args()
    for join in JOINS.values():
        check(join)
    costs = {name: cost(name, join, asked.pushes) for name, join in JOINS.items()}
    late = {f"{cores} core{'s' * (cores > 1)}": waits(cores, asked.turns, asked.blocks) for cores in (1, 2)}
    result = {"question": (__doc__ or "").splitlines()[0], "seed": SEED, **setting(), "push": costs, "latency": late}
    if asked.save:
        asked.save.write_text(json.dumps(result, indent=1, ensure_ascii=False) + "\n")
    met = all(own["median"] <= own["goal"] for own in (*costs.values(), *late.values()))
    sys.exit(0 if met else 1)


if __name__ == "__main__":
    main()
