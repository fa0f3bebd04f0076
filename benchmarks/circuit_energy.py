"""How much does a circuit of 1, 2, 5 or 10 cores switch for a tuple, at the same throughput?

[HSJ] Table 1: two windows of 100 tuples, an equi-join, 500,000 tuples a second, with 1, 2, 5 and 10 cores at 50, 25, 10
and 5 MHz, windows in shift registers; it prints milliwatts of dynamic power on a Virtex-6. Open tools know no
milliwatts. What is counted here, for each tuple, is exact: how many bits change at the outputs of all cells that Yosys
makes of the circuit on a Virtex-6 (flip-flops, LUTs, wide multiplexers, carries, RAMs), with all delays zero; of these
the flip-flops; and how many flip-flops are clocked, changed or not. As relative energy this is a model: the change of a
bit weighs the same wherever it is, and one core is 100. The matches that come out of each circuit are compared with the
definition first. Keys are drawn from 100 random 32-bit numbers, so that a tuple that comes finds one match on average;
the paper does not say how many its tuples find.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import handfast as hf
from benchmarks.circuit import conclude, equi_join
from handfast.engines.hardware import activity
from handfast.engines.hardware.simulate import outcome_of, run_verilated
from handfast.engines.hardware.steps import EMPTY
from handfast.flow.topology import R, S

WINDOW = 100
CORES = (1, 2, 5, 10)
RATE = 500_000  # tuples a second
WARM, COUNTED = 2 * WINDOW, WINDOW  # pairs of tuples: until both windows are full and have been renewed; then counted
SEED = 1
PRINTED = {1: (50, 100), 2: (25, 64), 5: (10, 62), 10: (5, 68)}  # [HSJ Table 1]: MHz, and mW of dynamic power
KINDS: dict[str, Callable[[dict[str, Any]], float]] = {
    "toggles": lambda own: own["total"],
    "flip_flop": lambda own: own["toggles"]["flip_flop"],
    "clocked": lambda own: own["clocked"],
}
WIDTHS = (5, 8, 7, 13, 6, 13, 6, 13, 6, 8, 6)  # of the columns of the table


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
        if own["r"][r] == own["s"][s] and (r - WINDOW <= s if s < r else s - WINDOW < r)
    }


def measured(cores: int) -> dict[str, Any]:
    """What a circuit switches for a tuple, and how long it takes."""
    design = equi_join(WINDOW, hf.HardwareOptions(cores=cores, memory="registers", network="tree"))
    layout, own = design.layout, keys()
    slots = [[layout.of(k).pack(seq, 0, [key]) for seq, key in enumerate(own["rs"[k]])] for k in (R, S)]
    steps = [layout.pack_step(r, s) for r, s in zip(*slots, strict=True)]
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
        "bits": dict(toggles.bits),
        "clocked": round(toggles.bits["flip_flop"] * each),
    }


def table(found: dict[int, dict[str, Any]]) -> str:
    """The figures by cores, each relative to one core as well, beside those of the paper."""
    lines = [("cores", "cycles", "MHz", "all toggles", "", "flip-flops", "", "clocked", "", "[HSJ]", "mW")]
    for cores, own in found.items():
        own["relative"] = {kind: round(100 * of(own) / of(found[1]), 1) for kind, of in KINDS.items()}
        own["printed"] = dict(zip(("mhz", "dynamic_mw"), PRINTED[cores], strict=True))
        cells = [cell for kind, of in KINDS.items() for cell in (f"{of(own):,.0f}", f"{own['relative'][kind]:.0f}")]
        mhz, power = PRINTED[cores]
        lines.append((str(cores), f"{own['cycles']:.1f}", f"{own['mhz']:.1f}", *cells, f"{mhz} MHz", str(power)))
    return "\n".join("".join(f"{cell:>{width}}" for cell, width in zip(own, WIDTHS, strict=True)) for own in lines)


def main() -> None:
    found: dict[int, dict[str, Any]] = {}
    for cores in CORES:
        found[cores] = measured(cores)
        print(f"{cores} cores: {found[cores]}", flush=True)
    print(f"\nfor a tuple\n{table(found)}")
    ratios = {kind: " : ".join(f"{own['relative'][kind]:.0f}" for own in found.values()) for kind in KINDS}
    printed = " : ".join(str(PRINTED[cores][1]) for cores in CORES)
    answer = (
        f"With {', '.join(map(str, CORES))} cores the bits that change for a tuple are as {ratios['toggles']}, those "
        f"of flip-flops alone as {ratios['flip_flop']}, the flip-flops that are clocked as {ratios['clocked']}; the "
        f"dynamic power that the paper prints is as {printed}"
    )
    about = {"window": WINDOW, "rate": RATE, "pairs_counted": COUNTED, "seed": SEED, "cores": found}
    conclude("circuit_energy", __doc__, answer, about)


if __name__ == "__main__":
    main()
