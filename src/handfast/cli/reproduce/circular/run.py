"""`handfast reproduce circular`: runs everything, compares, and writes the page."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from handfast.cli.html import check_out, write_page
from handfast.cli.reproduce import figures
from handfast.cli.reproduce.circular.claims import claims
from handfast.cli.reproduce.circular.experiments import QUICK, WHOLE, RingEvaluation
from handfast.cli.reproduce.circular.page import page
from handfast.cli.reproduce.claims import Claim
from handfast.cli.reproduce.run import show_claims, versions
from handfast.cli.screen import Screen
from handfast.errors import SpecError


def reproduce(out: Path, *, quick: bool, probabilities: Sequence[float], screen: Screen) -> list[Claim]:
    """Run the evaluation again and write the page.

    Args:
        out: The page.
        quick: Whether to run small windows, to see that it works.
        probabilities: Match probabilities, a figure each; none: those of the scale.
        screen: Where to show it.
    """
    if len(set(probabilities)) == 1:
        raise SpecError("The page compares a low match probability with a high one; give two with --match-probability")
    check_out(out)
    figures.check()  # before minutes of runs: what the pictures need is there
    scale = QUICK if quick else WHOLE
    if probabilities:
        scale = replace(scale, probabilities=tuple(sorted(set(probabilities))))
    made = RingEvaluation(scale)
    with screen.runs(made.total, f"{made.total} runs of rings on the fast model") as show:
        made.run(os.cpu_count() or 1, show)
    found = claims(made)
    asked = "".join(f" --match-probability {each:g}" for each in probabilities)
    setting = {
        "command": f"handfast reproduce circular{' --quick' if quick else ''}{asked}",
        "versions": versions(),
        "what runs": "the fast model, which agrees with the circuit itself cycle by cycle; the tests hold both against "
        "each other",
    }
    write_page(out, page(made, found, setting))
    show_claims(found, out, screen)
    return found
