"""Matches copy the columns of the result and no others."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import handfast as hf
from handfast.core import segment
from handfast.core.flat import FlatColumns
from handfast.judge import oracle
from tests.judges.rows import multiset, result_of, schemas_of, tables_of


def _stream(rows: int, step: int) -> pa.Table:
    return pa.table(
        {
            "ts": pa.array(range(0, rows * step, step), pa.timestamp("s")),
            "k": [number % 3 for number in range(rows)],
            "text": [f"row {number}" for number in range(rows)],
        }
    )


TABLES = {"r": _stream(40, 2), "s": _stream(30, 3)}


@pytest.mark.parametrize("how", ["inner", "left", "full", "semi", "anti"])
@pytest.mark.parametrize("window", ["7 seconds", "4 rows"])
@pytest.mark.parametrize("in_order", [False, True])
@pytest.mark.parametrize(
    ("select", "copied"),
    [
        ("r.k AS a", {"k"}),
        ("match_time AS m", set()),
        ("r.text AS a, r.k AS b, r.k AS c, match_time AS t", {"k", "text"}),
    ],
)
def test_only_the_columns_of_the_result_are_gathered(
    how: str, window: str, in_order: bool, select: str, copied: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    gathered: list[set[str]] = []
    gather = segment.gather

    def watched(batches: Any, *where: Any) -> pa.RecordBatch:
        gathered.append(set(batches[0].schema.names))
        return gather(batches, *where)

    monkeypatch.setattr(segment, "gather", watched)
    take = FlatColumns.take

    def read(flat: FlatColumns, place: int, *where: Any) -> pa.Array:
        gathered.append({TABLES["r"].column_names[place]})
        return take(flat, place, *where)

    monkeypatch.setattr(FlatColumns, "take", read)
    asked: dict[str, Any] = {
        "on": "r.k = s.k", "window": window, "time": "ts", "how": how, "in_order": in_order, "select": select,
    }  # fmt: skip
    join = hf.JoinSpec(("r", "s"), **asked).bind(schemas_of(TABLES))
    assert multiset(oracle.result(join, tables_of(TABLES))) == multiset(result_of(hf.join(TABLES, **asked)))
    assert all(names <= copied for names in gathered), gathered
    assert gathered or how == "anti"
