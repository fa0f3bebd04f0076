"""A session called from several threads: one call at a time, nothing lost, nothing that hangs."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pyarrow as pa
import pytest

import handfast as hf

SCHEMA = pa.schema([("ts", pa.timestamp("us")), ("x", pa.int64())])
SPEC = hf.JoinSpec(("r", "s"), "r.x = s.x", window="1 hour", time="ts", lateness="1 hour")
PUSHES = 1000  # of each stream
ROWS = 3
PATIENCE = 300  # seconds after which a thread counts as hanging; none comes near it
WAYS = [{"cores": 1}, {"cores": 2}, {"cores": 2, "forwarding": "handshake"}]


def batch(number: int) -> pa.Table:
    numbers = range(number * ROWS, (number + 1) * ROWS)
    times = pa.array([n * 1000 for n in numbers], SCHEMA.field("ts").type)
    return pa.table({"ts": times, "x": list(numbers)})


def opened(options: dict[str, Any]) -> Any:
    return hf.session(SPEC, {"r": SCHEMA, "s": SCHEMA}, options=hf.LocalOptions(**options))


def pairs(batches: list[pa.RecordBatch]) -> list[tuple[int, int]]:
    return sorted((row["r_x"], row["s_x"]) for each in batches for row in each.select(["r_x", "s_x"]).to_pylist())


def in_threads(*calls: Callable[[], Any]) -> None:
    """Make all calls at once, each in a thread of its own, and wait until all have returned."""
    failed: list[BaseException] = []

    def run(call: Callable[[], Any]) -> None:
        try:
            call()
        except BaseException as error:  # noqa: BLE001 — told below
            failed.append(error)

    threads = [threading.Thread(target=run, args=(call,), daemon=True) for call in calls]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
    assert not any(thread.is_alive() for thread in threads), "a call hangs"
    if failed:
        raise failed[0]


@pytest.fixture
def restless() -> Iterator[None]:
    """Threads that take turns as often as Python lets them."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


@pytest.mark.usefixtures("restless")
@pytest.mark.parametrize("options", WAYS, ids=str)
def test_two_threads_that_push_a_stream_each_lose_nothing(options: dict[str, Any]) -> None:
    session = opened(options)
    found: list[pa.RecordBatch] = []

    def push(stream: str) -> None:
        for number in range(PUSHES):
            found.extend(session.push(stream, batch(number)))

    in_threads(lambda: push("r"), lambda: push("s"))
    found += session.close()
    assert [(n, n) for n in range(PUSHES * ROWS)] == pairs(found)
    for own in session.metrics().streams.values():
        assert (PUSHES * ROWS, PUSHES * ROWS) == (own.rows_in, own.expired)


@pytest.mark.usefixtures("restless")
@pytest.mark.parametrize("options", WAYS, ids=str)
def test_whoever_pushes_while_another_thread_closes_gets_its_matches_or_an_error(options: dict[str, Any]) -> None:
    for _ in range(10):
        close_while_pushing(opened(options))


def close_while_pushing(session: Any) -> None:
    session.push("r", pa.concat_tables(batch(n) for n in range(PUSHES)))
    pushing, found = threading.Event(), []
    taken = 0

    def push() -> None:
        nonlocal taken
        with pytest.raises(hf.EngineError, match="The session is closed"):
            for number in range(10 * PUSHES):
                found.extend(session.push("s", batch(number)))
                taken += 1
                pushing.set()
        pushing.set()

    def close() -> None:
        pushing.wait()
        found.extend(session.close())

    in_threads(push, close)
    assert [(n, n) for n in range(min(taken, PUSHES) * ROWS)] == pairs(found)


