"""How does low-latency forwarding compare with CellJoin's scheme, on the same kernels and cores?

CellJoin [HSJ §2.2, §3.6] has a coordinator that, for every few new tuples, divides the whole window anew among cores
and replicates the new tuples to all of them. Here the cores are threads, what is divided are Arrow blocks, and a core
reads its share each time as CellJoin's fetch theirs from memory. Matches are compared first, then both take turns.
"""

from __future__ import annotations

import argparse
import json
import statistics
from dataclasses import asdict
from pathlib import Path
from time import perf_counter

from handfast.cli.bench.measure import Ratio, Speed, in_turns, speed
from handfast.cli.bench.scaling import setting
from handfast.cli.bench.workload import Bench
from handfast.core.join_core import JoinCore
from handfast.core.planner import make_plan
from handfast.engines.local.options import LocalOptions
from handfast.engines.local.placement import pinned_threads
from handfast.flow.admission import split
from handfast.flow.batch import as_batch, schema_of
from handfast.flow.block import Block
from handfast.plan import SCAN, Plan

RESULT = Path(__file__).parent / "results" / "celljoin.json"
WINDOW = 500_000
BLOCK = 1024


def plan_of(bench: Bench) -> Plan:
    schemas = {name: bench.workload.schema(name) for name in ("r", "s")}
    bound = bench.spec.bind({name: schema_of(schema) for name, schema in schemas.items()})
    return make_plan(bound, 1, list(schemas.values()), SCAN)


def block_of(plan: Plan, stream: int, bench: Bench, start: int, count: int) -> Block:
    block, _ = split(plan.join, stream, as_batch(bench.rows("rs"[stream], start, count)))
    assert block is not None
    return block


class Coordinator:
    """Divides the window and replicates the new tuples, batch by batch."""

    def __init__(self, bench: Bench, cores: int) -> None:
        self._plan = plan_of(bench)
        self._cores = cores
        self._window = block_of(self._plan, 0, bench, 0, bench.window)
        self._threads = pinned_threads(cores)

    def join(self, new: Block) -> int:
        """The matches of new tuples of S with the window of R."""
        count = len(self._window)
        bounds = [count * k // self._cores for k in range(self._cores + 1)]
        shares = [self._window.slice(bounds[k], bounds[k + 1]) for k in range(self._cores)]
        return sum(self._threads.map(lambda share: self._joined(share, new), shares))

    def _joined(self, share: Block, new: Block) -> int:
        core = JoinCore(self._plan)
        list(core.join_and_store(0, share))
        return sum(batch.num_rows for batch in core.join_and_store(1, new))

    def close(self) -> None:
        self._threads.shutdown()


def celljoin(bench: Bench, cores: int, blocks: int) -> Speed:
    coordinator = Coordinator(bench, cores)
    new = [block_of(coordinator._plan, 1, bench, k * BLOCK, BLOCK) for k in range(blocks + 1)]
    coordinator.join(new[0])
    start = perf_counter()
    matches = sum(coordinator.join(block) for block in new[1:])
    seconds = perf_counter() - start
    coordinator.close()
    return Speed(seconds, BLOCK * blocks, bench.window * BLOCK * blocks, matches)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--blocks", type=int, default=8)
    parser.add_argument("--cores", type=int, default=2)
    parser.add_argument("--save", action="store_true", help=f"write {RESULT.name}")
    asked = parser.parse_args()
    bench = Bench(WINDOW)
    options = LocalOptions(cores=asked.cores, local_join=SCAN)
    runs = {
        "handfast": lambda: speed(bench, options, block=BLOCK, blocks=asked.blocks),
        "CellJoin's scheme": lambda: celljoin(bench, asked.cores, asked.blocks),
    }
    found = {name: run().matches for name, run in runs.items()}
    assert len(set(found.values())) == 1, f"They do not find the same: {found}"
    print(f"{asked.blocks} blocks of {BLOCK} bring both {found['handfast']} matches")
    turns = in_turns(runs, asked.turns)
    pairs = {name: [own.pairs_per_second for own in speeds] for name, speeds in turns.items()}
    ratio = Ratio.of(pairs["handfast"], pairs["CellJoin's scheme"])
    for name, own in pairs.items():
        print(f"{name}: {statistics.median(own) / 1e9:.2f} G pairs/s on {asked.cores} cores")
    print(f"handfast over CellJoin's scheme: {ratio}")
    if asked.save:
        run = {"turns": asked.turns, "blocks": asked.blocks, "cores": asked.cores, "window": WINDOW, "block": BLOCK}
        result = {"setting": setting() | run}
        RESULT.write_text(json.dumps(result | {"pairs/s": pairs, "ratio": asdict(ratio)}, indent=1) + "\n")


if __name__ == "__main__":
    main()
