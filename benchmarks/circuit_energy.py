"""How much does a circuit of 1, 2, 5 or 10 cores switch for a tuple, at the same throughput?

[HSJ] Table 1: two windows of 100 tuples, an equi-join, 500,000 tuples a second, with 1, 2, 5 and 10 cores at 50, 25, 10 and
5 MHz; it prints milliwatts of dynamic power on a Virtex-6. Open tools know no milliwatts. What is counted here is, for
each tuple, how many bits change at the outputs of all flip-flops, LUTs and RAMs of the circuit, mapped to LUTs of six
inputs, with all delays zero; and how many flip-flops are clocked. A change of any bit weighs the same, wherever it is
and however long its wire: a model, in which one core is 100. The matches that come out of each circuit are compared with
the definition first. Keys are drawn from 100 random 32-bit numbers, so that a tuple finds one match on average; the
paper does not say how many its tuples find.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import handfast as hf
from benchmarks.circuit import equi_join, write_down
from handfast.engines.hardware import activity
from handfast.engines.hardware.simulate import outcome_of, run_verilated
from handfast.engines.hardware.steps import EMPTY

WINDOW = 100
CORES = (1, 2, 5, 10)
RATE = 500_000  # tuples a second
WARM, COUNTED = 2 * WINDOW, WINDOW  # pairs of tuples: until both windows are full and have been renewed; then counted
SEED = 1
PRINTED = {1: (50, 100), 2: (25, 64), 5: (10, 62), 10: (5, 68)}  # [HSJ Table 1]: MHz, and mW of dynamic power


def keys() -> dict[str, list[int]]:
    """The keys of both streams."""
    random = np.random.default_rng(SEED)
    pool = random.integers(-(1 << 31), 1 << 31, WINDOW)
    return {name: random.choice(pool, WARM + COUNTED).tolist() for name in "rs"}


def right(own: dict[str, list[int]]) -> set[tuple[int, int]]:
    """The matches by definition: a pair comes in at a time, r first, and meets the last tuples of the other stream."""
    pairs = range(WARM + COUNTED)
    return {
        (r, s)
        for r in pairs
        for s in pairs
        if own["r"][r] == own["s"][s] and (r - WINDOW <= s < r if s < r else s - WINDOW < r)
    }


def measured(cores: int) -> dict[str, Any]:
    """What a circuit switches for a tuple, and how long it takes."""
    design = equi_join(WINDOW, hf.HardwareOptions(cores=cores))
    layout, own = design.layout, keys()
    pairs = zip(*([layout.of(k).pack(seq, 0, [key]) for seq, key in enumerate(own["rs"[k]])] for k in (0, 1)), strict=True)
    steps = [layout.pack_step(r, s) for r, s in pairs]
    flush = [layout.pack_step(EMPTY, EMPTY)] * design.shape.flush
    top = design.build()
    built = activity.build(top, mapped=True)
    run = run_verilated(built.simulator, top, steps + flush)
    found = [layout.pair(result) for result in outcome_of(run).results]
    assert len(found) == len(set(found)) and set(found) == right(own), "the circuit finds something else"
    first, last = (int(run.taken["steps"][step]) for step in (WARM, WARM + COUNTED - 1))
    tuples = 2 * (COUNTED - 1)
    toggles = built.toggles(run, first=first, last=last)
    each = toggles.cycles / tuples
    return {
        "matches": len(found),
        "cycles": round(each, 2),
        "mhz": round(each * RATE / 1e6, 2),
        "toggles": {kind: round(count / tuples, 1) for kind, count in toggles.counts.items()},
        "total": round(toggles.total / tuples, 1),
        "cells": dict(toggles.bits),
        "clocked": round(toggles.bits["flip_flop"] * each),
    }


def main() -> None:
    found: dict[int, dict[str, Any]] = {}
    for cores in CORES:
        found[cores] = measured(cores)
        print(f"{cores} cores: {found[cores]}", flush=True)
    one = found[1]
    print(f"\n{'':>24}{'toggles for a tuple at':>33}{'all':>8}{'':>6}{'clocked':>10}{'':>6}{'[HSJ Table 1]':>16}")
    print(
        f"{'cores':>5}{'cycles':>10}{'MHz':>9}{'flip-flops':>14}{'LUTs':>9}{'RAMs':>10}{'':>8}{'':>6}{'for one':>10}{'':>6}"
        f"{'MHz':>9}{'mW':>7}"
    )
    for cores, own in found.items():
        own["relative"] = {
            "toggles": round(100 * own["total"] / one["total"], 1),
            "flip_flop": round(100 * own["toggles"]["flip_flop"] / one["toggles"]["flip_flop"], 1),
            "clocked": round(100 * own["clocked"] / one["clocked"], 1),
        }
        own["printed"] = dict(zip(("mhz", "dynamic_mw"), PRINTED[cores], strict=True))
        at = own["toggles"]
        print(
            f"{cores:>5}{own['cycles']:>10.1f}{own['mhz']:>9.1f}{at['flip_flop']:>14,.0f}{at['lut']:>9,.0f}{at['ram']:>10,.0f}"
            f"{own['total']:>8,.0f}{own['relative']['toggles']:>6.0f}{own['clocked']:>10,}{own['relative']['clocked']:>6.0f}"
            f"{PRINTED[cores][0]:>9}{PRINTED[cores][1]:>7}"
        )
    ratio = " : ".join(f"{own['relative']['toggles']:.0f}" for own in found.values())
    printed = " : ".join(str(PRINTED[cores][1]) for cores in CORES)
    answer = (
        f"With {', '.join(map(str, CORES))} cores {ratio} bits change for a tuple, one core being 100; the paper prints "
        f"{printed} mW of dynamic power"
    )
    print(f"\n{answer}")
    about = {"answer": answer, "window": WINDOW, "rate": RATE, "pairs_counted": COUNTED, "seed": SEED, "cores": found}
    write_down("circuit_energy", (__doc__ or "").splitlines()[0], about)


if __name__ == "__main__":
    main()
