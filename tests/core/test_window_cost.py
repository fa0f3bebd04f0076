"""What a join costs follows the pairs in its windows: candidates are counted, not timed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import handfast as hf
from handfast.kernels.columns import Columns
from handfast.kernels.course import Ranges
from handfast.kernels.index import merging, pane_loops, panes, sorted_blocks
from handfast.kernels.index.hashed import HashIndex
from handfast.kernels.pairs import PairKernels, Pairs

SHORT = 8  # tuples of the shortest pane or basic block of a band: all whose range reaches into it try the whole of it
ROWS = 4_000  # of each stream, a millisecond apart on average
TIME_WINDOW, COUNT_WINDOW = "3 ms", "5 rows"

KEY = "r.k = s.k"  # one key for all
BAND = "r.x BETWEEN s.x - 1000 AND s.x + 1000"  # wide enough for all
CONDITIONS = {
    "one key": KEY,
    "band": BAND,
    "key and band": f"{KEY} AND {BAND}",
    "everyone": "TRUE",
    "order": "r.x < s.x",
    "no number": "r.nan BETWEEN s.nan - 1 AND s.nan + 1",
    "rounding larger than the band": "r.large BETWEEN s.large - 0.001 AND s.large + 0.001",
}


def stream(seed: int, *, disorder: int = 0) -> pa.Table:
    rng = np.random.default_rng(seed)
    times = np.sort(rng.integers(0, ROWS * 1_000, ROWS))
    table = pa.table(
        {
            "ts": pa.array(times).cast(pa.timestamp("us")),
            "k": np.zeros(ROWS, np.int64),
            "x": rng.integers(0, 1_000, ROWS),
            "nan": np.full(ROWS, np.nan),
            "large": rng.random(ROWS) * 1e18,
            "n": np.arange(ROWS),
        }
    )
    return table.take(pa.array(np.argsort(np.arange(ROWS) + rng.uniform(0, disorder, ROWS)))) if disorder else table


@pytest.fixture
def tried(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many pairs each call of a kernel looks at."""
    counts: list[int] = []
    check, scanned = PairKernels.check, PairKernels._scanned

    def counted_check(self: PairKernels, r: Columns, s: Columns, literals: Any, candidates: Pairs) -> Pairs:
        counts.append(len(candidates[0]))
        return check(self, r, s, literals, candidates)

    def counted_scan(
        self: PairKernels, outer: int, outers: Columns, inners: Columns, ranges: Ranges, literals: Any
    ) -> Iterator[Pairs]:
        counts.append(int(ranges.sizes.sum()))
        return scanned(self, outer, outers, inners, ranges, literals)

    def counted_proposals(index: type[Any]) -> None:
        candidates = index.candidates

        def counted(self: Any, keys: Any, ranges: Ranges) -> Iterator[Pairs]:
            for some in candidates(self, keys, ranges):
                counts.append(len(some[0]))
                yield some

        monkeypatch.setattr(index, "candidates", counted)

    counted_proposals(HashIndex)  # whose proposals are not checked where the keys say all
    runs = pane_loops.runs

    def counted_runs(*words: Any) -> int:
        n = int(runs(*words))
        firsts, ends = words[-3][:n], words[-2][:n]
        counts.append(int((ends.astype(np.int64) - firsts).sum()))
        return n

    monkeypatch.setattr(pane_loops, "runs", counted_runs)
    sweep = merging.sweep

    def counted_sweep(*words: Any) -> int:
        before, n = words[-2], int(sweep(*words))
        firsts, ends = words[-4][before:n], words[-3][before:n]
        counts.append(int((ends.astype(np.int64) - firsts).sum()))
        return n

    monkeypatch.setattr(merging, "sweep", counted_sweep)
    for index in (panes, sorted_blocks):
        monkeypatch.setattr(index, "_BASIC", SHORT)
    monkeypatch.setattr(PairKernels, "check", counted_check)
    monkeypatch.setattr(PairKernels, "_scanned", counted_scan)
    return counts


