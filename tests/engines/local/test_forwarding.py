"""Both ways of passing tuples on, in threads: the same result as the oracle's, no lost error, no thread left behind."""

from __future__ import annotations

import gc
import random
import threading
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

import pyarrow as pa
import pytest

import handfast as hf
from handfast.core.join_core import JoinCore
from handfast.engines.local.options import HANDSHAKE, LOW_LATENCY
from handfast.engines.local.placement import Placement
from handfast.plan import LOCAL_JOINS
from tests.agreement.order import groups, stands_in_order
from tests.judges.rows import multiset, result_of, tables_of
from tests.strategies import BANDS, Case

CORES = (1, 2, 3, 4, 7)
CASES = 100
SCHEMA = pa.schema([("ts", pa.timestamp("us")), ("x", pa.int64())])
SPEC = hf.JoinSpec(("r", "s"), "r.x < s.x", window="10 seconds", time="ts", lateness="2 seconds")


def options(seed: int, forwarding: str) -> hf.LocalOptions:
    local_join = LOCAL_JOINS[seed // len(CORES) % len(LOCAL_JOINS)]
    return hf.LocalOptions(cores=CORES[seed % len(CORES)], forwarding=forwarding, local_join=local_join)


def case_of(seed: int) -> Case:
    # every second one has a band, for the sake of the merge join
    case = Case.of(seed, shape=BANDS[seed // 2 % len(BANDS)]) if seed % 4 < 2 else Case.of(seed)
    return case.counted(random.Random(seed)) if seed % 2 else case


def rows(batches: Iterable[pa.RecordBatch]) -> Counter[tuple[Any, ...]]:
    return multiset(row for batch in batches for row in result_of(pa.Table.from_batches([batch])))


@pytest.mark.parametrize("forwarding", [LOW_LATENCY, HANDSHAKE])
def test_bounded_inputs_give_what_the_oracle_gives(
    forwarding: str, record_property: Callable[[str, object], None]
) -> None:
    for seed in range(CASES):
        case = case_of(seed)
        found = hf.join(case.tables, **case.kwargs, options=options(seed, forwarding))
        assert case.expected() == multiset(result_of(found)), f"seed {seed}: {case}"
    record_property(f"bounded, {forwarding}", CASES)


@pytest.mark.parametrize("forwarding", [LOW_LATENCY, HANDSHAKE])
def test_a_session_gives_what_the_oracle_gives(forwarding: str, record_property: Callable[[str, object], None]) -> None:
    for seed in range(CASES):
        case = case_of(seed)
        schemas = {name: table.schema for name, table in case.tables.items()}
        with hf.session(case.spec, schemas, options=options(seed, forwarding)) as session:
            found = [batch for step in case.steps for batch in session.push_together(step)]
            for own in session.metrics().streams.values():
                assert own.rows_in == own.waiting + own.live + own.expired + own.late + own.shed + own.rejected
        assert case.expected_at_close() == rows([*found, *session.close()]), f"seed {seed}: {case}"
        if forwarding == LOW_LATENCY:
            assert case.expected_of_steps() == rows(found), f"seed {seed}: {case}"
    record_property(f"session, {forwarding}", CASES)


@pytest.mark.parametrize("forwarding", [LOW_LATENCY, HANDSHAKE])
@pytest.mark.parametrize("seed", range(20))
def test_matches_in_order_come_in_order_from_every_number_of_cores(seed: int, forwarding: str) -> None:
    case = case_of(seed).asked(in_order=True)
    schemas = {name: table.schema for name, table in case.tables.items()}
    session = hf.session(case.spec, schemas, options=options(seed, forwarding))
    found = [batch for step in case.steps for batch in session.push_together(step)]
    given = [row for batch in [*found, *session.close()] for row in result_of(pa.Table.from_batches([batch]))]
    assert stands_in_order(given, groups(case, tables_of(case.admitted))), f"{case}"


@pytest.mark.parametrize("how", ["left", "semi"])
def test_joins_that_a_chain_cannot_do_are_refused(how: str) -> None:
    spec = hf.JoinSpec(("r", "s"), "r.x = s.x", window="1 s", time="ts", how=how, lateness="1 s")
    with pytest.raises(hf.UnsupportedError, match=f"joins two streams with how='inner', not how='{how}'"):
        hf.session(spec, {"r": SCHEMA, "s": SCHEMA}, options=hf.LocalOptions(cores=2, forwarding=HANDSHAKE))


def table(*numbers: int) -> pa.Table:
    return pa.table({"ts": pa.array([n * 1000 for n in numbers], SCHEMA.field("ts").type), "x": list(numbers)})


@pytest.mark.parametrize("forwarding", [LOW_LATENCY, HANDSHAKE])
def test_a_core_that_fails_stops_the_session_with_its_error(forwarding: str, monkeypatch: pytest.MonkeyPatch) -> None:
    # by an index: a chain in machine code has no JoinCores
    spec = hf.JoinSpec(("r", "s"), "r.x = s.x", window="10 seconds", time="ts", lateness="2 seconds")
    session = hf.session(spec, {"r": SCHEMA, "s": SCHEMA}, options=hf.LocalOptions(cores=3, forwarding=forwarding))
    session.push("r", table(*range(50)))

    def fail(*_: Any) -> Any:
        raise RuntimeError("the core is on fire")

    monkeypatch.setattr(JoinCore, "_scan", fail)
    with pytest.raises(hf.EngineError, match="the core is on fire"):
        for _ in range(1000):
            session.push("s", table(*range(50)))
    with pytest.raises(hf.EngineError, match="closed"):
        session.push("s", table(1))
    assert [] == own_threads()


@pytest.mark.parametrize("forwarding", [LOW_LATENCY, HANDSHAKE])
@pytest.mark.parametrize("cores", [1, 3])
def test_an_interrupted_session_is_closed_and_says_so(
    cores: int, forwarding: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = hf.LocalOptions(cores=cores, forwarding=forwarding)
    session = hf.session(SPEC, {"r": SCHEMA, "s": SCHEMA}, options=own)
    session.push("r", table(*range(50)))

    def interrupt(*_: Any) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr(type(session.cores), "feed", interrupt)
    with pytest.raises(KeyboardInterrupt):
        session.push("s", table(1))
    with pytest.raises(hf.EngineError, match="closed"):
        session.push("s", table(1))
    assert [] == session.close()
    assert [] == own_threads()


def test_leaving_by_an_error_ends_the_threads() -> None:
    with (
        pytest.raises(ZeroDivisionError),
        hf.session(SPEC, {"r": SCHEMA, "s": SCHEMA}, options=hf.LocalOptions(cores=2)) as session,
    ):
        session.push("r", table(*range(50)))
        raise ZeroDivisionError
    assert [] == own_threads()


def test_a_session_is_of_one_process(monkeypatch: pytest.MonkeyPatch) -> None:
    session = hf.session(SPEC, {"r": SCHEMA, "s": SCHEMA}, options=hf.LocalOptions(cores=2))
    with monkeypatch.context() as elsewhere:
        elsewhere.setattr("os.getpid", lambda: -1)
        for call in (lambda: session.push("r", table(1)), session.close):
            with pytest.raises(hf.EngineError, match="belongs to the process that opened it"):
                call()
    session.close()


def test_a_cpu_that_is_gone_does_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("handfast.engines.local.low_latency.placement", lambda cores: Placement((4095,) * cores, ""))
    session = hf.session(SPEC, {"r": SCHEMA, "s": SCHEMA}, options=hf.LocalOptions(cores=2))
    session.push("r", table(1))
    assert 1 == sum(batch.num_rows for batch in session.push("s", table(2)))
    session.close()


def test_a_thread_that_cannot_start_leaves_none_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    starts, started = threading.Thread.start, []

    def start(thread: threading.Thread) -> None:
        if len(started) == 2:
            raise RuntimeError("can't start new thread")
        started.append(thread)
        starts(thread)

    monkeypatch.setattr(threading.Thread, "start", start)
    with pytest.raises(
        hf.EngineError, match="cannot start a thread for every core: can't start new thread; ask for fewer cores"
    ):
        hf.session(SPEC, {"r": SCHEMA, "s": SCHEMA}, options=hf.LocalOptions(cores=3))
    assert [] == own_threads()


def own_threads() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name.startswith("handfast core")]


@pytest.mark.parametrize("forwarding", [LOW_LATENCY, HANDSHAKE])
def test_no_thread_is_left_behind(forwarding: str) -> None:
    def opened() -> Any:
        session = hf.session(SPEC, {"r": SCHEMA, "s": SCHEMA}, options=hf.LocalOptions(cores=2, forwarding=forwarding))
        session.push("r", table(*range(50)))
        return session

    session = opened()
    assert 2 == len(own_threads())
    session.close()
    assert [] == own_threads()
    session = opened()
    del session  # nobody has closed it
    gc.collect()
    assert [] == own_threads()
    hf.join(
        {"r": table(1, 2), "s": table(1, 2)}, on="r.x < s.x", window="1 s", time="ts", options=hf.LocalOptions(cores=2)
    )
    assert [] == own_threads()
