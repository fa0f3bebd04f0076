"""Which merging network is best: the thesis' tree, its adaptive network, or the pipelined one?

All have the same number of buffer slots, and the cores are suspended while a buffer is almost full. Every run gives all
results, in the same cycles as the fast model of the whole circuit, which is the circuit cycle by cycle. LUTs,
flip-flops and RAM come from Yosys for a Virtex-6, the clock from nextpnr for an ECP5.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.circuit import conclude, table
from benchmarks.lock_step import MARGIN, SEGMENT, Run, run
from handfast.engines.hardware import synthesize
from handfast.engines.hardware.adaptive import AdaptiveNetwork
from handfast.engines.hardware.fifo import Fifo
from handfast.engines.hardware.model import circuit
from handfast.engines.hardware.pipelined import PipelinedNetwork
from handfast.engines.hardware.shape import CircuitShape
from handfast.engines.hardware.tree import TreeNetwork
from handfast.engines.hardware.workload import PATTERNS, StreamPair
from tests.engines.hardware.plain_network import adaptive_state, adaptive_step, tree_state, tree_step
from tests.engines.hardware.plain_pipelined import pipelined_state, pipelined_step

CORES = (16, 64)
RATES = tuple(tenths / 10 for tenths in range(1, 11))
SHOWN = (0.1, 0.2, 0.3, 0.5, 0.7, 1.0)  # in the printed table
SLOTS = 16  # for each core; a tree has them in two FIFOs, one behind the core and one in a merger
WIDTH = 32  # bits of a result, for area and clock
SYNTHESISED = 16  # cores
SEEDS = (1,)  # of placing; nextpnr takes minutes for each


@dataclass(frozen=True)
class Candidate:
    """A network, its model and its circuit."""

    name: str
    step: Any
    state: Any
    circuit: Any
    shape: dict[str, Any]
    core_buffer: int = 0

    def run(self, cores: int, pair: StreamPair) -> Run:
        """Its cycles with so many cores."""
        net = self.state(n=cores, margin=MARGIN, **self.shape)
        found = run(self.step, net, pair, cores=cores, core_buffer=self.core_buffer)
        whole = CircuitShape(
            cores=cores,
            sizes=(SEGMENT, SEGMENT),
            network=self.name,
            core_buffer=self.core_buffer,
            network_buffer=self.shape["depth"],
            margin=MARGIN,
        )
        right = circuit.run(whole, pair.steps(whole.flush), pair.pairs())
        assert (right.total, right.suspended) == (found.last, found.suspended), f"{self.name} {pair}"
        return found

    def area(self, cores: int) -> synthesize.Cells:
        """Its cells with so many inputs, the FIFOs between them and the cores included."""
        found = synthesize.area(self.circuit(n=cores, width=WIDTH, margin=MARGIN, **self.shape)).total
        if self.core_buffer:
            one = synthesize.area(Fifo(width=WIDTH, depth=self.core_buffer, margin=MARGIN)).total
            for _ in range(cores):
                found += one
        return found

    def clock(self, cores: int) -> synthesize.Clock:
        """Its clock with so many inputs."""
        return synthesize.clock(self.circuit(n=cores, width=WIDTH, margin=MARGIN, **self.shape), seeds=SEEDS)


TREE = Candidate("tree", tree_step, tree_state, TreeNetwork, {"depth": SLOTS // 2}, SLOTS // 2)
ADAPTIVE = Candidate("adaptive", adaptive_step, adaptive_state, AdaptiveNetwork, {"depth": SLOTS})
PIPELINED = Candidate("pipelined", pipelined_step, pipelined_state, PipelinedNetwork, {"depth": SLOTS})
CANDIDATES = (TREE, ADAPTIVE, PIPELINED)
VARIANTS = tuple(
    Candidate(f"pipelined, {what}", pipelined_step, pipelined_state, PipelinedNetwork, {"depth": SLOTS, **changed})
    for what, changed in (("fan-in 2", {"fan_in": 2}), ("fan-in 8", {"fan_in": 8}), ("latency 1", {"latency": 1}))
)  # for the clock and the area


def measured(candidate: Candidate, cores: int, pair: StreamPair) -> dict[str, Any]:
    """The figures of one run."""
    seen = candidate.run(cores, pair)
    return {
        "network": candidate.name,
        "cores": cores,
        "pattern": pair.pattern,
        "match_rate": pair.match_rate,
        "results": seen.results,
        "cycles": seen.cycles,
        "latency_median": int(np.median(seen.latencies)),
        "latency_p99": int(np.percentile(seen.latencies, 99)),
        "latency_most": int(seen.latencies.max()),
        "suspended": seen.suspended,
    }


def cycles(cores: tuple[int, ...]) -> Iterator[dict[str, Any]]:
    """Every candidate under every pattern and match rate."""
    for n in cores:
        for pattern in PATTERNS:
            for rate in RATES:
                pair = StreamPair(n * SEGMENT, rate, pattern)
                for candidate in CANDIDATES:
                    yield measured(candidate, n, pair)


def sizes(cores: int, tell: Any = print) -> Iterator[dict[str, Any]]:
    """The cells and the clock of every candidate, and of the pipelined network's variants."""
    for candidate in (*CANDIDATES, *VARIANTS):
        tell(f"synthesising {candidate.name} for {cores} cores", flush=True)
        cells, clock = candidate.area(cores), candidate.clock(cores)
        yield {
            "network": candidate.name,
            "cores": cores,
            "lut": cells.lut,
            "lut_ram": cells.lut_ram,
            "ff": cells.ff,
            "block_ram": cells.block_ram,
            "mhz": clock.median,
        }


