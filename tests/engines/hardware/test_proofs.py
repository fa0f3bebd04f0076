"""What is proven of the parts of a circuit: for all inputs, by the model checker."""

from __future__ import annotations

import pytest

from handfast.engines.hardware.proofs.proven import PROOFS, Proof
from tests.engines.hardware import proof_page

LISTED = [
    pytest.param(
        proof,
        id=f"{proof.part}, {proof.shape}, {proof.depth} cycles",
        marks=[pytest.mark.slow] if proof.slow else [],
    )
    for proof in PROOFS
]


@pytest.mark.usefixtures("yosys")
@pytest.mark.parametrize("proof", LISTED)
def test_a_part_does_what_is_claimed_whatever_happens_around_it(proof: Proof) -> None:
    verdict = proof.check()
    assert verdict.holds, str(verdict)
    assert proof.for_ever == verdict.for_ever


def test_the_page_says_what_is_proven() -> None:
    page = proof_page.page()
    assert page == proof_page.PAGE.read_text(encoding="utf-8"), (
        "the table in docs/hardware.md is out of date: python -m tests.engines.hardware.proof_page"
    )
    assert all(f"| {proof.part} |" in page for proof in PROOFS)
