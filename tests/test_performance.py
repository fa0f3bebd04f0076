"""docs/performance.md shows what the benchmarks wrote down, and `make bench` runs every one of them."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest

from benchmarks import page
from benchmarks.__main__ import QUESTIONS
from benchmarks.peers.job import LENGTH, WIDTH, bucket, buckets
from benchmarks.streaming_peers import matches, tuples

BENCHMARKS = page.HOME
RESULTS = sorted((BENCHMARKS / "results").rglob("*.json"))


def test_the_tables_of_the_page_are_what_the_benchmarks_wrote_down() -> None:
    assert page.page() == page.PAGE.read_text(encoding="utf-8"), "run python -m benchmarks.page"


def test_every_table_is_on_the_page() -> None:
    marks = re.findall(r"<!-- ([a-z ]+) -->", page.PAGE.read_text(encoding="utf-8"))
    assert sorted(page.TABLES) == sorted(mark for mark in marks if mark != "end")


def test_a_missed_goal_is_said() -> None:
    assert "**no**" in str(page.ratio("slow", {"median": 0.5, "low": 0.4, "high": 0.6}, least=1.0))
    assert "**no**" not in str(page.ratio("quick", {"median": 1.5, "low": 1.4, "high": 1.6}, least=1.0))
    assert "**no**" in str(page.ratio("dear", {"median": 1.5}, most=1.0))


@pytest.mark.parametrize("result", RESULTS, ids=lambda path: str(path.relative_to(BENCHMARKS)))
def test_a_result_says_what_it_ran_with(result: Path) -> None:
    written = json.loads(result.read_text(encoding="utf-8"))
    about = written.get("setting", written)
    assert "handfast" in about.get("versions", about)


def test_every_file_that_answers_a_question_is_run() -> None:
    asking = {path.stem for path in BENCHMARKS.glob("*.py") if path.read_text().partition("\n")[0].endswith("?")}
    assert asking == set(QUESTIONS)


@pytest.mark.parametrize("form", ["equality", "band"])
def test_the_judge_of_streaming_peers_finds_what_trying_every_pair_finds(form: str) -> None:
    r, s = (tuples(stream, 400) for stream in "rs")
    r[:, 3:], s[:, 3:] = r[:, 3:] % 90, s[:, 3:] % 90  # close together, so that there is something to find
    r[:, 2], s[:, 2] = r[:, 2] % 50, s[:, 2] % 50
    r[:, 1], s[:, 1] = r[:, 1] * 500, s[:, 1] * 500  # beyond one window
    every = np.abs(r[:, None, 1] - s[None, :, 1]) < LENGTH
    if form == "equality":
        every &= r[:, None, 2] == s[None, :, 2]
    else:
        every &= (np.abs(r[:, None, 3:] - s[None, :, 3:]) <= WIDTH).all(axis=2)
    expected = np.argwhere(every)
    assert len(expected) > 100
    assert np.array_equal(matches(r, s, form), expected)


def test_partners_in_a_band_share_one_bucket() -> None:
    rng = np.random.default_rng(1)
    for x, y in rng.integers(1, 10_001, (200, 2)).tolist():
        for a, b in ((x + dx, y + dy) for dx in (-WIDTH, 0, WIDTH) for dy in (-WIDTH, 3, WIDTH)):
            assert buckets(a, b).count(bucket(x, y)) == 1
