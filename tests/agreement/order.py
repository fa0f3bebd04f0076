"""Whether a result stands in the order that the oracle's has."""

from __future__ import annotations

from itertools import groupby
from typing import Any

import pyarrow as pa

from handfast.judge import oracle
from tests.agreement.runs import session_batches
from tests.judges.rows import Row, multiset, result_of
from tests.strategies import Case

Rows = list[tuple[Any, ...]]


def groups(case: Case, tables: dict[str, list[Row]]) -> list[Rows]:
    """The oracle's result, the rows of one `at` together, in the order of its rank."""
    together = groupby(oracle.stamped_result(case.join, tables), key=lambda row: row[0].rank)
    return [[row for _, row in group] for _, group in together]


def given_by_steps(case: Case) -> Rows:
    """What the local engine gives step by step and at the end, as it comes."""
    before, after = session_batches(case)
    return [row for b in (*before, *after) for row in result_of(pa.Table.from_batches([b]))]


def stands_in_order(given: Rows, expected: list[Rows]) -> bool:
    """Whether these are the rows of the groups, group after group."""
    start = 0
    for group in expected:
        if multiset(given[start : start + len(group)]) != multiset(group):
            return False
        start += len(group)
    return start == len(given)