def cycles_table(rows: list[dict[str, Any]], cores: int) -> str:
    """Cycles and latencies (median / 99th percentile) of each network, by pattern and match rate."""
    head = ["match rate, pattern", "results"]
    head += [f"{each.name}: {what}" for what in ("cycles", "latency") for each in CANDIDATES]
    lines = []
    for pattern in PATTERNS:
        for rate in RATES:
            own = [r for r in rows if (r["cores"], r["pattern"], r["match_rate"]) == (cores, pattern, rate)]
            if own and rate in SHOWN:
                latencies = [f"{r['latency_median']} / {r['latency_p99']:,}" for r in own]
                lines.append([f"{rate:.0%} {pattern}", own[0]["results"], *(r["cycles"] for r in own), *latencies])
    return table(head, lines)


def sizes_table(rows: list[dict[str, Any]]) -> str:
    """LUTs, flip-flops and clocks."""
    columns = {"network": "network", "lut": "LUT", "lut_ram": "LUT as RAM", "ff": "FF", "block_ram": "block RAM"}
    columns["mhz"] = "MHz"
    return table(list(columns.values()), [[row[name] for name in columns] for row in rows])


def answer(rows: list[dict[str, Any]], area: list[dict[str, Any]]) -> str:
    """The question's answer in a sentence."""
    by = {(r["network"], r["cores"], r["pattern"], r["match_rate"]): r for r in rows}
    keys = {key[1:] for key in by}
    more = {key: by["pipelined", *key]["cycles"] / by["adaptive", *key]["cycles"] - 1 for key in keys}
    less = [by["adaptive", *key]["latency_median"] / by["pipelined", *key]["latency_median"] for key in keys]
    busiest = max(key for key in keys if key[1] == "random")
    words = (
        f"Pipelined: the median latency of a result is {min(less):.1f} to {max(less):.1f} times lower than with the "
        f"adaptive network in all {len(keys)} runs; it takes {min(more.values()):.2%} to {max(more.values()):.2%} more "
        f"cycles, {more[busiest]:.2%} where everything matches with {busiest[0]} cores"
    )
    if area:
        found = {r["network"]: r for r in area}
        words += (
            f"; {found['pipelined']['lut']:,} LUTs and {found['pipelined']['ff']:,} flip-flops, against "
            f"{found['adaptive']['lut']:,} and {found['adaptive']['ff']:,}"
        )
    return words


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--no-synthesis", action="store_true", help="cycles only, which takes a minute")
    asked = parser.parse_args()
    rows = list(cycles(CORES))
    area = [] if asked.no_synthesis else list(sizes(SYNTHESISED))
    for n in CORES:
        print(f"\n{n} cores, {SLOTS} slots for each\n\n{cycles_table(rows, n)}")
    if area:
        print(f"\n{SYNTHESISED} cores, results of {WIDTH} bits\n\n{sizes_table(area)}")
    figures = {
        "slots_per_core": SLOTS,
        "margin": MARGIN,
        "segment": SEGMENT,
        "seeds": {"streams": StreamPair(1, 0).seed, "placing": SEEDS},
        "cycles": rows,
        "sizes": area,
    }
    conclude("merging_networks", __doc__, answer(rows, area), figures, save=bool(area))


if __name__ == "__main__":
    main()
