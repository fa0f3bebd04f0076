"""Are two cores nearly twice as fast as one, in a join of tables and in a session with both streams sliding?

By the clock: each turn runs the same work with one core and with two, one after the other, and counts their ratio. A
scan, a band and an equality, each of whole tables and in a session whose windows are full. Matches are compared first.
Beside it stands the CPU that two cores take over that of one: above 1 is what sharing costs.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

import handfast as hf
from benchmarks.indexes import BAND_ON, SEED, Load
from benchmarks.trigger import setting
from handfast.cli.bench.measure import Ratio, stolen_seconds
from handfast.plan import INDEX, SCAN

RESULT = Path(__file__).parent / "results" / "cores.json"
GOAL = 1.7
CORES = (1, 2)


@dataclass(frozen=True)
class Work:
    """A join, how a core finds what matches, and how much of it is done at a time.

    Attributes:
        rows: Of each stream, in a join of tables.
        push: Of each stream, in a session.
    """

    load: Load
    local_join: str
    rows: int
    push: int

    def options(self, cores: int) -> hf.LocalOptions:
        return hf.LocalOptions(cores=cores, local_join=self.local_join)


WORKS = {
    "scan": Work(Load(BAND_ON, 1_000, 300), SCAN, 150_000, 1_000),
    "band": Work(Load(BAND_ON, 10_000, 60), INDEX, 2_000_000, 10_000),
    "equality": Work(Load("r.k = s.k", 1_000_000, 1), INDEX, 2_000_000, 100_000),
}


@dataclass(frozen=True)
class Spent:
    """What one run took, and the matches that it found."""

    wall: float
    cpu: float
    matches: int


def spent(run: Callable[[], int]) -> Spent:
    """What a run takes that returns how many matches it has found."""
    wall, cpu = time.perf_counter(), time.process_time()
    matches = run()
    return Spent(time.perf_counter() - wall, time.process_time() - cpu, matches)


# -- tables -----------------------------------------------------------------------------------------------------------


def bounded(work: Work, turns: int) -> Iterator[dict[int, Spent]]:
    """In every turn, the join of tables with one core and with two."""
    load = replace(work.load, rate=1_000_000, seconds=2) if work.local_join == INDEX else work.load
    tables = {name: load.table(name, 0, work.rows) for name in "rs"}

    def joined(cores: int) -> pa.Table:
        window = f"{load.seconds} seconds"
        return hf.join(tables, on=load.on, window=window, time="ts", select=load.select, options=work.options(cores))

    one, two = (checksum(joined(cores).to_batches()) for cores in CORES)
    assert one == two, f"Two cores find {two}, one finds {one}"
    for _ in range(turns):
        yield {cores: spent(lambda cores=cores: len(joined(cores))) for cores in CORES}


# -- a session --------------------------------------------------------------------------------------------------------


def sliding(work: Work, pushes: int) -> Iterator[dict[int, Spent]]:
    """In every turn, a push of each stream to sessions with one core and with two, over full windows."""
    load = work.load
    schemas = {name: load.table(name, 0, 1).schema for name in "rs"}
    sessions = {cores: hf.session(load.spec, schemas, options=work.options(cores)) for cores in CORES}
    for start in range(0, load.window, work.push):
        for name in "rs":
            table = load.table(name, start, work.push)
            found = [checksum(session.push(name, table)) for session in sessions.values()]
            assert found[0] == found[1], f"Two cores find {found[1]}, one finds {found[0]}"
    for k in range(pushes):
        tables = {name: load.table(name, load.window + k * work.push, work.push) for name in "rs"}

        def pushed(cores: int, tables: dict[str, pa.Table] = tables) -> int:
            return sum(batch.num_rows for name in "rs" for batch in sessions[cores].push(name, tables[name]))

        turn = {cores: spent(lambda cores=cores: pushed(cores)) for cores in CORES}
        assert len({own.matches for own in turn.values()}) == 1, "They do not find as many"
        yield turn
    for session in sessions.values():
        session.close()


def checksum(batches: list[pa.RecordBatch]) -> tuple[int, int]:
    """How many matches, and a number that is the same for the same matches in any order."""
    total = 0
    for batch in batches:
        mixed = pc.bit_wise_xor(pc.multiply(batch.column("r"), 1_000_003), batch.column("s"))
        total += int(pc.sum(pc.bit_wise_and(mixed, 0xFFFFFFFF)).as_py() or 0)
    return sum(batch.num_rows for batch in batches), total


# -- all --------------------------------------------------------------------------------------------------------------


def figure(name: str, turns: list[dict[int, Spent]]) -> dict[str, Any]:
    """What two cores are over one, from the turns of one work."""
    faster = Ratio.of([own[1].wall for own in turns], [own[2].wall for own in turns])
    dearer = Ratio.of([own[2].cpu for own in turns], [own[1].cpu for own in turns])
    seconds = {f"{cores} cores, s": statistics.median(own[cores].wall for own in turns) for cores in CORES}
    print(f"{name}: {faster} times as fast, {dearer} of the CPU; seconds {seconds}", flush=True)
    shown = {"CPU of two over one": asdict(dearer), "matches": sum(own[1].matches for own in turns)}
    return asdict(faster) | {"turns": len(turns), "goal": GOAL} | seconds | shown


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", default="", help="the figures whose names contain this text")
    parser.add_argument("--turns", type=int, default=7, help="of each join of tables")
    parser.add_argument("--pushes", type=int, default=30, help="of each stream in a session")
    parser.add_argument("--save", type=Path, nargs="?", const=RESULT, help=f"write {RESULT.name}, or another file")
    asked = parser.parse_args()
    start, stolen = time.perf_counter(), stolen_seconds()
    figures = {}
    for name, work in WORKS.items():
        for where, run, times in (("tables", bounded, asked.turns), ("session", sliding, asked.pushes)):
            if asked.only in f"{name}, {where}":
                figures[f"{name}, {where}"] = figure(f"{name}, {where}", list(run(work, times)))
    result = {
        "question": (__doc__ or "").splitlines()[0],
        "seed": SEED,
        **setting(),
        "CPU seconds that the host gave to others": stolen_seconds() - stolen,
        "figures": figures,
    }
    print(f"took {time.perf_counter() - start:.0f} s")
    if asked.save:
        asked.save.write_text(json.dumps(result, indent=1, ensure_ascii=False) + "\n")
    sys.exit(0 if all(own["median"] >= GOAL for own in figures.values()) else 1)


if __name__ == "__main__":
    main()
