"""`handfast reproduce circular`: what comes out with the paper's windows, the page, and that a slow ring is seen."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from typer.testing import CliRunner

from handfast.cli import app
from handfast.cli.reproduce.circular import claims as judged
from handfast.cli.reproduce.circular import run as command
from handfast.cli.reproduce.circular.claims import BUSY, BUSY_FOR, CLOSE, SAVED, claims, saved
from handfast.cli.reproduce.circular.experiments import (
    LADDER,
    OURS,
    PAPER,
    PRINTED_PROBABILITY,
    QUICK,
    STREAMS,
    WINDOW,
    Cost,
    RingEvaluation,
    RingJob,
    Scale,
    run_job,
)
from handfast.cli.reproduce.circular.page import page
from handfast.cli.reproduce.run import holds
from handfast.engines.hardware.circular.workload import NEIGHBOURS, ONE_KEY
from tests.cli.reproduce.test_page import Page

FEW = Scale(WINDOW, STREAMS, (1e-7, 1e-5, PRINTED_PROBABILITY), 4e8)
"""The paper's windows, and less time."""


class Lazy(RingEvaluation):
    """An evaluation that runs what is asked of it when it is asked."""

    def cost(self, job: RingJob) -> Cost:
        self.costs.setdefault(job, run_job(job))
        return super().cost(job)


@pytest.fixture(scope="module")
def paper() -> Lazy:
    return Lazy(FEW)


@pytest.mark.parametrize("streams", STREAMS)
def test_throughput_goes_linearly_with_the_stages(paper: Lazy, streams: int) -> None:
    cost, bound = paper.cost(paper.steady(streams, 1e-7)), paper.bound(streams, 1e-7)
    assert pytest.approx(streams * 100e6 / WINDOW, rel=0.01) == bound
    assert pytest.approx(bound, rel=CLOSE) == cost.throughput


@pytest.mark.parametrize("streams", BUSY_FOR)
def test_stages_compare_nearly_always_and_nothing_is_dropped(paper: Lazy, streams: int) -> None:
    cost = paper.cost(paper.steady(streams, PRINTED_PROBABILITY))
    assert cost.utilisation >= BUSY
    assert cost.dropped == 0


@pytest.mark.parametrize("streams", BUSY_FOR)
def test_with_the_papers_order_stages_stand_still(paper: Lazy, streams: int) -> None:
    cost = paper.cost(paper.steady(streams, PRINTED_PROBABILITY, PAPER))
    assert cost.utilisation < 0.65
    assert cost.waited > 0.2


def test_a_stash_saves_a_third_of_the_scans_where_next_to_nothing_matches(paper: Lazy) -> None:
    assert saved(paper, 1e-7, FEW.kept[0]) <= SAVED


class Once(RingEvaluation):
    """An evaluation that runs the first time only."""

    def run(self, threads: int, done: Callable[[int], None]) -> None:
        if not self.costs:
            super().run(threads, done)


@pytest.fixture(scope="module")
def made() -> Once:
    return Once(QUICK)


@pytest.fixture(scope="module")
def quick(made: Once, tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, str]:
    """What a quick run prints, and its page."""
    out = tmp_path_factory.mktemp("circular") / "page.html"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(command, "RingEvaluation", lambda scale: made)
        ran = CliRunner().invoke(app, ["reproduce", "circular", "--quick", "--out", str(out)])
    return ran, out.read_text(encoding="utf-8")


def test_a_quick_run_says_what_it_is_and_every_claim_holds(quick: tuple[Any, str], made: Once) -> None:
    ran, text = quick
    assert 0 == ran.exit_code, ran.output
    assert "runs of rings on the fast model" in ran.output
    assert "A quick run with smaller windows" in text
    assert holds(claims(made))


def test_the_page_has_every_figure_and_needs_nothing_else(quick: tuple[Any, str]) -> None:
    page = Page(quick[1])
    for number in ("7a", "7b", "7c"):
        assert any(f"Figure {number}" in title for title in page.titles)
    assert 3 + 1 + 1 == len(page.pictures)  # Figure 7, with the paper's order, the part of cycles
    assert all(address.startswith("data:") for address in page.addresses)
    assert all(ElementTree.fromstring(picture).tag.endswith("svg") for picture in page.pictures)


