"""`handfast run`: what it writes is what the oracle finds, and what it refuses is what the oracle refuses."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.agreement.pipeline import run_pipeline
from tests.agreement.runs import Result
from tests.judges.rows import multiset
from tests.strategies import MULTI, SHAPES, Case

CHUNK = 20
HOW = ("inner", "left", "right", "full", "semi", "anti")
Record = Callable[[str, object], None]


def _case(seed: int, *, for_spark: bool = False) -> Case:
    """A case of any kind, by turns: time and count windows, valid times, six joins, two streams and more."""
    chance = random.Random(seed)
    pool = MULTI if seed % 5 == 4 else SHAPES
    case = Case.of(seed, for_spark=for_spark, shape=pool[seed * 7 % len(pool)])
    case = case.counted(chance) if seed % 3 == 0 else case
    case = case.valid(chance) if seed % 4 == 1 else case
    case = case.asked(how=HOW[seed % len(HOW)]) if len(case.streams) == 2 else case
    return case.asked(in_order=True) if seed % 7 == 0 and case.spec.how in ("inner", "semi") else case


def _streamed(case: Case) -> dict[str, Result]:
    """What must be in every folder when the steps have come one by one."""
    expected = {"matches": case.expected_of_steps()}
    for kind, refused in (("late", case.admission.late), ("rejected", case.admission.rejected)):
        expected |= {f"{kind}/{name}": multiset(map(_values, rows)) for name, rows in refused.items()}
    return expected


def _values(row: dict[str, Any]) -> Sequence[Any]:
    return tuple(value for column, value in row.items() if column != "#")


def _check(case: Case, folder: Path, *, engine: str, mode: str) -> None:
    expected = _streamed(case) if mode == "stream" else {"matches": case.expected()}
    assert expected == run_pipeline(case, folder, engine=engine, mode=mode), f"{case}"


@pytest.mark.parametrize("mode", ["batch", "stream"])
@pytest.mark.parametrize("start", range(0, 60, CHUNK))
def test_a_pipeline_in_this_process_writes_what_the_oracle_finds(
    tmp_path: Path, start: int, mode: str, record_property: Record
) -> None:
    for seed in range(start, start + CHUNK):
        folder = tmp_path / str(seed)
        folder.mkdir()
        _check(_case(seed), folder, engine="local", mode=mode)
    record_property("pipeline cases", CHUNK)


@pytest.mark.spark
@pytest.mark.usefixtures("shared_session")
@pytest.mark.parametrize(("mode", "seed"), [("batch", 3), ("stream", 9), ("stream", 13)])
def test_a_pipeline_on_spark_writes_what_the_oracle_finds(
    tmp_path: Path, mode: str, seed: int, record_property: Record
) -> None:
    _check(_case(seed, for_spark=True), tmp_path, engine="spark", mode=mode)
    record_property("pipeline cases", 1)
