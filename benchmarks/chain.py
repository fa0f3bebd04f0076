"""What does a hop of the handshake chain cost, and which rate do one and two cores sustain while both windows slide?

The chain in machine code, CellJoin's band. First it has to find the oracle's matches, with messages of one tuple and of
256. Then: what the actions of a hop between cores with empty windows cost, beside the chain in Python, and how long a
message takes from a thread to another one that is awake; what chains of one and of two cores do in turns, with windows
that slide; and whether they keep up, by the clock, at 95% of that, with windows of 10 and of 15 minutes.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

from benchmarks.trigger import setting
from handfast.cli.bench import chain
from handfast.cli.bench.measure import Ratio, checked
from handfast.cli.bench.workload import Bench
from handfast.engines.local.options import HANDSHAKE, LocalOptions
from handfast.plan import SCAN

RESULT = Path(__file__).parent / "results" / "chain.json"
GOAL_HOP = 20e-6  # seconds
GOAL_CORES = 1.8
CORES = (1, 2)
MINUTES = (10, 15)
LOAD = 0.95  # of what was measured, while it is fed by the clock
MESSAGES = 4  # of both streams, that may wait more at the end than in the middle


def hops(turns: int, messages: int) -> dict[str, Any]:
    """What a hop costs: medians over the turns, in seconds."""
    native = [chain.hop(messages // 32) for _ in range(turns)]
    python = [chain.hop_in_python(messages) for _ in range(turns)]
    ways = [chain.latency(messages) for _ in range(turns)]
    single = [chain.hop(messages // 32, rows=1) for _ in range(turns)]
    copies = [chain.copy_seconds(messages) for _ in range(turns)]
    worst = [max(own.r, own.s) for own in native]
    r, s, slow, way = (
        1e6 * statistics.median(own) for own in ([own.r for own in native], [own.s for own in native], python, ways)
    )
    print(f"a hop of {chain.BLOCK} tuples: {r:.2f} µs of R, {s:.2f} µs of S, acknowledged; in Python {slow:.0f} µs")
    print(f"a hop of one tuple: {1e6 * statistics.median(own.r for own in single):.2f} µs of R")
    print(f"a message from a thread to one that is awake: {way:.2f} µs")
    print(f"to copy its columns as well would take {statistics.median(copies) * 1e6:.2f} µs")
    return {
        "actions": [asdict(own) for own in native],
        "of one tuple": [asdict(own) for own in single],
        "hop": {"median": statistics.median(worst), "least": min(worst), "most": max(worst), "goal": GOAL_HOP},
        "Python over machine code": asdict(Ratio.of(python, [own.r for own in native])),
        "thread to thread": ways,
        "to copy the columns": copies,
    }


def cores(turns: int, steps: int, window: int) -> tuple[dict[str, Any], float, float]:
    """Two cores over one, with the pairs a second of both."""
    done = chain.in_turns(chain.Band(window), CORES, turns=turns, steps=steps)
    one, two = ([own.pairs / own.seconds for own in done[count]] for count in CORES)
    ratio = Ratio.of(two, one)
    of_cpu = Ratio.of([own.pairs / own.busiest for own in done[2]], [own.pairs / own.busiest for own in done[1]])
    for count, pairs in zip(CORES, (one, two), strict=True):
        rate = statistics.median(own.rate(900) for own in done[count])
        print(
            f"{count} cores: {statistics.median(pairs) / 1e9:.2f} G pairs/s, {rate:,.0f} tuples/s/stream at 15 minutes"
        )
    print(f"two cores over one: {ratio}; by the CPU time of the busiest core {of_cpu}")
    found = {
        "window": window,
        "runs": {str(count): [asdict(own) for own in own] for count, own in done.items()},
        "2/1": asdict(ratio) | {"goal": GOAL_CORES},
        "2/1 by CPU time of the busiest core": asdict(of_cpu),
    }
    return found, statistics.median(one), statistics.median(two)


def by_the_clock(pairs: dict[int, float], seconds: float) -> dict[str, Any]:
    """Whether the chain keeps up, at a part of the rate that was measured."""
    found = {}
    for minutes in MINUTES:
        for count in CORES:
            rate = LOAD * (pairs[count] / (2 * 60 * minutes)) ** 0.5
            window = int(rate * 60 * minutes)
            behind = list(chain.keeps_up(chain.Band(window), count, rate, seconds))
            quarter = len(behind) // 4
            middle, end = statistics.mean(behind[quarter : 2 * quarter]), statistics.mean(behind[-quarter:])
            kept = end <= middle + 2 * MESSAGES * chain.BLOCK
            name = f"{minutes} minutes, {count} core{'s' * (count > 1)}"
            print(f"{name}: {rate:,.0f} tuples/s/stream, {'keeps up' if kept else 'falls behind'}; ", end="")
            print(f"{middle:,.0f} tuples wait, {end:,.0f} at the end")
            waiting = [middle, end, max(behind)]
            found[name] = {"rate": rate, "window": window, "kept up": kept, "behind": waiting}
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--turns", type=int, default=7)
    parser.add_argument("--short", action="store_true", help="small windows, and nothing by the clock")
    parser.add_argument("--save", type=Path, nargs="?", const=RESULT, help=f"write {RESULT.name}, or another file")
    asked = parser.parse_args()
    start = time.monotonic()
    every = [
        LocalOptions(cores=count, forwarding=HANDSHAKE, local_join=SCAN, chain_block=rows)
        for count in CORES
        for rows in (1, chain.BLOCK)
    ]
    matches = checked(Bench(1_000, domain=1_000), every, block=500)
    print(f"chains of 1 and 2 cores, messages of 1 and {chain.BLOCK} tuples: the oracle's {matches} matches")
    result: dict[str, Any] = {
        "question": (__doc__ or "").splitlines()[0], "seed": chain.Band(1).seed, "turns": asked.turns, **setting(),
        "hops": hops(asked.turns, 640),
    }  # fmt: skip
    window, steps = (500_000, 24) if asked.short else (1_000_000, 40)
    result["sliding"], one, two = cores(asked.turns, steps, window)
    if not asked.short:
        result["by the clock"] = by_the_clock({1: one, 2: two}, seconds=15)
    print(f"took {time.monotonic() - start:.0f} s")
    if asked.save:
        asked.save.write_text(json.dumps(result, indent=1, ensure_ascii=False) + "\n")
    met = result["hops"]["hop"]["median"] <= GOAL_HOP and result["sliding"]["2/1"]["median"] >= GOAL_CORES
    sys.exit(0 if met else 1)


if __name__ == "__main__":
    main()