@pytest.mark.usefixtures("restless")
@pytest.mark.parametrize("options", WAYS, ids=str)
def test_counters_that_another_thread_reads_add_up(options: dict[str, Any]) -> None:
    session, done = opened(options), threading.Event()

    def push() -> None:
        for number in range(PUSHES // 5):
            session.push_together({"r": batch(number), "s": batch(number)})
        done.set()

    def look() -> None:
        while not done.is_set():
            for own in session.metrics().streams.values():
                assert own.rows_in == own.waiting + own.live + own.expired
                assert 0 == own.rows_in % ROWS

    in_threads(push, look)
    session.close()


class Curious(Mapping[str, Any]):
    """Batches that ask the session something while they are taken out."""

    def __init__(self, ask: Callable[[], Any]) -> None:
        self._ask = ask

    def __getitem__(self, name: str) -> Any:
        self._ask()
        return batch(0)

    def __iter__(self) -> Iterator[str]:
        return iter(["r"])

    def __len__(self) -> int:
        return 1


@pytest.mark.parametrize("call", ["metrics", "close", "poll", "late_rows"])
def test_a_call_out_of_a_call_is_refused_and_the_session_goes_on(call: str) -> None:
    session = opened({})
    with pytest.raises(hf.EngineError, match="This thread is already in a call of the session"):
        session.push_together(Curious(getattr(session, call)))
    in_threads(lambda: session.push("r", batch(0)))
    assert [(n, n) for n in range(ROWS)] == pairs(session.push("s", batch(0)))
    assert ROWS == session.metrics().streams["r"].rows_in


def interrupt(*_: Any, **__: Any) -> Any:
    raise KeyboardInterrupt


@pytest.mark.parametrize("options", WAYS, ids=str)
@pytest.mark.parametrize("place", ["session.split", "fitting.copied", "session.progress_of"])
def test_an_interrupted_push_closes_the_session_and_keeps_nobody_waiting(
    place: str, options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    session = opened(options)
    session.push("r", batch(0))
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(f"handfast.engines.local.{place}", interrupt)
        session.push("s", batch(0))

    def push() -> None:
        with pytest.raises(hf.EngineError, match="The session is closed"):
            session.push("s", batch(0))

    in_threads(push)
    assert [] == session.close()
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("handfast core")]


STARTS: list[tuple[str, dict[str, Any]]] = [
    ("a.x = b.x AND b.x = c.x", {"algorithm": "circular"}),  # whose threads start with the first tuples
    ("a.x = b.x AND b.x = c.x", {"algorithm": "stashed"}),
    ("a.x = b.x", {"cores": 2}),
    ("a.x = b.x", {"cores": 2, "forwarding": "handshake"}),
    ("a.x = b.x", {"cores": 2, "forwarding": "handshake", "local_join": "scan"}),
]


@pytest.mark.parametrize(("on", "options"), STARTS, ids=str)
def test_who_is_interrupted_while_threads_start_leaves_none_behind(
    on: str, options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    names = tuple("abc"[: 3 if "c" in on else 2])
    spec = hf.JoinSpec(names, on, window="1 hour", time="ts", lateness="1 hour")
    files, starts, started = len(os.listdir("/dev/fd")), threading.Thread.start, []

    def start(thread: threading.Thread) -> None:
        starts(thread)
        started.append(thread)
        if len(started) == 2:
            raise KeyboardInterrupt

    monkeypatch.setattr(threading.Thread, "start", start)
    with pytest.raises(KeyboardInterrupt):
        hf.session(spec, dict.fromkeys(names, SCHEMA), options=hf.LocalOptions(**options)).push("a", batch(0))
    assert 2 == len(started)
    assert not any(thread.is_alive() for thread in started)
    assert files == len(os.listdir("/dev/fd"))


def test_what_fails_after_rows_were_let_in_closes_the_session() -> None:
    """Whatever it is, here a clock: else rows would be missing, and nothing would tell."""
    works = [True]

    def clock() -> float:
        if not works[0]:
            raise OSError("no clock")
        return 0.0

    session = hf.session(SPEC, {"r": SCHEMA, "s": SCHEMA}, clock=clock)
    session.push("r", batch(0))
    works[0] = False
    with pytest.raises(hf.EngineError, match="The session failed and is closed; open a new one: no clock"):
        session.push("s", batch(0))
    works[0] = True
    with pytest.raises(hf.EngineError, match="The session is closed"):
        session.push("s", batch(0))
