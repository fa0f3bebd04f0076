"""docs/hardware.md: its table of proofs is the list in the code. `python -m tests.engines.hardware.proof_page` writes it in."""

from __future__ import annotations

import re
from pathlib import Path

from handfast.engines.hardware.proofs.proven import PROOFS, Proof

PAGE = Path(__file__).resolve().parents[3] / "docs" / "hardware.md"
_MARK = "<!-- what is proven -->"


def page() -> str:
    """The page as it should be: all but the table is its own."""
    table = ["| part | shape | claims | cycles |", "|---|---|---|---|", *map(_row, PROOFS)]
    shown = "\n".join([_MARK, *table, "<!-- end -->"])
    return re.sub(f"{_MARK}\n.*?<!-- end -->", lambda _: shown, PAGE.read_text(encoding="utf-8"), flags=re.S)


def _row(proof: Proof) -> str:
    cycles = "all" if proof.for_ever else str(proof.depth)
    return f"| {proof.part} | {proof.shape} | {'; '.join(proof.claims())} | {cycles} |"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
