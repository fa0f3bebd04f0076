"""What is over is let go: the cores hold windows, not all that ever came."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import handfast as hf
from handfast.core.segment import Segment
from handfast.engines.local.chain_driver import Windows
from handfast.engines.local.native import windows as native
from handfast.engines.local.options import FORWARDING, HANDSHAKE, LOW_LATENCY
from handfast.flow.block import Block
from handfast.plan import LOCAL_JOINS

SCHEMA = pa.schema([("ts", pa.timestamp("us")), ("x", pa.int64())])
PUSHES = 1000  # of one tuple of each stream, a second apart
WINDOW = 50  # tuples
CORES = 2
# channels may hold 64 messages each, expiries among them: what they are for is stored so much longer
MOST = WINDOW + 64 * (CORES + 1) * 2


def rows(number: int) -> pa.Table:
    return pa.table({"ts": pa.array([number * 1_000_000], SCHEMA.field("ts").type), "x": [number]})


def fed(forwarding: str, window: str) -> Any:
    """A session that a stream of many windows has passed through, in which there was never much at a time."""
    spec = hf.JoinSpec(("r", "s"), "r.x = s.x", window=window, time="ts", lateness="0 seconds")
    options = hf.LocalOptions(cores=CORES, forwarding=forwarding, local_join="scan")
    session = hf.session(spec, {"r": SCHEMA, "s": SCHEMA}, options=options)
    for number in range(PUSHES):
        session.push_together({"r": rows(number), "s": rows(number)})
        for own in session.metrics().streams.values():
            assert own.live + own.waiting <= MOST, f"after {number} pushes: {own}"
    return session


@pytest.mark.parametrize("window", [f"{WINDOW} seconds", f"{WINDOW} rows"])
@pytest.mark.parametrize("forwarding", FORWARDING)
def test_the_cores_hold_no_more_than_the_windows(forwarding: str, window: str) -> None:
    session = fed(forwarding, window)
    assert all(own.expired >= PUSHES - MOST for own in session.metrics().streams.values())
    session.close()
    assert all((0, PUSHES) == (own.live, own.expired) for own in session.metrics().streams.values())


@pytest.mark.parametrize("forwarding", FORWARDING)
def test_when_all_windows_are_over_the_cores_are_empty(forwarding: str) -> None:
    spec = hf.JoinSpec(("r", "s"), "r.x = s.x", window="1 hour", time="ts", lateness="0 seconds")
    options = hf.LocalOptions(cores=CORES, forwarding=forwarding)
    session = hf.session(spec, {"r": SCHEMA, "s": SCHEMA}, options=options)
    for number in range(100):
        session.push_together({"r": rows(number), "s": rows(number)})
    for name in ("r", "s"):
        session.advance(name, 5_000_000_000)
    for _ in range(1_000_000):
        session.poll()
        if not any(own.live + own.waiting for own in session.metrics().streams.values()):
            break
    assert [(0, 100)] * 2 == [(own.live, own.expired) for own in session.metrics().streams.values()]
    session.close()


@pytest.mark.parametrize("local_join", LOCAL_JOINS)
def test_late_tuples_that_come_where_expired_ones_stood_are_searched_by_their_times(local_join: str) -> None:
    def many(second: int, count: int) -> pa.Table:
        times = pa.array([second * 1_000_000] * count, SCHEMA.field("ts").type)
        return pa.table({"ts": times, "x": [0] * count})

    on = "r.x BETWEEN s.x - 1 AND s.x + 1"
    spec = hf.JoinSpec(("r", "s"), on, window="5 seconds", time="ts", lateness="60 seconds")
    options = hf.LocalOptions(local_join=local_join)
    with hf.session(spec, {"r": SCHEMA, "s": SCHEMA}, options=options) as session:
        for step in ({"s": many(0, 6_000)}, {"s": many(100, 6_000)}, {"r": many(100, 1)}, {"s": many(80, 6_500)}):
            session.push_together(step)
        assert 6_500 == sum(map(len, session.push_together({"r": many(82, 1)})))


# -- cores and drivers that let nothing go --------------------------------------------------------------------------


def a_driver_that_removes_nothing(patch: pytest.MonkeyPatch) -> None:
    sends = Windows.messages

    def messages(windows: Windows, *args: Any) -> Any:
        return (message for message in sends(windows, *args) if isinstance(message[1], Block))

    patch.setattr(Windows, "messages", messages)
    patch.setattr(native.Windows, "_expire", lambda *_: False)


def cores_that_expire_nothing(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Segment, "expire", lambda own, is_over: [])


@pytest.mark.parametrize(
    ("forwarding", "mutant"), [(HANDSHAKE, a_driver_that_removes_nothing), (LOW_LATENCY, cores_that_expire_nothing)]
)
def test_what_is_never_let_go_is_noticed(forwarding: str, mutant: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    mutant(monkeypatch)
    with pytest.raises(AssertionError, match=r"after 4\d\d pushes"):
        fed(forwarding, f"{WINDOW} seconds")
