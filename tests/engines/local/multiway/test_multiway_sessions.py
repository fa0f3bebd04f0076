"""Sessions of three streams and more: counters, refusals, failures, interrupts; no thread is ever left behind."""

from __future__ import annotations

import gc
import threading
import time
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

import handfast as hf
from handfast.core.probe import Prober
from handfast.engines.local import channel
from handfast.engines.local.multiway import finder
from handfast.engines.local.multiway.stages import Stages
from handfast.engines.local.session import Session
from handfast.kernels.strings import StringTable

SCHEMA = pa.schema([("at", pa.timestamp("us")), ("x", pa.int64()), ("w", pa.string())])
ON = "a.x = b.x AND b.x = c.x"
PATIENCE = 60  # seconds; nothing comes near it
CORES = [1, 2]
STAGED = ["circular", "stashed"]


def rows(values: list[int], words: list[str] | None = None) -> pa.Table:
    times = pa.array(range(len(values)), pa.timestamp("us"))
    return pa.table({"at": times, "x": values, "w": words or ["w"] * len(values)}, schema=SCHEMA)


def opened(on: str = ON, streams: str = "abc", **options: Any) -> Session:
    spec = hf.JoinSpec(tuple(streams), on, window="1 hour", time="at", lateness="1 hour")
    return hf.session(spec, dict.fromkeys(streams, SCHEMA), options=hf.LocalOptions(**options))


def threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name.startswith("handfast core")]


@pytest.fixture(autouse=True)
def nobody_left() -> Iterator[None]:
    """After every test no thread of ours is there."""
    assert not threads()
    yield
    gc.collect()
    assert not threads()


# -- counters --------------------------------------------------------------------------------------------------------


def test_stages_count_what_they_have_handed_on() -> None:
    """Ten rows of each stream, all alike: those that come last go round the whole ring."""
    with opened(algorithm="circular") as session:
        assert () == session.metrics().cores[0].stages
        for name in "abc":
            session.push(name, rows([1] * 10))
        stages = session.metrics().cores[0].stages
    session.close()
    assert {("a",), ("b",), ("c",)} == {own.streams for own in stages}
    assert {0} == {own.queued for own in stages}
    assert all(own.busy > 0 and own.idle >= 0 for own in stages)
    # rows of b met those of a, on the way to c or from it; those of c met a's or b's: pieces, not pairs
    assert 0 < sum(own.passed for own in stages) <= 30
    assert session.metrics().matches == 1000


def test_a_stash_counts_who_found_what_in_it() -> None:
    with opened(algorithm="stashed") as session:
        for name in "abc":
            session.push(name, rows([1, 2, 2]))
        stash = session.metrics().cores[0].stash
        assert stash is not None
        (other,) = {"a", "b", "c"} - set(stash.streams)
        session.push(other, rows([1, 2, 3]))
        after = session.metrics().cores[0].stash
        assert after is not None
    session.close()
    assert 1 + 2 * 2 == stash.pairs == after.pairs
    assert (0, 0) == (after.overwritten, after.recomputed)
    assert (3, 6) == (stash.hits, after.hits)


def test_a_stash_that_is_too_small_counts_what_it_lost_and_what_was_computed_again() -> None:
    with opened(algorithm="stashed", stash_size=1) as session:
        session.push("a", rows([]))
        for _ in range(2):
            for name in "abc":
                session.push(name, rows([1, 1, 1]))
        stash = session.metrics().cores[0].stash
    session.close()
    assert stash is not None
    assert 1 == stash.pairs
    assert stash.overwritten > 0
    assert stash.recomputed > 0
    assert session.metrics().matches == 6**3


