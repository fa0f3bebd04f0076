"""Cases for admission, and what its counters must be."""

from __future__ import annotations

import math
import random
from functools import cache
from typing import TYPE_CHECKING

from handfast.judge import oracle
from tests.strategies import Case

if TYPE_CHECKING:
    from handfast.flow.metrics import Metrics


def bounded_in_time(seed: int, *, for_spark: bool = False) -> Case:
    """A case with bounds on its times; every second one counts."""
    chance = random.Random(seed)
    case = Case.of(seed, for_spark=for_spark)
    return (case.counted(chance) if seed % 2 else case).valid(chance)


@cache
def late_cases() -> list[Case]:
    """Cases in which rows are late, and others rejected: by time windows, then by count windows, and so on."""
    found: list[Case] = []
    seed = 0
    while len(found) < 4:
        case = bounded_in_time(seed, for_spark=True)
        wanted = bool(len(found) % 2) == case.join.counted
        if wanted and any(case.admission.late.values()) and any(case.admission.rejected.values()):
            found += [case] if case.expected_of_steps() else []
        seed += 1
    return found


def check_counters(case: Case, found: Metrics, matches: int) -> None:
    """The counters at the end of a case are those of the oracle's admission."""
    admission = case.admission
    final = oracle.final(case.join, admission)
    assert matches == found.matches
    assert admission.watermark == (-math.inf if found.watermark is None else found.watermark)
    for name in case.streams:
        own, sent = found.streams[name], case.tables[name].num_rows
        late, rejected = len(admission.late[name]), len(admission.rejected[name])
        waiting = len(admission.admitted[name]) - len(final[name])
        assert (sent, waiting, late, rejected) == (own.rows_in, own.waiting, own.late, own.rejected), f"{name}: {case}"


def adds_up(found: Metrics) -> bool:
    """Whether every row is accounted for."""
    return all(
        own.rows_in == own.waiting + own.live + own.expired + own.late + own.shed + own.rejected
        for own in found.streams.values()
    )
