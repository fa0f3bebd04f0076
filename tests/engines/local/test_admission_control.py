"""Admission control: a burst that overruns the cores loses no admitted row and grows no queue; every row is counted."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import handfast as hf
from handfast.core.join_core import JoinCore
from handfast.engines.local.admission_control import AdmissionControl
from handfast.engines.local.native import driver as native
from handfast.judge import oracle
from tests.judges.rows import multiset, result_of, schemas_of, tables_of

SCHEMA = pa.schema([("ts", pa.timestamp("us")), ("x", pa.int64())])
ASKED: dict[str, Any] = {"window": "1 second", "time": "ts"}
SPEC = hf.JoinSpec(("r", "s"), "r.x = s.x", **ASKED, lateness="1 hour")


def table(start: int, count: int) -> pa.Table:
    numbers = range(start, start + count)
    return pa.table(
        {"ts": pa.array([n * 1000 for n in numbers], SCHEMA.field("ts").type), "x": [n % 7 for n in numbers]}
    )


def expected(pushed: list[tuple[str, pa.Table]], shed: dict[str, pa.Table]) -> Counter[tuple[Any, ...]]:
    """What the oracle makes of the rows that were not shed."""
    tables = {name: pa.concat_tables([SCHEMA.empty_table(), *(t for n, t in pushed if n == name)]) for name in "rs"}
    admitted = {
        name: own.filter(pa.array(~np.isin(own["ts"].cast("int64"), shed[name]["ts"].cast("int64"))))
        for name, own in tables.items()
    }
    return multiset(oracle.result(SPEC.bind(schemas_of(admitted)), tables_of(admitted)))


def rows(batches: list[pa.RecordBatch]) -> Counter[tuple[Any, ...]]:
    return multiset(row for batch in batches for row in result_of(pa.Table.from_batches([batch])))


def adds_up(metrics: Any) -> bool:
    return all(
        own.rows_in == own.waiting + own.live + own.expired + own.late + own.shed + own.rejected
        for own in metrics.streams.values()
    )


@pytest.fixture
def stuck(monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Event]:
    """Cores that do nothing until the event is set."""
    free, scans = threading.Event(), JoinCore._scan

    def scan(core: JoinCore, new: Any) -> Any:
        free.wait()
        yield from scans(core, new)

    works = native._core_works

    def work(*args: Any) -> bool:
        free.wait()
        return works(*args)

    monkeypatch.setattr(JoinCore, "_scan", scan)
    monkeypatch.setattr(native, "_core_works", work)  # a chain in machine code has no JoinCores
    yield free
    free.set()


@pytest.mark.parametrize("cores", [1, 3])
@pytest.mark.parametrize(
    ("forwarding", "local_join"), [("low-latency", "index"), ("handshake", "index"), ("handshake", "scan")]
)
@pytest.mark.parametrize("admission", ["overflow", "shed"])
def test_a_burst_that_overruns_the_cores_loses_no_admitted_row(
    stuck: threading.Event, admission: str, forwarding: str, local_join: str, cores: int
) -> None:
    options = hf.LocalOptions(
        cores=cores, forwarding=forwarding, local_join=local_join, admission=admission, capacity=100
    )
    session = hf.session(SPEC, {"r": SCHEMA, "s": SCHEMA}, options=options)
    pushed, found = [], []
    for k in range(300):
        name = "rs"[k % 2]
        pushed.append((name, table(k * 20, 20)))
        found += session.push(*pushed[-1])
        metrics = session.metrics()
        assert adds_up(metrics)
        # a chain has channels besides, with 64 messages in each, and the cores are stuck at its ends
        most = 100 if forwarding == "low-latency" else 100 + 2 * 64 * 20
        assert sum(own.waiting for own in metrics.streams.values()) <= most
    streams = session.metrics().streams
    assert streams["r"].shed > 0
    assert streams["r"].rows_in == 3_000
    stuck.set()
    shed = session.shed_rows()
    found += session.close()
    assert {name: own.shed for name, own in streams.items()} == {name: len(own) for name, own in shed.items()}
    assert expected(pushed, shed) == rows(found)
    assert sum(rows(found).values()) > 0


def test_expiries_of_a_whole_window_do_not_keep_a_push_waiting(stuck: threading.Event) -> None:
    options = hf.LocalOptions(cores=2, forwarding="handshake", admission="overflow")
    session = hf.session(
        hf.JoinSpec(("r", "s"), "TRUE", **ASKED, lateness="0 seconds"), {"r": SCHEMA, "s": SCHEMA}, options=options
    )
    for k in range(150):
        session.push_together({"r": table(k, 1), "s": table(k, 1)})
    assert [] == session.push_together({"r": table(10_000_000, 1), "s": table(10_000_000, 1)})  # 300 expiries are due
    stuck.set()
    assert 150 * 150 + 1 == sum(batch.num_rows for batch in session.close())


def test_rows_that_find_their_place_do_not_keep_advance_waiting(stuck: threading.Event) -> None:
    spec = hf.JoinSpec(("r", "s"), "TRUE", window="1000 rows", time="ts", lateness="1 hour")
    session = hf.session(spec, {"r": SCHEMA, "s": SCHEMA}, options=hf.LocalOptions(cores=2, admission="overflow"))
    for start in (0, 10_000):
        session.push_together({"r": table(start, 5), "s": table(start, 5)})
    hour = 3_600_000_000

    def advance(seconds: float) -> list[pa.RecordBatch]:
        return [batch for name in "rs" for batch in session.advance(name, hour + int(seconds * 1_000_000))]

    for k in range(100):  # the first rows get the cores stuck, and the channels fill
        advance(1 + k / 1_000)
    assert [] == advance(20)
    assert adds_up(session.metrics())
    assert 0 == session.metrics().streams["r"].shed
    stuck.set()
    assert 10 * 10 == sum(batch.num_rows for batch in session.close())


def test_what_waits_for_the_cores_counts_for_the_memory_limit(stuck: threading.Event) -> None:
    options = hf.LocalOptions(cores=2, admission="overflow", memory_limit=20_000)
    session = hf.session(SPEC, {"r": SCHEMA, "s": SCHEMA}, options=options)
    with pytest.raises(hf.EngineError, match="over its memory_limit"):
        for k in range(100):
            session.push("r", table(k * 100, 100))
    assert session.metrics().streams["r"].waiting < 2_000
    stuck.set()
    session.close()


def test_with_back_pressure_nothing_is_shed_and_matches_come_at_once() -> None:
    with hf.session(SPEC, {"r": SCHEMA, "s": SCHEMA}, options=hf.LocalOptions(cores=2)) as session:
        assert [] == session.push("r", table(0, 100))
        assert 0 < sum(batch.num_rows for batch in session.push("s", table(0, 100)))
        assert 0 == session.metrics().streams["r"].shed


def test_what_is_found_later_can_be_polled(stuck: threading.Event) -> None:
    options = hf.LocalOptions(cores=2, admission="overflow")
    session = hf.session(SPEC, {"r": SCHEMA, "s": SCHEMA}, options=options)
    assert [] == session.push("r", table(0, 100))
    assert [] == session.push("s", table(0, 100))
    assert [] == session.poll()
    stuck.set()
    found: list[pa.RecordBatch] = []
    for _ in range(1_000_000):
        found += session.poll()
        if found and not session.metrics().streams["s"].waiting:
            break
    assert 0 < sum(batch.num_rows for batch in found)
    session.close()


# -- which rows are shed ---------------------------------------------------------------------------------------------


def control(**options: Any) -> AdmissionControl:
    return AdmissionControl(hf.LocalOptions(**{"admission": "shed", "target_load": 0.5, "capacity": 10_000} | options))


def overloaded(own: AdmissionControl) -> AdmissionControl:
    """Where 1,000 rows a second come, and the busiest core joins 500 in a second of work."""
    for second in range(10):
        own.observe(1000, float(second), (500 * second, float(second)))
    return own


def test_the_share_that_is_let_in_keeps_the_cores_at_the_target_load() -> None:
    assert 1.0 == control().share
    assert pytest.approx(0.25) == overloaded(control()).share
    assert pytest.approx(0.5) == overloaded(control(target_load=1.0)).share
    assert 1.0 == overloaded(control(admission="overflow")).share


def test_rows_are_shed_uniformly() -> None:
    times = np.arange(100_000, dtype=np.int64)
    shed = overloaded(control(capacity=1_000_000)).shed(times, 0, np.inf)
    assert 0.74 < shed.mean() < 0.76
    assert 0.73 < shed[:50_000].mean() < 0.77


def test_the_oldest_rows_are_shed_first() -> None:
    times = np.array([5, 1, 4, 2, 3, 0, 7, 6], np.int64)
    shed = overloaded(control(shedding="oldest")).shed(times, 0, np.inf)
    assert {0, 1, 2, 3, 4, 5} == set(times[shed].tolist())


def test_what_finds_no_room_is_shed_from_the_end() -> None:
    times = np.arange(10, dtype=np.int64)
    assert [False] * 4 + [True] * 6 == control(admission="overflow", capacity=10).shed(times, 6, np.inf).tolist()
    assert [False] * 3 + [True] * 7 == control(admission="overflow", capacity=10).shed(times, 6, 3).tolist()
    assert not control(admission="block").shed(times, 10**9, 0).any()
