"""The chain in machine code, in threads: the oracle's result, nothing left behind, and who gets it."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import handfast as hf
from handfast.core.output import Output
from handfast.engines.local.chain_driver import ChainDriver
from handfast.engines.local.crew import Crew
from handfast.engines.local.native import memory
from handfast.engines.local.native.bell import RowBell
from handfast.engines.local.native.driver import NativeDriver
from handfast.engines.local.options import HANDSHAKE
from handfast.plan import SCAN
from tests.agreement.order import groups, stands_in_order
from tests.engines.local.schedule import bursty_case
from tests.judges.rows import multiset, result_of, tables_of

SCHEMA = pa.schema([("ts", pa.timestamp("us")), ("x", pa.int64())])
TEXTS = pa.schema([("ts", pa.timestamp("us")), ("x", pa.string())])
SPEC = hf.JoinSpec(("r", "s"), "r.x < s.x", window="10 seconds", time="ts", lateness="2 seconds")
CASES = 24


def options(cores: int = 2, block: int = 256, **more: Any) -> hf.LocalOptions:
    return hf.LocalOptions(cores=cores, forwarding=HANDSHAKE, local_join=SCAN, chain_block=block, **more)


def table(*numbers: int) -> pa.Table:
    return pa.table({"ts": pa.array([n * 1000 for n in numbers], SCHEMA.field("ts").type), "x": list(numbers)})


def own_threads() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name.startswith("handfast ")]


def test_a_session_gives_what_the_oracle_gives(record_property: Callable[[str, object], None]) -> None:
    for seed in range(CASES):
        case = bursty_case(seed).asked(in_order=True) if seed % 2 else bursty_case(seed)
        schemas = {name: own.schema for name, own in case.tables.items()}
        own = options(1 + seed % 5, block=(1, 3, 256)[seed % 3])
        with hf.session(case.spec, schemas, options=own) as session:
            assert isinstance(session.cores, NativeDriver)
            found = [batch for step in case.steps for batch in session.push_together(step)]
            for became in session.metrics().streams.values():
                assert became.rows_in == became.waiting + became.live + became.expired + became.late
        rows = [row for batch in [*found, *session.close()] for row in result_of(pa.Table.from_batches([batch]))]
        assert case.expected_at_close() == multiset(rows), f"seed {seed}: {case}"
        if case.spec.in_order:
            assert stands_in_order(rows, groups(case, tables_of(case.admitted))), f"seed {seed}: {case}"
    record_property("sessions in machine code", CASES)


@pytest.mark.parametrize("block", [1, 64, 256])
@pytest.mark.parametrize("cores", [1, 3])
def test_many_tuples_meet_as_in_low_latency_mode(cores: int, block: int) -> None:
    chance = np.random.default_rng(cores * block)
    count, pushes = 500 if block == 1 else 1_500, 5
    spec = hf.JoinSpec(("r", "s"), "r.x BETWEEN s.x - 1 AND s.x + 1", window="1 second", time="ts", lateness="0 s")

    def batch(number: int) -> pa.Table:
        times = np.sort(chance.integers(number * 500_000, (number + 1) * 500_000, count))
        nulls = chance.random(count) < 0.01
        values = pa.array(chance.integers(0, 1_000, count), pa.int64(), mask=nulls if number == 2 else None)
        return pa.table({"ts": pa.array(times, SCHEMA.field("ts").type), "x": values})

    pushed = [(name, batch(number)) for number in range(pushes) for name in ("r", "s")]
    given = []
    for own in (options(cores, block), hf.LocalOptions()):
        with hf.session(spec, {"r": SCHEMA, "s": SCHEMA}, options=own) as session:
            found = [batch for name, rows in pushed for batch in session.push(name, rows)]
        found += session.close()
        given.append(multiset(row for batch in found for row in result_of(pa.Table.from_batches([batch]))))
    assert given[0] == given[1]
    assert sum(given[0].values()) > count


@pytest.mark.parametrize(
    ("on", "schema", "local_join", "says"),
    [
        ("r.x < s.x", SCHEMA, "index", None),
        ("r.x = s.x", SCHEMA, SCAN, None),
        ("r.x = s.x", SCHEMA, "index", "an index finds what may match"),
        ("r.x < s.x", TEXTS, SCAN, "the condition reads text"),
        ("r.x LIKE s.x", TEXTS, SCAN, "no kernel says a part of the condition"),
    ],
)
def test_explain_says_which_chain_it_is_and_why(on: str, schema: pa.Schema, local_join: str, says: str | None) -> None:
    spec = hf.JoinSpec(("r", "s"), on, window="10 seconds", time="ts", lateness="2 seconds")
    own = hf.LocalOptions(cores=2, forwarding=HANDSHAKE, local_join=local_join)
    with hf.session(spec, {"r": schema, "s": schema}, options=own) as session:
        told = session.explain()
        assert isinstance(session.cores, NativeDriver if says is None else ChainDriver)
    assert ("the cores run as machine code" if says is None else f"the cores run in Python: {says}") in told
    session.close()


def test_an_idle_chain_sleeps_and_wakes() -> None:
    with hf.session(SPEC, {"r": SCHEMA, "s": SCHEMA}, options=options(3)) as session:
        assert isinstance(session.cores, NativeDriver)
        rows = [*session.cores.chain.states, session.cores.chain.driver, session.cores.chain.collector]
        found = 0
        for number in range(20):
            for _ in range(10_000_000):
                if all(row[memory.ASLEEP] for row in rows):
                    break
            else:
                raise AssertionError("a thread that has nothing to do does not sleep")
            found += sum(batch.num_rows for batch in session.push("rs"[number % 2], table(number)))
    found += sum(batch.num_rows for batch in session.close())
    assert sum(r < s for r in range(0, 20, 2) for s in range(1, 20, 2)) == found


def test_rows_that_match_nothing_are_let_go() -> None:
    spec = hf.JoinSpec(("r", "s"), "r.x < s.x - 1000000", window="1 second", time="ts", lateness="0 seconds")
    with hf.session(spec, {"r": SCHEMA, "s": SCHEMA}, options=options(2)) as session:
        assert isinstance(session.cores, NativeDriver)
        segments = session.cores._collector._segments
        for number in range(300):
            session.push_together({name: table(*range(100 * number, 100 * number + 100)) for name in ("r", "s")})
        for _ in range(1_000_000):
            if max(segment.live for segment in segments) < 6_000:  # of 30,000: windows of 1,000, and what is on its way
                break
            session.poll()
        else:
            raise AssertionError(f"{[segment.live for segment in segments]} rows are kept")
        assert len(session.cores.chain.log._held[0]) <= 2
    session.close()


def test_a_collector_that_fails_stops_the_session_with_its_error(monkeypatch: pytest.MonkeyPatch) -> None:
    session = hf.session(SPEC, {"r": SCHEMA, "s": SCHEMA}, options=options(2))
    session.push("r", table(*range(50)))

    def fail(*_: Any) -> Any:
        raise RuntimeError("the collector is on fire")

    monkeypatch.setattr(Output, "matched", fail)
    with pytest.raises(hf.EngineError, match="the collector is on fire"):
        for _ in range(100_000):
            session.push("s", table(*range(50)))
    with pytest.raises(hf.EngineError, match="closed"):
        session.push("s", table(1))
    assert [] == own_threads()


def test_nothing_is_left_behind() -> None:
    def files() -> int:
        return len(os.listdir("/dev/fd"))

    before = files()
    for closes in (True, False):
        session = hf.session(SPEC, {"r": SCHEMA, "s": SCHEMA}, options=options(2))
        session.push("r", table(*range(50)))
        assert ["handfast collector", "handfast core 0", "handfast core 1", "handfast driver"] == sorted(own_threads())
        if closes:
            session.close()
            session.metrics()
        del session
        assert [] == own_threads()
        assert before == files()


def test_a_system_without_enough_files_says_so_and_nothing_is_left_open(monkeypatch: pytest.MonkeyPatch) -> None:
    before, pipes, most = len(os.listdir("/dev/fd")), os.pipe, iter(range(3))

    def pipe() -> tuple[int, int]:
        if next(most, None) is None:
            raise OSError(24, "Too many open files")
        return pipes()

    monkeypatch.setattr(os, "pipe", pipe)
    with pytest.raises(hf.EngineError, match=r"cannot open a pipe for every core: .*; ask for fewer cores"):
        hf.session(SPEC, {"r": SCHEMA, "s": SCHEMA}, options=options(4))
    assert before == len(os.listdir("/dev/fd"))


def test_who_is_interrupted_while_a_session_closes_leaves_nothing_open(monkeypatch: pytest.MonkeyPatch) -> None:
    before, stops, times = len(os.listdir("/dev/fd")), Crew.stop, iter(range(2))

    def stop(crew: Crew) -> None:
        if next(times, None) is not None:
            raise KeyboardInterrupt
        stops(crew)

    session = hf.session(SPEC, {"r": SCHEMA, "s": SCHEMA}, options=options(2))
    session.push("r", table(*range(50)))
    monkeypatch.setattr(Crew, "stop", stop)
    with pytest.raises(KeyboardInterrupt):
        session.close()
    assert [] == own_threads()
    assert before == len(os.listdir("/dev/fd"))


def test_nobody_sleeps_by_a_bell_that_is_closed() -> None:
    """Its file may belong to someone else by then."""
    bell = RowBell(memory.shared(memory.ROW))
    bell.close()
    bell.wait()
    bell.ring()


def test_a_block_must_have_tuples() -> None:
    with pytest.raises(hf.SpecError, match=r"LocalOptions\(chain_block=…\) must be a positive number, not 0"):
        hf.LocalOptions(chain_block=0)
