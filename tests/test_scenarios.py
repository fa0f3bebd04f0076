"""Every judge and engine finds in a golden timeline what a person finds."""

from __future__ import annotations

import pytest

from tests.scenarios.timeline import ENGINES, Scenario, run, scenarios

SCENARIOS = scenarios()


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.title)
def test_an_engine_finds_what_a_person_finds(engine: str, scenario: Scenario) -> None:
    assert scenario.matches == run(engine, scenario)


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.title)
def test_the_oracle_refuses_at_the_door_whom_a_person_refuses(scenario: Scenario) -> None:
    admission = scenario.admission()
    assert scenario.late == {row["name"] for rows in admission.late.values() for row in rows}
    assert scenario.rejected == {row["name"] for rows in admission.rejected.values() for row in rows}
