"""docs/hardware.md: its table of proofs is the code's. `python -m tests.engines.hardware.proof_page` writes it in."""

from __future__ import annotations

import re
from pathlib import Path

from handfast.engines.hardware.proofs.proven import PROOFS, Proof

PAGE = Path(__file__).resolve().parents[3] / "docs" / "hardware.md"
_MARK = "<!-- what is proven -->"


def page() -> str:
    """The page as it should be: all but the table is its own."""
    rows = [row for part in dict.fromkeys(proof.part for proof in PROOFS) for row in _rows(part)]
    shown = "\n".join([_MARK, "| part | what holds | for how many cycles |", "|---|---|---|", *rows, "<!-- end -->"])
    return re.sub(f"{_MARK}\n.*?<!-- end -->", lambda _: shown, PAGE.read_text(encoding="utf-8"), flags=re.S)


def _rows(part: str) -> list[str]:
    """A row for each claim about the part; the first one names it."""
    shown: dict[str, list[str]] = {}
    for proof in PROOFS:
        if proof.part == part:
            for claim in proof.claims():
                shown.setdefault(claim, []).append(_for_how_long(proof))
    return [
        f"| {part if number == 0 else ''} | {claim} | {'; '.join(cycles)} |"
        for number, (claim, cycles) in enumerate(shown.items())
    ]


def _for_how_long(proof: Proof) -> str:
    return f"{'all' if proof.for_ever else proof.depth} ({proof.shape})"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
