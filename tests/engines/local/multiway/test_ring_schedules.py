"""Ring and stash under adversarial schedules: whoever runs next, the matches are the oracle's. Broken, they tell."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.agreement.runs import check_session
from tests.engines.local.multiway.broken import BROKEN, OF_MOVES
from tests.engines.local.multiway.scheduled import check, holds, small_pieces
from tests.strategies.graphs import drifting_case

SCHEDULES = 500
CHUNK = 50
TRIED = 150  # schedules that may be tried to tell a broken rule
# where to begin, if the first schedule that tells is far from the beginning
FIRST = {
    "what_was_made_counted_before_what_has_ended": 148,
    "own_stage_loses_its_tuples": 25,
    "an_overwrite_missed": 26,
    "nothing_computed_again": 26,
    "computed_again_once_only": 28,
    "computed_again_until_the_first_that_was_lost_has_expired": 80,
    "what_was_lost_forgotten_when_tuples_move": 90,
    "the_windows_a_stash_begins_with_forgotten": 135,
    "the_first_piece_kept_alone": 26,
    "pairs_kept_of_tuples_that_are_stored_elsewhere": 27,
    "tuples_that_look_into_the_stash_first": 25,
}
SIZES = (None, 2)  # of a stash

Broken = Callable[[pytest.MonkeyPatch], None]


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
    broken: Broken, monkeypatch: pytest.MonkeyPatch, record_property: Callable[[str, object], None]
) -> None:
    broken(monkeypatch)
    first = FIRST.get(broken.__name__, 0)
    told = next((seed for seed in range(first, first + TRIED) if not holds(seed)), None)
    assert told is not None, f"{TRIED} schedules do not tell"
    record_property(f"first schedule that tells {broken.__name__}", told)


def _is_right(seed: int, size: int | None) -> bool:
    """Whether a session whose tuples soon expire finds what the oracle finds."""
    case = drifting_case(seed, 3)
    right = case.expected_of_steps(), case.expected_at_close()
    try:
        with small_pieces(3, 4):
            check_session(case, {"algorithm": "stashed", "stash_size": size, "cores": case.cores}, right)
    except Exception:  # noqa: BLE001 — what is broken may fail as it likes
        return False
    return True


@pytest.mark.parametrize("broken", OF_MOVES, ids=lambda broken: broken.__name__)
def test_a_session_catches(broken: Broken, monkeypatch: pytest.MonkeyPatch) -> None:
    broken(monkeypatch)
    assert not all(_is_right(seed, size) for seed in range(5) for size in SIZES)


def test_sessions_of_stages_as_they_are_find_nothing_wrong() -> None:
    assert all(_is_right(seed, size) for seed in range(5) for size in SIZES)
