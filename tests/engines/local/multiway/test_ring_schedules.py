"""Ring and stash under adversarial schedules: whoever is let run next, the matches are the oracle's. Broken, they tell."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.engines.local.multiway.broken import BROKEN
from tests.engines.local.multiway.scheduled import check, holds

SCHEDULES = 500
CHUNK = 50
TRIED = 150  # schedules that may be tried to tell a broken rule
FIRST = {}  # where to begin, if the first schedule that tells is far from the beginning


@pytest.mark.parametrize("start", range(0, SCHEDULES, CHUNK))
def test_every_schedule_finds_what_the_oracle_finds(start: int, record_property: Callable[[str, object], None]) -> None:
    for seed in range(start, start + CHUNK):
        check(seed)
    record_property("schedules of rings and stashes", CHUNK)


@pytest.mark.slow
@pytest.mark.parametrize("start", range(SCHEDULES, 10_000 + SCHEDULES, 500))
def test_thousands_of_schedules_find_what_the_oracle_finds(start: int) -> None:
    for seed in range(start, start + 500):
        check(seed)


@pytest.mark.parametrize("broken", BROKEN, ids=lambda broken: broken.__name__)
def test_a_schedule_catches(
    broken: Callable[[pytest.MonkeyPatch], None],
    monkeypatch: pytest.MonkeyPatch,
    record_property: Callable[[str, object], None],
) -> None:
    broken(monkeypatch)
    first = FIRST.get(broken.__name__, 0)
    told = next((seed for seed in range(first, first + TRIED) if not holds(seed)), None)
    assert told is not None, f"{TRIED} schedules do not tell"
    record_property(f"first schedule that tells {broken.__name__}", told)
