"""A typed tree is shown as SQL that means the same."""

from __future__ import annotations

import pytest

from handfast.spec import types
from handfast.spec.predicate import bind
from handfast.spec.schema import Schema
from handfast.spec.shown import shown

COLUMNS = Schema(
    (
        ("i", types.INT32),
        ("d", types.DOUBLE),
        ("p", types.decimal(10, 2)),
        ("k", types.STRING),
        ("x", types.BINARY),
        ("day", types.DATE),
        ("ts", types.TIMESTAMP),
    )
)


@pytest.mark.parametrize(
    ("sql", "text"),
    [
        ("r.k LIKE s.k", "r.k LIKE s.k"),
        ("r.i > s.d", "s.d < r.i"),
        ("r.p / s.p > 1", "1 < (r.p / s.p)"),
        ("r.p - s.p <= -0.05", "(r.p - s.p) <= -0.05"),
        ("NOT r.k || s.k = 'it\\'s'", r"NOT (CONCAT(r.k, s.k) = 'it\'s')"),
        ("r.i IS NULL OR -r.i IN (s.i)", "(r.i IS NULL) OR (-(r.i) = s.i)"),
        ("r.x = X'1f' AND s.day < DATE '2026-01-31'", "(r.x = X'1F') AND (s.day < DATE '2026-01-31')"),
        ("r.ts < TIMESTAMP '2026-01-31 12:00:00'", "r.ts < TIMESTAMP '2026-01-31 12:00:00'"),
        ("CASE WHEN r.i > s.i THEN r.k END = 'a'", "CASE WHEN s.i < r.i THEN r.k ELSE NULL END = 'a'"),
        (f"r.i + s.i IN ({', '.join(map(str, range(20)))})", "(r.i + s.i) IN (0, 1, 2, …)"),
        ("(NOT r.i = s.i) IS NULL", "(NOT (r.i = s.i)) IS NULL"),
        ("(r.i IS NULL) = (s.i IS NULL)", "(r.i IS NULL) = (s.i IS NULL)"),
        ("r.ts - s.ts < INTERVAL '1.5' SECOND", "(r.ts - s.ts) < INTERVAL '1.5' SECOND"),
        ("r.ts - s.ts < INTERVAL -90 MINUTES", "(r.ts - s.ts) < INTERVAL '-90' MINUTE"),
        ("r.ts - s.ts < INTERVAL 0 DAYS", "(r.ts - s.ts) < INTERVAL '0' SECOND"),
    ],
)
def test_a_tree_is_shown_as_sql(sql: str, text: str) -> None:
    schemas = {"r": COLUMNS, "s": COLUMNS}
    assert text == shown(bind(sql, schemas), ("r", "s"))
    if "…" not in text:
        assert bind(sql, schemas) == bind(text, schemas)
