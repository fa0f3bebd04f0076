"""What would be gained if busy cores did not hold up the others?

In lock step a step begins when the slowest core has finished the one before. Every core makes the same comparisons in
every step, whatever they find; a core is slower only if its results have to wait. So no way to balance the load, nor to
let cores run ahead, is faster than lock step in which no result ever waits: that is the bound, with buffers without
end. Beside it, what cores would gain that wait for nobody but their two neighbours, with buffers as they are.
"""

from __future__ import annotations

from typing import Any

from benchmarks.circuit import conclude, table
from benchmarks.lock_step import MARGIN, SEGMENT, Waits, run
from benchmarks.merging_networks import CORES, RATES, SHOWN, SLOTS
from handfast.engines.hardware.workload import PATTERNS, StreamPair
from tests.engines.hardware.plain_pipelined import pipelined_state, pipelined_step

ENDLESS = 1 << 14  # slots of a FIFO that is never full here
DEEP = 8 * SLOTS

HOW: dict[str, tuple[int, int, Waits]] = {
    "all suspended": (SLOTS, MARGIN, "all"),
    "each waits for its own buffer": (SLOTS, 0, "own"),
    "and for its neighbours only": (SLOTS, 0, "neighbours"),
    f"all suspended, {DEEP} slots": (DEEP, MARGIN, "all"),
    "no result ever waits": (ENDLESS, 0, "own"),
}


def measured(cores: int, pair: StreamPair) -> dict[str, Any]:
    """The cycles of one join in every way."""
    found = {}
    for name, (depth, margin, waits) in HOW.items():
        net = pipelined_state(n=cores, depth=depth, margin=margin)
        found[name] = run(pipelined_step, net, pair, cores=cores, waits=waits).cycles
    return {"cores": cores, "pattern": pair.pattern, "match_rate": pair.match_rate, "cycles": found}


def main() -> None:
    rows = [
        measured(n, StreamPair(n * SEGMENT, rate, pattern)) for n in CORES for pattern in PATTERNS for rate in RATES
    ]
    for n in CORES:
        lines = [
            [f"{row['match_rate']:.0%} {row['pattern']}", *row["cycles"].values()]
            for row in rows
            if row["cores"] == n and row["match_rate"] in SHOWN
        ]
        print(f"\n{n} cores, {SLOTS} slots for each\n\n{table(['match rate, pattern', *HOW], lines)}")
    today, *others = HOW
    saved = {name: [1 - row["cycles"][name] / row["cycles"][today] for row in rows] for name in others}
    own, elastic, deep, bound = saved.values()
    words = (
        f"Cores that wait for nobody but their neighbours would save {min(elastic):.2%} to {max(elastic):.2%} of the "
        f"cycles, cores that only wait for their own buffer {min(own):.2%} to {max(own):.2%}; buffers of {DEEP} slots "
        f"save up to {max(deep):.1%}, and without any end up to {max(bound):.1%}"
    )
    conclude("load_balancing", __doc__, words, {"slots_per_core": SLOTS, "segment": SEGMENT, "runs": rows})


if __name__ == "__main__":
    main()
