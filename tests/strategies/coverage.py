"""What a case covers, measured on its data."""

from __future__ import annotations

import math
from itertools import pairwise, product
from typing import TYPE_CHECKING

from handfast.judge import evaluation, oracle
from handfast.spec.expression import Column, Literal, walk
from handfast.spec.meaning import AnsiError
from tests.judges.rows import rows_of, tables_of

if TYPE_CHECKING:
    from tests.strategies.cases import Case


def measure(case: Case) -> set[str]:
    """The facts about a case: see the names below."""
    join = case.join
    rows = [rows_of(case.tables[name]) for name in case.streams]
    stamps = oracle.stamp(join, tables_of(case.tables))
    predicate = evaluation.compile(join.predicate)
    windows = [stream.window for stream in case.spec.streams]
    found: set[str] = set()
    places = [[i for i, stamp in enumerate(own) if stamp is not None] for own in stamps]
    for indices in product(*places):
        members = [stamps[stream][i] for stream, i in enumerate(indices)]
        try:
            truth = predicate([rows[stream][i] for stream, i in enumerate(indices)]) is True
        except AnsiError:
            found.add("refused arithmetic")
            truth = False
        at = max(members, key=lambda stamp: stamp.rank)
        held = all(m is at or oracle.holds(windows[k], m, at, stream=k) for k, m in enumerate(members))
        found.add(
            {(True, True): "matches", (False, True): "non-matches", (True, False): "expiry"}.get((truth, held), "far")
        )
        if len({stamp.time for stamp in members}) < len(members):
            found.add("ties")
    named = [(node.stream, node.name) for node in walk(join.predicate) if isinstance(node, Column)]
    values = [row[name] for stream, name in named for row in rows[stream]]
    if None in values:
        found.add("nulls")
    if any(isinstance(value, float) and (not math.isfinite(value) or str(value) == "-0.0") for value in values):
        found.add("special floats")
    if any(isinstance(node, Literal) for node in walk(join.predicate)):
        found.add("constants")
    for name, time in zip(case.streams, join.times, strict=True):
        seen = [row[time] for row in rows[case.streams.index(name)] if row[time] is not None]
        if any(earlier > later for earlier, later in pairwise(seen)):
            found.add("disorder")
    if any(case.admission.late.values()):
        found.add("late")
    if any(case.admission.rejected.values()):
        found.add("rejected")
    if len(case.steps) > 1:
        found.add("several steps")
    if any(sum(len(table) > 0 for table in step.values()) == 1 for step in case.steps):
        found.add("a step of one stream")
    if any(not any(len(table) for table in step.values()) for step in case.steps):
        found.add("an empty step")
    return found
