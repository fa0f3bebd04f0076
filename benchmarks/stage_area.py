"""Does the area of a ring, and of a line with a stash, grow in proportion to its streams?

Circular-MJ and Stashed-MJ for 3 to 8 streams with windows of 16,384 rows, as in the paper [CMJ §IV]: an equi-join on
32-bit keys that chain, tuples of 64 bits (31 of them their place, 32 the key, 1 that it is NULL), and otherwise as
handfast builds them where nothing is asked for. Cells are counted by Yosys for Virtex-6. The paper prints no area. A
straight line is fitted so that the squares of the relative deviations are least. RAM is counted as block RAM of 36
kbit, as LUTs that store 64 bits, and as bits of both together. Each kind of part is counted as well, to see which of
them grow faster than the streams.
"""

from __future__ import annotations

import argparse
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

from benchmarks.area import KINDS, counted, line
from benchmarks.circuit import PLACES, RESULTS, STREAM, conclude, table
from handfast.engines.hardware import synthesize
from handfast.engines.hardware.circular.design import RingDesign, design_stages
from handfast.engines.hardware.options import CIRCULAR, STASHED, HardwareOptions
from handfast.engines.hardware.stashed.design import LineDesign
from handfast.flow.batch import schema_of
from handfast.spec.join import JoinSpec

RESULT = RESULTS / "stage_area.json"
STREAMS = (3, 4, 5, 6, 7, 8)
WINDOW = 1 << 14
LIMIT = 0.10  # the largest deviation from a straight line
HELD = ("lut", "ff", "block_ram", "ram_bits")  # to this limit
BLOCK, LUT = 36 << 10, 64  # bits of a block RAM, and of a LUT that stores
SAYS = {"lut": "LUT", "ff": "FF", "block_ram": "block RAM", "lut_ram": "LUT as RAM", "ram_bits": "bits of RAM"}


def design(algorithm: str, streams: int) -> RingDesign | LineDesign:
    """The circuit for so many streams."""
    names = tuple("abcdefgh"[:streams])
    on = " AND ".join(f"{a}.k = {b}.k" for a, b in pairwise(names))
    spec = JoinSpec(names, on, window=f"{WINDOW} rows", time="ts")
    join = spec.bind(dict.fromkeys(names, schema_of(STREAM)))
    return design_stages(join, HardwareOptions(algorithm=algorithm), [PLACES] * streams, [WINDOW] * streams)


def parts(algorithm: str, streams: int) -> dict[str, dict[str, float]]:
    """The cells of each kind of part, all of them together."""
    kinds = synthesize.area(design(algorithm, streams).build(), family="xc6v").kinds()
    return {part: {kind: getattr(cells, kind) for kind in KINDS} for part, (_, cells) in kinds.items()}


def measured(algorithm: str, sizes: tuple[int, ...]) -> dict[str, Any]:
    """The cells by the number of streams, their lines, and the parts of the smallest and of the largest circuit."""
    found: dict[str, Any] = counted(sizes, lambda n: design(algorithm, n).build(), f"{algorithm}, {{}} streams")
    del found["seconds"]  # what was synthesised before is not synthesised again
    found["ram_bits"] = [
        round(blocks * BLOCK) + luts * LUT for blocks, luts in zip(found["block_ram"], found["lut_ram"], strict=True)
    ]
    lines = {kind: line(sizes, found[kind]) for kind in SAYS}
    designs = [design(algorithm, n) for n in sizes]
    widths = [max(each.layout.item(k).size for k in range(each.shape.stages)) for each in designs]
    ends = {n: parts(algorithm, n) for n in (sizes[0], sizes[-1])}
    return {"streams": list(sizes), "widest_item": widths} | found | {"line": lines, "parts": ends}


def show(algorithm: str, own: dict[str, Any]) -> None:
    """The table of an algorithm, its lines, and its parts."""
    head = ["streams", *SAYS.values(), "bits of the widest item"]
    rows = [[n, *(f"{own[kind][k]:,}" for kind in SAYS), own["widest_item"][k]] for k, n in enumerate(own["streams"])]
    print(f"\n{algorithm}\n\n{table(head, rows)}\n")
    for kind, says in SAYS.items():
        about = own["line"][kind]
        print(f"{says}: {about['each']:,} a stream and {about['besides']:,}; off by {about['deviation']:.1%} at most")
    few, many = own["parts"]
    lines = []
    for part in own["parts"][many]:
        old, new = (own["parts"][n].get(part, dict.fromkeys(KINDS, 0)) for n in (few, many))
        lines.append([part, *(f"{old[kind]:,} → {new[kind]:,}" for kind in KINDS)])
    print(f"\n{table([f'{few} → {many} streams', *(SAYS[kind] for kind in KINDS)], lines)}")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--short", action="store_true", help="3 and 4 streams alone")
    parser.add_argument("--save", type=Path, nargs="?", const=RESULT, help=f"write {RESULT.name}, or another file")
    asked = parser.parse_args()
    sizes = STREAMS[:2] if asked.short else STREAMS
    found = {algorithm: measured(algorithm, sizes) for algorithm in (CIRCULAR, STASHED)}
    for algorithm, own in found.items():
        show(algorithm, own)
    worst = {kind: max(own["line"][kind]["deviation"] for own in found.values()) for kind in SAYS}
    said = ", ".join(f"{SAYS[kind]} within {off:.1%}" for kind, off in worst.items() if kind in HELD)
    answer = (
        f"From {sizes[0]} to {sizes[-1]} streams, circular and stashed: {said} of a straight line; LUTs as RAM alone "
        f"are up to {worst['lut_ram']:.1%} off"
    )
    figures = {
        "deviation": {kind: worst[kind] for kind in SAYS},
        "limit": LIMIT,
        "held_to_it": list(HELD),
        "window": WINDOW,
        "area": found,
    }
    conclude("stage_area", __doc__, answer, figures, save=asked.save is not None, to=asked.save)
    if any(worst[kind] > LIMIT for kind in HELD):
        sys.exit(f"The limit is {LIMIT:.0%}")


if __name__ == "__main__":
    main()
