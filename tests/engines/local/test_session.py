"""The session: batches in any order, matches at once, every row accounted for."""

from __future__ import annotations

import random
from collections import Counter
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest

import handfast as hf
from tests.judges.rows import multiset, result_of
from tests.strategies import Case

SCHEMA = pa.schema([("ts", pa.timestamp("us", "UTC")), ("x", pa.int64())])
SPEC = hf.JoinSpec(("r", "s"), "r.x = s.x", window="10 seconds", time="ts", lateness="2 seconds")
SECOND = 1_000_000


def _rows(*rows: tuple[int | None, int]) -> pa.Table:
    times = pa.array([None if t is None else t * SECOND for t, _ in rows], SCHEMA.field("ts").type)
    return pa.table({"ts": times, "x": pa.array([x for _, x in rows], pa.int64())})


def _session(**options: Any) -> Any:
    return hf.session(SPEC, {"r": SCHEMA, "s": SCHEMA}, options=hf.LocalOptions(**options))


def _count(batches: list[pa.RecordBatch]) -> int:
    return sum(batch.num_rows for batch in batches)


def test_matches_come_when_the_later_tuple_is_pushed() -> None:
    with _session() as session:
        assert 0 == _count(session.push("r", _rows((10, 1), (11, 2))))
        assert 1 == _count(session.push("s", _rows((12, 1))))
        assert 1 == _count(session.push("s", _rows((13, 2), (13, 9))))
        assert session.schema.names == ["r_ts", "r_x", "s_ts", "s_x", "match_time"]


def test_late_and_rejected_rows_are_counted_and_can_be_read_once() -> None:
    with _session() as session:
        session.push("r", _rows((20, 1)))
        session.push("s", _rows((20, 2)))
        assert 0 == _count(session.push("s", _rows((17, 1), (None, 1))))
        assert 1 == _count(session.push("s", _rows((18, 1))))
        assert [17 * SECOND] == session.late_rows()["s"]["ts"].cast(pa.int64()).to_pylist()
        assert [None] == session.rejected_rows()["s"]["ts"].to_pylist()
        assert 0 == session.late_rows()["s"].num_rows
        of_s = session.metrics().streams["s"]
        assert (4, 1, 1) == (of_s.rows_in, of_s.late, of_s.rejected)
        assert 18 * SECOND == session.metrics().watermark


def test_how_far_the_streams_have_come_is_given_as_datetimes() -> None:
    with _session() as session:
        assert (None, {"r": None, "s": None}) == (session.metrics().watermark_time, session.metrics().newest_times)
        session.push("r", _rows((20, 1), (19, 1), (None, 1)))
        session.push("s", _rows((30, 1)))
        newest = {name: datetime(1970, 1, 1, 0, 0, at, tzinfo=UTC) for name, at in (("r", 20), ("s", 30))}
        assert newest == session.metrics().newest_times
        assert datetime(1970, 1, 1, 0, 0, 18, tzinfo=UTC) == session.metrics().watermark_time


def test_rows_outside_of_the_valid_times_are_rejected_and_move_no_watermark() -> None:
    bounded = hf.JoinSpec(
        ("r", "s"),
        "r.x = s.x",
        window="10 s",
        time="ts",
        lateness="2 s",
        valid_from=5 * SECOND,
        valid_to={"r": None, "s": 30 * SECOND},
    )
    with hf.session(bounded, {"r": SCHEMA, "s": SCHEMA}) as session:
        session.push("r", _rows((4, 1), (20, 1)))
        assert 1 == _count(session.push("s", _rows((31, 1), (20, 1), (4, 1))))
        rejected = session.rejected_rows()
        assert [4 * SECOND] == rejected["r"]["ts"].cast(pa.int64()).to_pylist()
        assert [31 * SECOND, 4 * SECOND] == rejected["s"]["ts"].cast(pa.int64()).to_pylist()
        assert 18 * SECOND == session.metrics().watermark
        assert 2 == session.metrics().streams["s"].rejected


def test_an_idle_stream_does_not_hold_the_watermark() -> None:
    seconds = 0.0
    impatient = hf.JoinSpec(("r", "s"), "r.x = s.x", window="10 s", time="ts", lateness="2 s", idle_timeout="1 minute")
    with hf.session(impatient, {"r": SCHEMA, "s": SCHEMA}, clock=lambda: seconds) as session:
        session.push("r", _rows((20, 1)))
        session.push("s", _rows((10, 1)))
        assert 8 * SECOND == session.metrics().watermark
        seconds = 59.9
        session.push("r", _rows((100, 1)))
        assert 8 * SECOND == session.metrics().watermark
        seconds = 60.0
        session.push("r", _rows((101, 1)))
        assert 99 * SECOND == session.metrics().watermark
        assert 2 == _count(session.push("s", _rows((98, 1), (99, 1)))), "with r at 100 and 101, but 98 is late"
        assert 1 == session.metrics().streams["s"].late
        session.push("r", _rows((200, 1)))
        assert 99 * SECOND == session.metrics().watermark, "s is waited for again"
        seconds = 500.0
        session.push("r", _rows((None, 1)))
        assert 99 * SECOND == session.metrics().watermark, "where all are idle it stays"


