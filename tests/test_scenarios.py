"""Every judge and engine finds in a golden timeline what a person finds, and when a person knows it."""

from __future__ import annotations

import re
from itertools import accumulate

import pytest

from tests.scenarios.page import PAGE, page
from tests.scenarios.timeline import ENGINES, Scenario, count, run_local, scenarios

SCENARIOS = scenarios()
EACH = pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.title)


@pytest.mark.parametrize("engine", ENGINES)
@EACH
def test_an_engine_finds_what_a_person_finds(engine: str, scenario: Scenario) -> None:
    found = ENGINES[engine](scenario)
    assert count(scenario.matches) == count(found)
    if scenario.spec.in_order and engine != "duckdb":
        assert scenario.matches == found


@EACH
def test_the_oracle_refuses_at_the_door_whom_a_person_refuses(scenario: Scenario) -> None:
    admission = scenario.admission()
    assert scenario.late == {row["name"] for rows in admission.late.values() for row in rows}
    assert scenario.rejected == {row["name"] for rows in admission.rejected.values() for row in rows}


@pytest.mark.parametrize("scenario", [s for s in SCENARIOS if s.after is not None], ids=lambda s: s.title)
def test_a_row_comes_when_a_person_is_certain_of_it(scenario: Scenario) -> None:
    assert scenario.after is not None
    assert len(scenario.after) == len(scenario.steps)
    sums = accumulate(scenario.after, lambda before, rows: [*before, *rows])
    for steps, decided in enumerate(sums, 1):
        assert count(decided) == count(scenario.decided(steps)), f"the oracle after batch {steps}"
    for cores in (1, 3):
        given = run_local(scenario, cores)[:-1]
        assert [count(rows) for rows in scenario.after] == [count(rows) for rows in given]


@EACH
def test_a_note_calls_tuples_and_streams_by_their_names(scenario: Scenario) -> None:
    tuples = [name for table in scenario.tables.values() for name in table["name"].to_pylist()]
    names = {*scenario.spec.names, *tuples}
    words = re.findall(r"\w+", scenario.text.get("note", ""))
    assert [] == [word for word in words if word not in names and word[0].lower() + word[1:] in names]


def test_every_section_has_a_timeline() -> None:
    assert {scenario.section for scenario in SCENARIOS} == set(range(1, 13))


def test_the_page_shows_the_timelines() -> None:
    assert PAGE.read_text() == page(), "python -m tests.scenarios.page writes it"
