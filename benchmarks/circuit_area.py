"""Does the area of the circuit grow in proportion to its cores?

The circuit is the thesis' [OGE §4.5.1, §6.3.1]: an equi-join on 32-bit keys, 64-bit tuples, segments of 8, cores from 2
to 32, with the tree of mergers (buffers of 8 behind cores and of 4 in mergers, as in its §4.5.2) and with the adaptive
network (buffers of 8); and with handfast's own default, the pipelined network (buffers of 8), which the thesis does not
have. Cells are counted by Yosys for Virtex-6, the thesis' family. Its own numbers, from Xilinx ISE 13.1, stand beside:
its result tuples have 96 bits, ours 62, and its FIFOs are in block RAM, ours in LUTs, which hold 32 words each. A
straight line is fitted so that the squares of the relative deviations are least. The clock is nextpnr's on an ECP5,
another family than the thesis'.
"""

from __future__ import annotations

import argparse
from typing import Any

import handfast as hf
from benchmarks.area import counted, fresh_cache, line
from benchmarks.circuit import conclude, equi_join
from handfast.engines.hardware import synthesize
from handfast.engines.hardware.top import JoinCircuit

CORES = (2, 4, 8, 16, 32)
SEGMENT = 8
BUFFERS = {
    "tree": {"core_buffer": 8, "network_buffer": 4},
    "adaptive": {"network_buffer": 8},
    "pipelined": {"network_buffer": 8},
}
LIMIT = 0.05  # the largest deviation from a straight line

# [OGE Table 4.2] and [OGE Table 6.1], slice registers and slice LUTs; block RAM at n = 32 from the text of §6.3.2
PRINTED: dict[str, dict[str, tuple[int, ...]]] = {
    "tree": {"ff": (3_682, 7_106, 13_949, 27_763, 58_212), "lut": (2_654, 5_281, 9_281, 18_260, 34_467)},
    "adaptive": {"ff": (4_371, 8_358, 16_347, 32_323, 64_526), "lut": (4_594, 8_784, 17_130, 35_051, 68_216)},
}
TABLE = {"tree": "Table 4.2", "adaptive": "Table 6.1"}
BLOCK_RAM = {"tree": 126, "adaptive": 64}


def circuit(network: str, cores: int) -> JoinCircuit:
    """The thesis' circuit with so many cores."""
    options = hf.HardwareOptions(cores=cores, segment=SEGMENT, network=network, **BUFFERS[network])
    return equi_join(SEGMENT * cores, options).build()


def areas(network: str) -> dict[str, Any]:
    """LUTs, flip-flops and RAM by cores."""
    return {"cores": list(CORES)} | counted(CORES, lambda cores: circuit(network, cores), f"{network}, {{}} cores")


def clocks(sizes: list[int]) -> dict[str, Any]:
    """nextpnr's clock for a few numbers of cores, over three seeds."""
    found: dict[str, Any] = {}
    for network in BUFFERS:
        for cores in sizes:
            clock = synthesize.clock(circuit(network, cores), progress=lambda what: print(f"  {what}", flush=True))
            about = {"mhz": dict(clock.mhz), "median": clock.median, "spread": round(clock.spread, 2)}
            found.setdefault(network, {})[cores] = about
            print(f"{network}, {cores} cores: {clock.median:.1f} MHz, spread {clock.spread:.1f}", flush=True)
    return found


def report(found: dict[str, Any], clock: dict[str, Any]) -> None:
    """Print the tables and the answer, and write both down."""
    worst = 0.0
    for network, own in found.items():
        printed = PRINTED.get(network)
        print(f"\n{network}: Yosys, xc6v" + (f", beside [OGE {TABLE[network]}] (ISE 13.1)" if printed else ""))
        print(f"{'cores':>5}{'LUT':>9}{'printed':>9}{'':>7}{'FF':>9}{'printed':>9}{'':>7}{'RAM LUT':>9}{'s':>7}")
        for k, cores in enumerate(CORES):
            row = f"{cores:>5}"
            for kind in ("lut", "ff"):
                theirs = printed[kind][k] if printed else None
                row += f"{own[kind][k]:>9,}" + (f"{theirs:>9,}{own[kind][k] / theirs:>7.0%}" if theirs else " " * 16)
            print(f"{row}{own['lut_ram'][k]:>9,}{own['seconds'][k]:>7.0f}")
        own["line"] = {kind: line(CORES, own[kind]) for kind in ("lut", "ff", "lut_ram")}
        if printed:
            own["printed"] = printed | {"block_ram_at_32": BLOCK_RAM[network], "source": f"[OGE {TABLE[network]}]"}
            own["printed_line"] = {kind: line(CORES, list(counts)) for kind, counts in printed.items()}
        for kind, about in own["line"].items():
            off = f"off by {about['deviation']:.1%} at most"
            print(f"  {kind}: {about['each']:,} a core and {about['besides']:,}; {off}")
        worst = max(worst, *(own["line"][kind]["deviation"] for kind in ("lut", "ff")))
    seconds = sum(sum(own["seconds"]) for own in found.values())
    answer = (
        f"LUTs and flip-flops over {CORES[0]} to {CORES[-1]} cores are within {worst:.1%} of a straight line, with "
        f"every network; all {len(CORES) * len(found)} syntheses took {seconds / 60:.0f} minutes"
    )
    assert worst <= LIMIT, f"{answer}: {worst:.1%} is more than {LIMIT:.0%}"
    figures = {"deviation": worst, "limit": LIMIT, "area": found, "clock_ecp5": clock}
    conclude("circuit_area", __doc__, answer, figures)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--clock", type=int, nargs="*", default=[2, 4], help="cores to estimate a clock for; minutes")
    sizes = parser.parse_args().clock
    with fresh_cache():
        found = {network: areas(network) for network in BUFFERS}
    report(found, {})  # is there even if placing, which takes much longer, is stopped
    if sizes:
        report(found, clocks(sizes))


if __name__ == "__main__":
    main()
