"""Three streams that share one key: members of a match are checked against each other where it does not follow."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import handfast as hf
from handfast.core import probe

ROWS, KEYS = 48, 3
STREAMS = ("r", "s", "t")
LENGTHS = {"r": 20, "s": 9, "t": 14}  # microseconds


def rows(seed: int, late: int) -> dict[str, list[dict[str, Any]]]:
    """Tuples of each stream as they come, some of them late by up to so many microseconds, some without a key."""
    rng = np.random.default_rng(seed)
    return {
        name: [
            {
                "id": k,
                "ts": max(0, k - int(rng.integers(0, late + 1))),
                "k": None if rng.random() < 0.1 else int(rng.integers(KEYS)),
            }
            for k in range(ROWS)
        ]
        for name in STREAMS
    }


def expected(given: dict[str, list[dict[str, Any]]]) -> list[tuple[int, ...]]:
    """The matches by the definition: every two members have one key, and each is in its window when the other comes."""

    def fit(a: str, old: dict[str, Any], b: str, new: dict[str, Any]) -> bool:
        return old["k"] is not None and old["k"] == new["k"] and -LENGTHS[b] < new["ts"] - old["ts"] < LENGTHS[a]

    found = [
        (r["id"], s["id"], t["id"])
        for r, s, t in product(*(given[name] for name in STREAMS))
        if fit("r", r, "s", s) and fit("s", s, "t", t) and fit("r", r, "t", t)
    ]
    return sorted(found)


def found(given: dict[str, list[dict[str, Any]]], late: int, push: int) -> list[tuple[int, ...]]:
    """The matches of a session whose streams are pushed together, so many tuples at a time."""
    types = pa.schema([("id", pa.int64()), ("ts", pa.int64()), ("k", pa.int64())])
    tables = {name: pa.Table.from_pylist(own, types) for name, own in given.items()}
    tables = {name: own.set_column(1, "ts", own["ts"].cast(pa.timestamp("us"))) for name, own in tables.items()}
    spec = hf.JoinSpec(
        STREAMS,
        "r.k = s.k AND s.k = t.k",
        window={name: f"{length} us" for name, length in LENGTHS.items()},
        time="ts",
        lateness=f"{late} us",
        select="r.id, s.id, t.id",
    )
    options = hf.LocalOptions(cores=1, algorithm="plain")
    with hf.session(spec, {name: own.schema for name, own in tables.items()}, options=options) as session:
        starts = range(0, ROWS, push)
        given_out = [
            batch
            for k in starts
            for batch in session.push_together({name: own.slice(k, push) for name, own in tables.items()})
        ]
        given_out += session.close()
    return sorted(tuple(row.values()) for batch in given_out for row in batch.to_pylist())


CASES = [(seed, late, push) for seed, (late, push) in enumerate(product((0, 5, 30), (1, 7, 48)))]


@pytest.mark.parametrize(("seed", "late", "push"), CASES)
def test_members_fit_each_other_as_the_definition_says(seed: int, late: int, push: int) -> None:
    given = rows(seed, late)
    wanted = expected(given)
    assert len(wanted) > ROWS
    assert wanted == found(given, late, push)


def test_members_that_came_later_and_are_not_checked_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    doubtful = probe.Prober._doubtful

    def none(self: Any, new: Any, pairing: Any, members: Any) -> Any:
        some = doubtful(self, new, pairing, members)
        return some if some is None else some[:0]

    monkeypatch.setattr(probe.Prober, "_doubtful", none)
    given = rows(1, 5)
    assert expected(given) != found(given, 5, 48)
