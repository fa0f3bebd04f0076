"""Where stored tuples stand must not change a result: expired ones are dropped as soon as there are any."""

from __future__ import annotations

import random

import pytest

from handfast.core import join_core, segment
from handfast.kernels import growing
from handfast.kernels.index import hashed, pane, panes
from handfast.plan import LOCAL_JOINS
from tests.agreement.runs import check_session
from tests.sampling import sampled
from tests.strategies import MULTI, SHAPES, Case

HOW = ("inner", "left", "inner", "full", "semi", "anti")


def _case(seed: int) -> Case:
    rng = random.Random(seed)
    case = Case.of(seed, shape=rng.choice(MULTI if seed % 4 == 0 else SHAPES))
    if seed % 3 == 0:
        case = case.counted(rng)
    return case.asked(how=HOW[seed % 6]) if len(case.streams) == 2 else case


@pytest.mark.parametrize("start", sampled(range(0, 120, 10), 6))
def test_a_session_finds_the_same_however_often_positions_move(start: int, monkeypatch: pytest.MonkeyPatch) -> None:
    dropped = []
    drop = segment.Segment.drop

    def watched(own: segment.Segment) -> None:
        before = own.stop
        drop(own)
        dropped.append(before > own.stop)

    monkeypatch.setattr(segment.Segment, "drop", watched)
    for module, name, size in (
        *((segment, "_SPARE", 0), (segment, "_SMALLEST", 4), (segment, "_FAN", 2)),
        *((join_core, "_SPARE_STRINGS", 0), (hashed, "_ROOM", 2), (hashed, "_FAR", 200)),
        *((growing, "_LEAST", 1), (growing, "_SPARE", 1 << 40)),
        *((pane, "_SMALLEST", 2), (panes, "_BASIC", 4), (panes, "_LEAST", 1)),
    ):
        monkeypatch.setattr(module, name, size)
    for seed in range(start, start + 10):
        case = _case(seed)
        right = case.expected_of_steps(), case.expected_at_close()
        for local_join in LOCAL_JOINS:
            check_session(case, {"local_join": local_join}, right)
    assert any(dropped)
