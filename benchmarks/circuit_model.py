"""How many cycles of the 64-core circuit does the fast model do in a CPU second?

The circuit of the thesis' evaluations, 64 cores with 8 tuples of each stream, at several match rates: at 100% each of
512 tuples matches every tuple of the other stream. The results are checked first, pair by pair, then every network
takes its turns. What is timed is the whole run, from the places of tuples that match to the results with their cycles.
"""

from __future__ import annotations

import argparse
import json
import statistics
from pathlib import Path
from time import process_time

import numpy as np

from handfast.cli.bench.scaling import setting
from handfast.engines.hardware.model.circuit import ModelRun, run
from handfast.engines.hardware.options import ADAPTIVE, PIPELINED, TREE
from handfast.engines.hardware.shape import CircuitShape
from handfast.engines.hardware.workload import StreamPair

RESULT = Path(__file__).parent / "results" / "circuit_model.json"
CORES, SEGMENT = 64, 8
GOAL = 2e6  # cycles in a CPU second
CIRCUITS = {
    "adaptive": CircuitShape(cores=CORES, sizes=(SEGMENT, SEGMENT), network=ADAPTIVE, network_buffer=16),
    "tree": CircuitShape(cores=CORES, sizes=(SEGMENT, SEGMENT), network=TREE),
    "tree, round robin": CircuitShape(cores=CORES, sizes=(SEGMENT, SEGMENT), network=TREE, merger="round_robin"),
    "pipelined": CircuitShape(cores=CORES, sizes=(SEGMENT, SEGMENT), network=PIPELINED),
}
RATES = (1.0, 0.5, 0.1)


def modelled(shape: CircuitShape, streams: StreamPair) -> ModelRun:
    return run(shape, streams.steps(shape.flush), streams.pairs())


def check(found: ModelRun, streams: StreamPair) -> None:
    """Every pair of tuples that match came out, once."""
    r_keys, s_keys = streams.keys()
    r, s = np.flatnonzero(r_keys == 0), np.flatnonzero(s_keys == 0)
    expected = (r[:, None] * streams.tuples + s[None, :]).reshape(-1)
    assert np.array_equal(np.sort(found.r * streams.tuples + found.s), np.sort(expected)), "results differ"
    assert (np.diff(found.cycles) > 0).all(), "more than one result in a cycle"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--save", action="store_true", help=f"write {RESULT.name}")
    asked = parser.parse_args()
    inputs = {rate: StreamPair(CORES * SEGMENT, rate) for rate in RATES}
    cases = [(name, rate) for name in CIRCUITS for rate in RATES]
    cycles = {}
    for name, rate in cases:
        found = modelled(CIRCUITS[name], inputs[rate])
        check(found, inputs[rate])
        cycles[name, rate] = found.idle
    print(f"{len(cases)} circuits and inputs checked: {sum(cycles.values()):,} cycles")
    speeds: dict[tuple[str, float], list[float]] = {case: [] for case in cases}
    for _ in range(asked.turns):
        for name, rate in cases:
            start = process_time()
            modelled(CIRCUITS[name], inputs[rate])
            speeds[name, rate].append(cycles[name, rate] / (process_time() - start))
    for (name, rate), own in speeds.items():
        spread = f"{min(own) / 1e6:.1f} to {max(own) / 1e6:.1f}"
        print(f"{name}, {rate:.0%} match: {statistics.median(own) / 1e6:.1f} M cycles/s ({spread})")
    slowest = min(statistics.median(own) for (_, rate), own in speeds.items() if rate == 1)
    print(f"at 100% match at least {slowest / 1e6:.1f} M cycles in a CPU second, of {GOAL / 1e6:.0f} M to be reached")
    if asked.save:
        result = [
            {"network": name, "match rate": rate, "cycles": cycles[name, rate], "cycles/s": own}
            for (name, rate), own in speeds.items()
        ]
        RESULT.write_text(json.dumps({"setting": setting() | {"turns": asked.turns}, "runs": result}, indent=1) + "\n")


if __name__ == "__main__":
    main()
