"""How busy are the stages of a ring, how many tuples does it take in, and what does a stash save?

Everything that `handfast reproduce circular` shows, as figures: rings of 3 to 8 stages with windows of 16,384 rows, on
the fast model, which is the circuit's equal in every cycle. Every run is checked to have dropped nothing. The speed of
the model is that of the longest of these runs, by itself, in CPU time.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from time import process_time
from typing import Any

from benchmarks.circuit import conclude, table
from handfast.cli.reproduce.circular.claims import claims
from handfast.cli.reproduce.circular.experiments import (
    LADDER,
    QUICK,
    WHOLE,
    RingEvaluation,
    run_job,
)
from handfast.cli.reproduce.circular.page import page
from handfast.cli.reproduce.run import versions
from handfast.engines.hardware.circular.workload import PATTERNS


def busy(made: RingEvaluation) -> list[dict[str, Any]]:
    """With full windows, by match probability and number of streams."""
    rows = []
    for probability in made.scale.probabilities:
        for streams in made.scale.streams:
            cost, bound = made.cost(made.steady(streams, probability)), made.bound(streams, probability)
            rows.append(
                {
                    "match_probability": probability,
                    "streams": streams,
                    "bound": round(bound),
                    "tuples_per_second": round(cost.throughput),
                    "stages_compare": round(cost.utilisation, 4),
                }
            )
    return rows


def orders(made: RingEvaluation) -> list[dict[str, Any]]:
    """By order, pattern and number of streams, where much matches."""
    high = made.scale.probabilities[-1]
    rows = []
    for pattern in PATTERNS:
        for streams in made.scale.shown:
            for order in LADDER:
                cost = made.cost(made.steady(streams, high, order, pattern))
                rows.append(
                    {
                        "keys": pattern,
                        "streams": streams,
                        "order": order.says,
                        "tuples_per_second": round(cost.throughput),
                        "stages_compare": round(cost.utilisation, 4),
                        "have_no_room": round(cost.waited, 4),
                    }
                )
    return rows


def comparisons(made: RingEvaluation) -> list[dict[str, Any]]:
    """By slots that are compared at a time."""
    ends = (made.scale.probabilities[0], made.scale.probabilities[-1])
    return [
        {
            "match_probability": probability,
            "streams": streams,
            "comparisons": k,
            "tuples_per_second": round(made.cost(made.steady(streams, probability, comparisons=k)).throughput),
        }
        for probability in ends
        for streams in made.scale.shown
        for k in made.scale.comparisons
    ]


def stashes(made: RingEvaluation) -> list[dict[str, Any]]:
    """Three streams with one key, without and with a stash."""
    rows = []
    for probability in made.scale.probabilities:
        jobs = [(0.0, made.unstashed(probability)), *((k, made.stashed(probability, k)) for k in made.scale.kept)]
        for kept, job in jobs:
            cost = made.cost(job)
            rows.append(
                {
                    "match_probability": probability,
                    "pairs_kept": getattr(job.shape, "stash", 0),
                    "of_those_in_windows": kept,
                    "scan_cycles": cost.groups,
                    "of_the_ring": round(cost.groups / made.cost(jobs[0][1]).groups, 4),
                    "tuples_per_second": round(cost.at_the_end),
                    "overwritten": cost.overwritten,
                    "computed_again": cost.computed,
                }
            )
    return rows


def speed(made: RingEvaluation) -> float:
    """Cycles in a CPU second: eight streams of which much matches."""
    job = made.steady(8, made.scale.probabilities[-1])
    job.streams.keys  # noqa: B018 (drawn before)
    start = process_time()
    cost = run_job(job)
    return cost.cycles / (process_time() - start)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="small windows, and nothing is written down")
    parser.add_argument("--page", type=Path, help="write the page of `handfast reproduce circular` as well")
    asked = parser.parse_args()
    made = RingEvaluation(QUICK if asked.quick else WHOLE)
    made.run(os.cpu_count() or 1, lambda done: print(f"{done} of {made.total}", end="\r", flush=True))
    assert made.dropped() == 0, "an intermediate was dropped"
    found = {"busy": busy(made), "orders": orders(made), "comparisons": comparisons(made), "stashes": stashes(made)}
    for name, rows in found.items():
        print(f"\n{name}\n\n{table(list(rows[0]), [list(row.values()) for row in rows])}")
    model = speed(made)
    high = made.scale.probabilities[-1]
    least = min(row["stages_compare"] for row in found["busy"])
    before = {
        row["streams"]: row for row in found["orders"] if row["order"] == LADDER[0].says and row["keys"] == "neighbours"
    }
    words = (
        f"Stages compare in at least {least:.1%} of their cycles; at mp {high:g} with the paper's order in "
        f"{before[5]['stages_compare']:.1%} for 5 streams and {before[8]['stages_compare']:.1%} for 8. With a stash, "
        f"three streams take {found['stashes'][1]['of_the_ring']:.1%} of the ring's scan cycles where next to nothing "
        f"matches. The model does {model / 1e6:,.0f} M cycles in a CPU second"
    )
    figures = {"model_cycles_per_second": round(model)} | found
    conclude("circular", __doc__, words, figures, save=not asked.quick)
    if asked.page is not None:
        setting = {"command": "handfast reproduce circular", "versions": versions()}
        asked.page.write_text(page(made, claims(made), setting), encoding="utf-8")


if __name__ == "__main__":
    main()