def test_metrics_can_be_read_while_another_layout_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is read fits together: the stages of the old layout with its streams, not with those of the new one."""
    monkeypatch.setattr("handfast.core.orders._FIRST", 1)
    seen: list[int] = []
    layouts = iter(["circular", "stashed", "plain"] * 10)
    chooses, stops = finder.choose, Stages.stop
    session = opened()

    def choose(workload: Any, algorithm: str | None, present: Any, arriving: int) -> Any:
        return chooses(workload, next(layouts), None, arriving)

    def stop(self: Stages) -> None:
        stops(self)
        seen.append(len(session.cores.metrics()[0].stages))  # as another thread may at this moment

    monkeypatch.setattr(finder, "choose", choose)
    monkeypatch.setattr(Stages, "stop", stop)
    for step in range(6):
        session.push("abc"[step % 3], rows([1]))
    session.close()
    assert {2, 3} <= set(seen)


# -- what is refused -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("algorithm", STAGED)
@pytest.mark.parametrize("streams", ["ab", "abcdefghijklmnopq"])
def test_two_streams_and_seventeen_are_refused_with_the_way_out(algorithm: str, streams: str) -> None:
    words = rf"algorithm='{algorithm}'\) joins 3 to 16 streams, and these are {len(streams)}; leave algorithm out"
    with pytest.raises(hf.SpecError, match=words):
        opened("a.x = b.x", streams, algorithm=algorithm)
    given = dict.fromkeys(streams, rows([1]))
    with pytest.raises(hf.SpecError, match=words):
        hf.join(given, on="a.x = b.x", window="1 hour", time="at", options=hf.LocalOptions(algorithm=algorithm))


@pytest.mark.parametrize("algorithm", [None, "plain"])
def test_seventeen_streams_are_joined_without_an_algorithm(algorithm: str | None) -> None:
    streams = "abcdefghijklmnopq"
    given = dict.fromkeys(streams, rows([1, 2]))
    on = " AND ".join(f"a.x = {name}.x" for name in streams[1:])
    found = hf.join(given, on=on, window="1 hour", time="at", options=hf.LocalOptions(algorithm=algorithm))
    assert 2 == found.num_rows


@pytest.mark.parametrize(
    ("option", "value", "words"),
    [
        ("stash_size", -1, "must be a number of pairs, 0 or more, not -1"),
        ("stash_size", 1.5, "must be a number of pairs, 0 or more, not 1.5"),
        ("stash_size", True, "must be a number of pairs, 0 or more, not True"),
        ("stash_size", "all", "must be a number of pairs, 0 or more, not 'all'"),
        ("stage_buffer", 0, "must be a positive number, not 0"),
        ("stage_buffer", None, "must be a positive number, not None"),
        ("algorithm", "ring", "is one of .*'circular', 'stashed'.* or None, not 'ring'"),
    ],
)
def test_options_that_make_no_sense_are_refused(option: str, value: Any, words: str) -> None:
    with pytest.raises(hf.SpecError, match=words):
        hf.LocalOptions(**{option: value})


@pytest.mark.parametrize("how", ["left", "right", "full", "semi", "anti"])
@pytest.mark.parametrize("algorithm", [None, "plain", "circular", "stashed"])
def test_other_joins_of_three_streams_are_refused_with_the_way_out(how: str, algorithm: str | None) -> None:
    with pytest.raises(hf.SpecError) as told:
        hf.join(
            dict.fromkeys("abc", rows([1])),
            on=ON, window="1 hour", time="at", how=how, options=hf.LocalOptions(algorithm=algorithm),
        )  # fmt: skip
    assert how in str(told.value)
    assert "two" in str(told.value)


# -- failures --------------------------------------------------------------------------------------------------------


class Burst(Exception):
    """What goes wrong in a stage."""


@pytest.fixture
def failing(monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """From when it is set, whoever checks a third member fails."""
    fails, fitting = threading.Event(), Prober.fitting

    def burst(self: Prober, *args: Any) -> Any:
        if fails.is_set():
            raise Burst("a stage has burst")
        return fitting(self, *args)

    monkeypatch.setattr(Prober, "fitting", burst)
    return fails


@pytest.mark.parametrize("cores", CORES)
@pytest.mark.parametrize("algorithm", STAGED)
def test_what_fails_in_a_stage_closes_the_session_and_is_told(
    algorithm: str, cores: int, failing: threading.Event
) -> None:
    session = opened(algorithm=algorithm, cores=cores)
    for name in "abc":
        session.push(name, rows([1, 2]))
    failing.set()
    with pytest.raises(hf.EngineError, match="The session failed and is closed; open a new one: a stage has burst"):
        for name in "abc":
            session.push(name, rows([1, 2]))
    assert not threads()
    with pytest.raises(hf.EngineError, match="The session is closed"):
        session.push("a", rows([1]))
    assert [] == session.close()


@pytest.mark.parametrize("cores", CORES)
@pytest.mark.parametrize("algorithm", STAGED)
def test_what_fails_in_a_stage_comes_out_of_a_join_of_tables(
    algorithm: str, cores: int, failing: threading.Event
) -> None:
    failing.set()
    options = hf.LocalOptions(algorithm=algorithm, cores=cores)
    with pytest.raises(Burst, match="a stage has burst"):
        hf.join(dict.fromkeys("abc", rows([1, 2])), on=ON, window="1 hour", time="at", options=options)


@pytest.mark.parametrize("algorithm", STAGED)
@pytest.mark.parametrize("wait", [1, 2])
def test_an_interrupted_push_ends_every_stage(algorithm: str, wait: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C while the driver sleeps, as it mostly does."""
    session = opened(algorithm=algorithm, stage_buffer=1)
    session.push("a", rows([1] * 20))
    sleeps, waits = channel.Bell.wait, [0]

    def interrupted(self: channel.Bell) -> None:
        if threading.current_thread() is threading.main_thread():
            waits[0] += 1
            if waits[0] == wait:
                raise KeyboardInterrupt
        sleeps(self)

    monkeypatch.setattr(channel.Bell, "wait", interrupted)
    with pytest.raises(KeyboardInterrupt):
        for name in "bcbcbc":
            session.push(name, rows([1] * 20))
    assert not threads()
    assert [] == session.close()