def test_the_page_has_every_run_in_its_tables(quick: tuple[Any, str], made: Once) -> None:
    table = {tuple(row[:3]): row for own in Page(quick[1]).tables for row in own}
    high = QUICK.probabilities[-1]
    for says, pattern in (("each pair of neighbours its own", NEIGHBOURS), ("one for all", ONE_KEY)):
        for order in LADDER:
            cost = made.cost(made.steady(8, high, order, pattern))
            assert f"{cost.utilisation:.1%}" == table[says, order.says, "8"][4]
    for kept in QUICK.kept:
        cost = made.cost(made.stashed(high, kept))
        assert any(f"{cost.groups:,}" in row and f"{cost.overwritten:,}" in row for row in table.values())


def test_what_does_not_hold_is_said(quick: tuple[Any, str], monkeypatch: pytest.MonkeyPatch, made: Once) -> None:
    assert quick
    slow = {made.steady(n, QUICK.probabilities[-1]): made.steady(n, QUICK.probabilities[-1], PAPER) for n in BUSY_FOR}
    assert made.steady(5, 1e-3, OURS) == made.steady(5, 1e-3)
    costs = dict(made.costs)
    for own, other in slow.items():
        costs[own] = costs[other]
    monkeypatch.setattr(made, "costs", costs)
    failed = [own.what for own in claims(made) if own.verdict == judged.FAILS]
    assert [
        f"part of their cycles in which stages compare, {n} streams, mp {QUICK.probabilities[-1]:g}" for n in (5, 8)
    ] == failed


def test_own_match_probabilities_are_figures_of_their_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Scale] = []

    class Stopped(Exception):
        pass

    def stopped(scale: Scale) -> RingEvaluation:
        seen.append(scale)
        raise Stopped

    monkeypatch.setattr(command, "RingEvaluation", stopped)
    asked = ["--match-probability", "0.001", "--match-probability", "1e-6", "--out", str(tmp_path / "page.html")]
    ran = CliRunner().invoke(app, ["reproduce", "circular", *asked])
    assert isinstance(ran.exception, Stopped)
    assert (1e-6, 0.001) == seen[0].probabilities


@pytest.mark.parametrize(
    ("probabilities", "message"),
    [
        (("1e-7", "0.01"), "With windows of 16,384 rows and a match probability of 0.01,"),
        (("1e-4", "1e-4"), "The page compares a low match probability with a high one; give two"),
        (("1e-30", "1e-4"), "A match probability is 1e-18 at least, not 1e-30"),
    ],
)
def test_match_probabilities_that_cannot_be_run_are_named(
    probabilities: tuple[str, ...], message: str, tmp_path: Path
) -> None:
    asked = [word for each in probabilities for word in ("--match-probability", each)]
    ran = CliRunner().invoke(app, ["reproduce", "circular", *asked, "--out", str(tmp_path / "page.html")])
    assert (2, True) == (ran.exit_code, ran.stderr.startswith(f"handfast: {message}")), ran.output
    assert not (tmp_path / "page.html").exists()


def test_a_throughput_is_told_from_some_tuples_however_long_they_take() -> None:
    made = RingEvaluation(QUICK)
    often = made.steady(8, 4 / QUICK.window)  # a tuple takes some thousand scans
    assert 8 * 8 == often.streams.tuples
    assert run_job(often).throughput > 0


def test_there_are_more_match_probabilities_than_figures() -> None:
    scale = replace(QUICK, probabilities=(QUICK.probabilities[0],) * 12, streams=(3,), shown=(3,))
    text = page(Lazy(scale), [], {})
    assert [f"Figure 7{n}: mp 3.2e-06" for n in "abc"] == [
        title for title in Page(text).titles if title.startswith("Figure 7")
    ]
    assert 9 == Page(text).titles.count("mp 3.2e-06")
