"""Whether a result stands in the order that the oracle's has."""

from __future__ import annotations

from itertools import groupby
from typing import Any

from handfast import oracle
from tests.judges.rows import Row, multiset
from tests.strategies import Case

Rows = list[tuple[Any, ...]]


def groups(case: Case, tables: dict[str, list[Row]]) -> list[Rows]:
    """The oracle's result, the rows of one `at` together, in the order of its rank."""
    stamps = oracle.stamp(case.join, tables)
    rows, ranks, taken = oracle.result(case.join, tables), [], set()
    for indices in oracle.matches(case.join, tables):
        if case.join.gives_pairs or indices[0] not in taken:
            taken.add(indices[0])
            ranks.append(max(stamps[k][i].rank for k, i in enumerate(indices)))  # type: ignore[union-attr]
    assert len(rows) == len(ranks)
    assert ranks == sorted(ranks)
    together = groupby(zip(ranks, rows, strict=True), key=lambda pair: pair[0])
    return [[row for _, row in group] for _, group in together]


def stands_in_order(given: Rows, expected: list[Rows]) -> bool:
    """Whether these are the rows of the groups, group after group."""
    start = 0
    for group in expected:
        if multiset(given[start : start + len(group)]) != multiset(group):
            return False
        start += len(group)
    return start == len(given)