@pytest.mark.parametrize("cores", CORES)
@pytest.mark.parametrize("algorithm", STAGED)
def test_a_session_that_is_left_or_closed_or_forgotten_ends_its_stages(algorithm: str, cores: int) -> None:
    with pytest.raises(Burst), opened(algorithm=algorithm, cores=cores) as left:
        left.push("a", rows([1]))
        assert len(threads()) >= 2
        raise Burst
    assert not threads()
    closed = opened(algorithm=algorithm, cores=cores)
    closed.push("a", rows([1]))
    closed.close()
    assert not threads()
    forgotten: Session | None = opened(algorithm=algorithm, cores=cores)
    assert forgotten is not None
    forgotten.push("a", rows([1]))
    forgotten = None
    gc.collect()
    end = time.monotonic() + PATIENCE
    while threads() and time.monotonic() < end:  # a core's own thread may be the one that collects its stages
        for thread in threads():
            thread.join(1)
        gc.collect()
    assert not threads()


# -- what stages share -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("algorithm", STAGED)
@pytest.mark.parametrize(
    "on",
    [
        "a.w < b.w AND b.w <= c.w",
        "a.x = b.x AND GREATEST(a.w, b.w) LIKE c.w",
        "GREATEST(a.w, b.w) = LEAST(b.w, c.w)",
        "a.w || b.w LIKE c.w",
    ],
)
def test_stages_only_read_the_table_of_strings(algorithm: str, on: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody but the caller's thread, which reads the rows, gives strings their codes and ordinals."""
    adds, orders = StringTable.code, StringTable._order_all
    strays: list[str] = []

    def code(self: StringTable, text: str) -> int:
        if type(self) is StringTable and self.find(text) is None:
            strays.append(threading.current_thread().name)
        return adds(self, text)

    def order_all(self: StringTable) -> None:
        if type(self) is StringTable:
            strays.append(threading.current_thread().name)
        orders(self)

    monkeypatch.setattr(StringTable, "code", code)
    monkeypatch.setattr(StringTable, "_order_all", order_all)
    words = ["b", "a%", "%", "ab", "c"]
    with opened(on, algorithm=algorithm) as session:
        for step in range(3):
            for name in "abc":
                session.push(name, rows([1] * 5, [f"{word}{step}" if step else word for word in words]))
    session.close()
    assert strays
    assert {threading.current_thread().name} == set(strays)