def test_advance_moves_the_watermark_without_rows() -> None:
    with _session() as session:
        session.push("r", _rows((10, 1)))
        session.advance("r", datetime.fromtimestamp(100, UTC))
        session.advance("s", 100 * SECOND)
        assert 98 * SECOND == session.metrics().watermark
        assert 0 == session.metrics().streams["r"].live
        assert 0 == _count(session.push("s", _rows((15, 1))))
        assert 1 == session.metrics().streams["s"].late


@pytest.mark.parametrize("seed", range(60))
def test_every_row_is_accounted_for_at_every_moment(seed: int) -> None:
    case = Case.of(seed)
    case = case if seed % 2 else case.counted(random.Random(seed))
    schemas = {name: table.schema for name, table in case.tables.items()}
    session = hf.session(case.spec, schemas, options=hf.LocalOptions(cores=case.cores))
    pushes = [(name, table) for step in case.steps for name, table in step.items()]
    sent: Counter[str] = Counter()
    found: Counter[tuple[Any, ...]] = Counter()
    admitted: dict[str, list[pa.Table]] = {name: [] for name in case.streams}
    for name, table in pushes:
        batches = session.push(name, table)
        sent[name] += table.num_rows
        for batch in batches:
            found += multiset(result_of(pa.Table.from_batches([batch])))
        for stream, own in session.metrics().streams.items():
            parts = own.waiting + own.live + own.expired + own.late + own.shed + own.rejected
            assert own.rows_in == parts == sent[stream]
            assert min(own.waiting, own.live, own.expired, own.late, own.rejected) >= 0
        admitted[name].append(table)
    for batch in session.close():
        found += multiset(result_of(pa.Table.from_batches([batch])))
    assert sum(found.values()) == session.metrics().matches
    # one push is one batch: the oracle admits rows in the same batches
    from dataclasses import replace

    assert replace(case, steps=[{name: table} for name, table in pushes]).expected_at_close() == found


def test_a_batch_that_does_not_fit_is_refused_whole_and_the_session_goes_on() -> None:
    with _session() as session:
        session.push("r", _rows((10, 1)))
        with pytest.raises(hf.SpecError, match="lacks 'x'"):
            session.push("s", _rows((10, 1)).drop_columns(["x"]))
        with pytest.raises(hf.SpecError, match="has 'y', which the session does not know"):
            session.push("s", _rows((10, 1)).append_column("y", pa.array([1])))
        with pytest.raises(
            hf.SpecError, match="'ts' of a batch of stream 's' is of type string, and the session knows"
        ):
            session.push("s", pa.table({"ts": ["never"], "x": [1]}))
        with pytest.raises(hf.SpecError, match="'x' of a batch of stream 's' is of type string, and the session knows"):
            session.push("s", _rows((10, 1)).set_column(1, "x", pa.array(["1"])))
        with pytest.raises(hf.SpecError, match="does not fit its schema"):
            session.push("s", _rows((10, 1)).set_column(1, "x", pa.array([1.5])))
        with pytest.raises(hf.SpecError, match="no stream 'q'; it has r, s"):
            session.push("q", _rows((10, 1)))
        assert 0 == session.metrics().streams["s"].rows_in
        assert 1 == _count(session.push("s", _rows((11, 1))))
        assert 1 == _count(session.push("s", _rows((11, 1)).set_column(1, "x", pa.array([1.0]))))


def test_the_memory_limit_refuses_before_anything_is_lost() -> None:
    with _session(memory_limit=2_000) as session:
        session.push("r", _rows(*((10, k) for k in range(50))))
        before = session.metrics()
        with pytest.raises(hf.EngineError, match=r"over its memory_limit of 2,000; nothing was lost"):
            session.push("r", _rows(*((10, k) for k in range(200))))
        assert before == session.metrics()
        assert 1 == _count(session.push("s", _rows((11, 7))))


def test_a_closed_session_says_so() -> None:
    session = _session()
    session.close()
    assert [] == session.close()
    with pytest.raises(hf.EngineError, match="closed"):
        session.push("r", _rows((1, 1)))


def test_an_unbounded_stream_needs_a_lateness() -> None:
    spec = hf.JoinSpec(("r", "s"), "TRUE", window="1 s", time="ts")
    with pytest.raises(hf.SpecError, match="needs a lateness"):
        hf.session(spec, {"r": SCHEMA, "s": SCHEMA})
    with pytest.raises(hf.SpecError, match="needs the schema of stream 's'"):
        hf.session(SPEC, {"r": SCHEMA})
    with pytest.raises(hf.SpecError, match="needs the schema of every stream"):
        hf.session(SPEC, None)  # type: ignore[arg-type]
    with pytest.raises(hf.SpecError, match=r"options must be hf\.LocalOptions"):
        hf.session(SPEC, {"r": SCHEMA, "s": SCHEMA}, options={"cores": 2})  # type: ignore[arg-type]
    session = hf.session(SPEC, {"r": SCHEMA, "s": SCHEMA})
    with pytest.raises(hf.SpecError, match=r"has no stream \['r'\]"):
        session.push(["r"], _rows((1, 1)))  # type: ignore[arg-type]
    with pytest.raises(hf.SpecError, match="must be given by stream"):
        session.push_together("r")  # type: ignore[arg-type]


@pytest.mark.parametrize("options", [{"cores": True}, {"cores": "2"}, {"memory_limit": "1GB"}, {"memory_limit": 0}])
def test_options_that_make_no_sense_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(hf.SpecError, match="must be a positive number"):
        hf.LocalOptions(**options)
