"""`handfast reproduce thesis`: runs everything, compares, and writes the page."""

from __future__ import annotations

import os
import platform
from importlib.metadata import version
from pathlib import Path

from handfast.cli.areas import read_areas
from handfast.cli.html import check_out, write_page
from handfast.cli.reproduce import figures
from handfast.cli.reproduce.claims import FAILS, Claim, claims
from handfast.cli.reproduce.experiments import QUICK, WHOLE, Evaluation, Scale
from handfast.cli.reproduce.page import page
from handfast.cli.screen import Screen

_VERSIONS = ("handfast", "amaranth", "numba", "numpy", "matplotlib")


def reproduce(out: Path, *, quick: bool, results: Path, screen: Screen) -> list[Claim]:
    """Run the evaluation again and write the page.

    Args:
        out: The page.
        quick: Whether to run a small circuit, to see that it works.
        results: The folder with what the benchmarks wrote down, for area and clock.
        screen: Where to show it.
    """
    check_out(out)
    areas = read_areas(results)
    figures.check()  # before minutes of runs: what the pictures need is there
    made = Evaluation(QUICK if quick else WHOLE)
    with screen.runs(made.total, f"{made.total} runs of circuits on the fast model") as show:
        made.run(os.cpu_count() or 1, show)
    found = claims(made)
    pictures = {number: draw(made) for number, draw in figures.FIGURES.items()}
    drawn = figures.areas(areas) if areas is not None else None
    text = page(made, found, pictures, areas, drawn, _setting(made.scale, quick))
    write_page(out, text)
    show_claims(found, out, screen)
    return found


def show_claims(found: list[Claim], out: Path, screen: Screen) -> None:
    """Show the comparison, and where the page is."""
    rows = [(own.what, own.printed or "—", own.ours, own.verdict) for own in found]
    screen.table(("what", "printed", "ours", ""), rows, left=1, boxed=False)
    screen.say(f"written to {out}")


def holds(found: list[Claim]) -> bool:
    """Whether every claim that is compared holds."""
    return not any(FAILS in own.verdict for own in found)


def versions() -> str:
    """What ran: Python and the packages that matter."""
    named = ", ".join(f"{name} {version(name)}" for name in _VERSIONS)
    return f"Python {platform.python_version()}, {named}"


def _setting(scale: Scale, quick: bool) -> dict[str, str]:
    return {
        "command": f"handfast reproduce thesis{' --quick' if quick else ''}",
        "versions": versions(),
        "seeds of random inputs": ", ".join(map(str, scale.seeds)),
        "what runs": "the fast model, which agrees with the circuit itself cycle by cycle; the tests hold both against "
        "each other",
    }
