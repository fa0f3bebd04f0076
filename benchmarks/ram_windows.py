"""What do windows of 512 to 65,536 tuples cost in registers and in RAM?

A chain of 64 cores, each with a segment of both windows. A tuple has a key of 32 bits and its place in a stream of a
million rows; the chain is as long as the window, so no stamps are compared. Yosys counts the cells of one segment of
each form for a Virtex-6, with 36 kbit in a block of RAM; the chain has 128 of them. How fast it is follows from the
cycles of a step: at most 100 million a second are taken for the clock, and every step brings a tuple of each stream.
"""

from __future__ import annotations

from typing import Any

from benchmarks.circuit import conclude, table
from handfast.engines.hardware import synthesize
from handfast.engines.hardware.segment import RamSegment, Segment
from handfast.engines.hardware.shape import CircuitShape

CORES = 64
WINDOWS = (512, 2_048, 8_192, 32_768, 65_536)
CLOCK = 100_000_000
BLOCKS = 416  # of RAM in the chip of the thesis, an XC6VLX240T [OGE Table 4.1]
LONGEST = 32  # slots of a segment that is synthesised in registers


def slot() -> Any:
    """The bits of a tuple."""
    import pyarrow as pa

    import handfast as hf
    from handfast.engines.hardware.layout import lay_out
    from handfast.flow.batch import schema_of

    schema = schema_of(pa.schema([("ts", pa.timestamp("us")), ("k", pa.int32())]))
    join = hf.JoinSpec(("r", "s"), "r.k = s.k", window="512 rows", time="ts").bind({"r": schema, "s": schema})
    return lay_out(join.predicate, (1_000_000, 1_000_000), compares_stamps=False).r.shape


def measured(window: int, tuple_: Any) -> dict[str, Any]:
    """A chain for windows of so many tuples."""
    size = window // CORES
    shape = CircuitShape(cores=CORES, sizes=(size, size), ram=True)
    forms = {"ram": RamSegment} | ({"registers": Segment} if size <= LONGEST else {})
    found: dict[str, Any] = {"window": window, "segment": size, "cycles_per_step": shape.cycles_per_step}
    for name, form in forms.items():
        cells = synthesize.area(form(slot=tuple_, size=size)).total
        found[name] = {
            "lut": 2 * CORES * cells.lut,
            "lut_ram": 2 * CORES * cells.lut_ram,
            "ff": 2 * CORES * cells.ff,
            "block_ram": 2 * CORES * cells.block_ram,
        }
        print(f"{window:,} tuples in {name}: {found[name]}", flush=True)
    return found


def main() -> None:
    tuple_ = slot()
    rows = [measured(window, tuple_) for window in WINDOWS]
    head = ["tuples in a window", "in a segment", "FF, LUT in registers", "FF, LUT in RAM", "LUT as RAM"]
    head += ["block RAM", "cycles of a step", "tuples of each stream in a second"]
    lines = []
    for row in rows:
        registers, ram = row.get("registers"), row["ram"]
        dear = f"{registers['ff']:,}, {registers['lut']:,}" if registers else "–"
        cells = [dear, f"{ram['ff']:,}, {ram['lut']:,}", ram["lut_ram"], f"{ram['block_ram']:g}"]
        steps = row["cycles_per_step"]
        lines.append([row["window"], row["segment"], *cells, steps, CLOCK // steps])
    print(f"\n{CORES} cores, {tuple_.size} bits a tuple\n\n{table(head, lines)}")
    largest = rows[-1]
    answer = (
        f"Two windows of {largest['window']:,} tuples in {CORES} cores take {largest['ram']['block_ram']:g} of the "
        f"{BLOCKS} blocks of RAM in the thesis' chip; in registers two of {rows[0]['window']} take "
        f"{rows[0]['registers']['ff']:,} flip-flops"
    )
    conclude("ram_windows", __doc__, answer, {"cores": CORES, "bits": tuple_.size, "windows": rows})


if __name__ == "__main__":
    main()
