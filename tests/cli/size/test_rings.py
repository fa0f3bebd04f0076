"""`handfast size --streams`: the clock that a ring takes, by formula and on the model, and cells that were counted."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from handfast.cli import app
from handfast.cli.size.rings import RingDemand, best, counted, rings
from handfast.errors import SpecError

NONE = (None, None, None)


def invoke(*arguments: str) -> Any:
    return CliRunner().invoke(app, ["size", "--rate", "1000", *arguments])


@pytest.mark.parametrize("streams", [3, 5, 8])
@pytest.mark.parametrize("comparisons", [1, 4])
def test_where_next_to_nothing_matches_the_model_needs_the_clock_of_the_formula(streams: int, comparisons: int) -> None:
    demand = RingDemand(streams, 1000, 4096, 1e-7)
    paper = demand.paper_mhz(comparisons)
    assert pytest.approx(1000 * 4096 / comparisons / 1e6, rel=1e-3) == paper
    needed, busy = demand.modelled(comparisons)
    assert pytest.approx(paper, rel=0.02) == needed
    assert 0.98 <= busy <= 1


def test_what_matches_takes_more_scans_and_so_a_faster_clock() -> None:
    seldom, often = RingDemand(4, 1000, 1024, 1e-6), RingDemand(4, 1000, 1024, 1e-3)
    assert 1 + 1.024 + 1.024**2 == pytest.approx(often.scans)
    assert often.modelled(1)[0] > 2.5 * seldom.modelled(1)[0]


def test_best_is_what_is_fast_enough_with_the_fewest_comparisons() -> None:
    demand = RingDemand(3, 100_000, 64, 1e-4)
    found = rings(demand, 2.0, lambda _: NONE)
    assert [1, 2, 4, 8, 16, 32] == [own.comparisons for own in found]
    chosen = best(found)
    assert chosen is not None and chosen.needed <= 2.0
    assert all(own.needed > 2.0 for own in found if own.comparisons < chosen.comparisons)
    assert best(rings(demand, 0.001, lambda _: NONE)) is None


def test_cells_are_given_only_where_they_were_counted(tmp_path: Path) -> None:
    demand = RingDemand(4, 1000, 128, 1e-7)
    assert NONE == counted(demand, tmp_path)(1)
    own = {"streams": [3, 4], "lut": [10, 20], "ff": [30, 40], "block_ram": [5, 6.5]}
    (tmp_path / "stage_area.json").write_text(json.dumps({"window": 128, "area": {"circular": own}}))
    assert (20, 40, 6.5) == counted(demand, tmp_path)(1)
    assert NONE == counted(demand, tmp_path)(2)
    assert NONE == counted(RingDemand(5, 1000, 128, 1e-7), tmp_path)(1)
    assert NONE == counted(RingDemand(4, 1000, 129, 1e-7), tmp_path)(1)
    (tmp_path / "stage_area.json").write_text("[]")
    with pytest.raises(SpecError, match=r"is not what python -m benchmarks\.stage_area writes"):
        counted(demand, tmp_path)


def test_the_command_shows_rings_and_marks_the_best() -> None:
    ran = invoke("--window", "1024", "--streams", "3", "--clock", "0.6")
    assert 0 == ran.exit_code, ran.output
    lines = ran.stdout.splitlines()
    assert "1,000 tuples a second of each of 3 streams, windows of 1,024:" == lines[0]
    marked = {line.split()[0]: line.rstrip()[-6:] for line in lines if line.strip()[:1].isdigit()}
    assert marked["1"].endswith("✘") and "✔ best" == marked["2"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--window", "64", "--streams", "9", "--clock", "1"), "A ring has 3 to 8 streams, not 9"),
        (("--window", "64,32", "--streams", "3", "--clock", "1"), "The windows of three streams and more are as long"),
        (("--window", "0", "--streams", "3", "--clock", "1"), "There are 2 streams at least, windows of 1 row"),
        (("--window", "64", "--streams", "3"), "Nobody has estimated the clock of rings"),
        (("--window", "64", "--streams", "3", "--clock", "-1"), "A clock is more than 0 MHz, not -1"),
        (("--window", "1000000000", "--streams", "3", "--clock", "1"), "The model has room for 4,194,304 rows of each"),
        (("--window", "64", "--streams", "1"), "A join has 2 streams at least, not 1"),
        (("--window", "64", "--streams", "3", "--clock", "1", "--cores", "4"), "--cores is for joins of two streams"),
        (("--window", "64", "--streams", "3", "--clock", "1", "--scan", "eager"), "--scan is for joins of two streams"),
        (("--window", "64", "--streams", "3", "--clock", "1", "--match-probability", "2"), "A match probability is"),
    ],
)
def test_what_is_asked_wrongly_is_named(arguments: tuple[str, ...], message: str) -> None:
    ran = invoke(*arguments)
    assert (2, True) == (ran.exit_code, ran.stderr.startswith(f"handfast: {message}")), ran.stderr
