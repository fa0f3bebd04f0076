"""`python -m benchmarks`: every benchmark, one after the other, its result written down; then docs/performance.md."""

from __future__ import annotations

import argparse
import subprocess
import sys
import time

from benchmarks.page import PAGE, write
from tests.show.report import ROOT

# Each file of this folder that answers a question, and how it is asked to write its result down.
QUESTIONS = {
    "scan": ["--save", "--widest"],
    "indexes": ["--save"],
    "windows": ["--save"],
    "cores": ["--save"],
    "pushes": ["--save"],
    "multiway": ["--save"],
    "spark_multiway": ["--save"],
    "spark_streaming": ["--save"],
    "spark_batch": ["--save"],
    "spark_hot_keys": ["--save"],
    "streaming_peers": ["--save"],
    "trigger": [],
    "sequencer": [],
    "celljoin": ["--save"],
    "chain": ["--save"],
    "circuit_model": ["--save"],
    "circuit_area": [],
    "stage_area": ["--save"],
    "circuit_energy": [],
    "circular": [],
    "merging_networks": [],
    "load_balancing": [],
    "ram_windows": [],
}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("only", nargs="*", choices=[*QUESTIONS, []], help="these benchmarks; all without")
    asked = parser.parse_args().only or list(QUESTIONS)
    missed: list[str] = []
    for number, name in enumerate(asked, start=1):
        print(f"── {number} of {len(asked)}: {name}", flush=True)
        start = time.monotonic()
        done = subprocess.run([sys.executable, "-m", f"benchmarks.{name}", *QUESTIONS[name]], cwd=ROOT, check=False)
        print(f"── {name}: exit {done.returncode} after {time.monotonic() - start:.0f} s", flush=True)
        if done.returncode:
            missed.append(name)
    write()
    print(f"{PAGE.relative_to(ROOT)} has the figures")
    if missed:
        print(f"Missed a goal, or failed: {', '.join(missed)}")
    sys.exit(1 if missed else 0)


if __name__ == "__main__":
    main()