def at_the_edges(local_join: str, condition: str) -> int:
    """How many pairs more a join may try: all of the pane or basic block at either end of a tuple's range."""
    return 2 * ROWS * 2 * SHORT if local_join != "scan" and condition in ("band", "key and band") else 0


def pairs_in_windows(r: pa.Table, s: pa.Table, window: str) -> int:
    r_times, s_times = (table["ts"].cast(pa.int64()).to_numpy() for table in (r, s))
    if window == TIME_WINDOW:
        inside = np.searchsorted(s_times, r_times + 3_000) - np.searchsorted(s_times, r_times - 3_000, side="right")
        return int(inside.sum())
    # by the definition: at each tuple, the last rows of the other stream
    order = np.argsort(np.concatenate([r_times, s_times]), kind="stable")
    of_r = order < len(r)
    before_r, before_s = np.cumsum(of_r) - of_r, np.cumsum(~of_r) - ~of_r
    return int(np.minimum(np.where(of_r, before_s, before_r), 5).sum())


@pytest.mark.parametrize("window", [TIME_WINDOW, COUNT_WINDOW])
@pytest.mark.parametrize("condition", CONDITIONS)
@pytest.mark.parametrize("local_join", ["index", "merge", "scan"])
def test_a_join_of_tables_tries_the_pairs_in_its_windows(
    local_join: str, condition: str, window: str, tried: list[int]
) -> None:
    r, s = stream(1), stream(2)
    hf.join(
        {"r": r, "s": s},
        on=CONDITIONS[condition],
        window=window,
        time="ts",
        sequence="n",
        options=hf.LocalOptions(cores=1, local_join=local_join),
    )
    inside = pairs_in_windows(r, s, window)
    assert 0 < sum(tried) <= inside + at_the_edges(local_join, condition)


@pytest.mark.parametrize("window", [TIME_WINDOW, COUNT_WINDOW])
@pytest.mark.parametrize("condition", ["one key", "band", "everyone", "no number"])
@pytest.mark.parametrize("disorder", [0, 40])
def test_a_session_tries_little_more_however_it_is_fed(
    condition: str, window: str, disorder: int, tried: list[int]
) -> None:
    tables = {"r": stream(1, disorder=disorder), "s": stream(2, disorder=disorder)}
    spec = hf.JoinSpec(["r", "s"], CONDITIONS[condition], window=window, time="ts", sequence="n", lateness="1 second")
    schemas = {name: table.schema for name, table in tables.items()}
    with hf.session(spec, schemas, options=hf.LocalOptions(cores=1)) as session:
        for start in range(0, ROWS, 500):
            for name, table in tables.items():
                session.push(name, table.slice(start, 500))
        session.close()
    inside = pairs_in_windows(stream(1), stream(2), window)
    # where tuples come out of order, those that others came before are looked at, too: as many as the disorder holds
    assert 0 < sum(tried) <= inside + (2 * ROWS * 2 * disorder) + at_the_edges("index", condition)


@pytest.mark.parametrize("condition", ["r.k = s.k AND s.k = t.k", "TRUE"])
def test_three_streams_try_what_their_windows_hold(condition: str, tried: list[int]) -> None:
    tables = {"r": stream(1), "s": stream(2), "t": stream(3)}
    found = hf.join(tables, on=condition, window=TIME_WINDOW, time="ts", options=hf.LocalOptions(cores=1))
    assert 0 < sum(tried) <= 4 * len(found)


@pytest.mark.parametrize("forwarding", ["low-latency", "handshake"])
def test_cores_in_threads_try_no_more(forwarding: str, tried: list[int]) -> None:
    r, s = stream(1), stream(2)
    options = hf.LocalOptions(cores=2, forwarding=forwarding)
    hf.join({"r": r, "s": s}, on=KEY, window=TIME_WINDOW, time="ts", options=options)
    assert 0 < sum(tried) <= pairs_in_windows(r, s, TIME_WINDOW)
