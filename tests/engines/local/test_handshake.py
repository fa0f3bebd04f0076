"""The handshake chain: whatever the schedule, every pair meets once."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from handfast.core.join_core import JoinCore
from handfast.core.span import TimeSpan
from handfast.engines.local.chain_driver import Windows
from handfast.engines.local.channel import Channel
from handfast.engines.local.handshake import HandshakeCore, R, S, Signal
from handfast.flow.block import Block
from handfast.flow.time import Horizon
from tests.engines.local.schedule import Walk, bursty_case, scheduled_case, walked
from tests.sampling import sampled
from tests.strategies import SHAPES, Case

CORES = (1, 2, 3, 4, 7)
SCHEDULES = 500
CHUNK = 50
MUTATED = 30  # schedules that each mutant runs through
FLOOR = 3  # so many of them tell, at least


@pytest.mark.parametrize("start", sampled(range(0, SCHEDULES, CHUNK), 2))
def test_every_schedule_finds_what_the_oracle_finds(start: int, record_property: Callable[[str, object], None]) -> None:
    for seed in range(start, start + CHUNK):
        case = scheduled_case(seed)
        found = walked(case, seed, cores=CORES[seed % len(CORES)])
        assert case.expected_at_close() == found, f"seed {seed}: {case}"
    record_property("schedules", CHUNK)


@pytest.mark.slow
@pytest.mark.parametrize("start", range(SCHEDULES, 10_000 + SCHEDULES, 500))
def test_thousands_of_schedules_find_what_the_oracle_finds(start: int) -> None:
    for seed in range(start, start + 500):
        case = scheduled_case(seed)
        found = walked(case, seed, cores=CORES[seed % len(CORES)])
        assert case.expected_at_close() == found, f"seed {seed}: {case}"


# -- the pairs of [HSJ Fig. 7, Fig. 8], step by step ---------------------------------------------------------------

ROWS = pa.table({"ts": pa.array([0], pa.timestamp("us")), "x": [1]})


def two_cores() -> Walk:
    """Two cores: r has entered at the left one, and s at the right one."""
    spec = {"on": "r.x = s.x", "window": "1 minute", "time": "ts"}
    tables = {"r": ROWS, "s": ROWS}
    walk = Walk(Case(SHAPES[0], ("r", "s"), spec, "1 minute", tables, [tables], 2), cores=2, capacity=8, rows=1)
    left, right = walk.chain.cores
    assert walk.send(R)
    assert walk.send(S)
    assert left.process_left(walk.found.append)
    assert right.process_right(walk.found.append)
    return walk


def crossing() -> Walk:
    """r has been sent right and s left, and neither has been received: both are between the cores."""
    walk = two_cores()
    left, right = walk.chain.cores
    assert left.forward_r()
    assert right.forward_s()
    assert (1, 1) == (len(right.from_left), len(left.from_right))
    return walk


def test_tuples_that_cross_between_two_cores_do_not_miss_each_other() -> None:
    walk = crossing()
    left, right = walk.chain.cores
    assert right.process_left(walk.found.append)  # r meets the copy of s that was kept
    assert 1 == len(walk.found)
    assert left.process_right(walk.found.append)
    walk.run(random.Random(0))
    assert 1 == sum(walk.rows().values())


def test_tuples_that_have_met_do_not_meet_again() -> None:
    walk = crossing()
    left, right = walk.chain.cores
    assert left.process_right(walk.found.append)  # s comes too late for r on the left core
    assert [] == walk.found
    assert right.process_left(walk.found.append)
    assert 1 == len(walk.found)
    walk.run(random.Random(0))
    assert 1 == sum(walk.rows().values())


def test_what_met_on_the_left_core_does_not_meet_the_copy_on_the_right_one() -> None:
    walk = two_cores()
    left, right = walk.chain.cores
    assert right.forward_s()
    assert left.process_right(walk.found.append)  # s meets r here, and is acknowledged
    assert 1 == len(walk.found)
    assert left.forward_r()
    assert right.process_left(walk.found.append)  # the acknowledgement came first: the copy is gone
    assert right.process_left(walk.found.append)
    walk.run(random.Random(0))
    assert 1 == sum(walk.rows().values())


# -- what the protocol is made of ----------------------------------------------------------------------------------


def no_copy(monkeypatch: pytest.MonkeyPatch) -> None:
    """The copy of a forwarded S block is dropped at once."""

    def forward_s(core: HandshakeCore) -> bool:
        before = core.forwarded
        did = forwards(core)
        if core.forwarded > before:
            block = core.windows[S].popleft()
            core.forwarded -= 1
            core._join.remove(S, block)
            core._missing = getattr(core, "_missing", 0) + 1
        return did

    def remove(core: HandshakeCore, stream: int) -> None:
        if stream == S and getattr(core, "_missing", 0) and core.left is not None:
            core._missing -= 1
        else:
            removes(core, stream)

    forwards, removes = HandshakeCore.forward_s, HandshakeCore._remove
    monkeypatch.setattr(HandshakeCore, "forward_s", forward_s)
    monkeypatch.setattr(HandshakeCore, "_remove", remove)


def copy_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """The acknowledgement of a forwarded S block comes one block late."""
    removes = HandshakeCore._remove

    def remove(core: HandshakeCore, stream: int) -> None:
        owed = getattr(core, "_owed", 0)
        if stream == S and core.left is not None and not owed:
            core._owed = 1
        else:
            removes(core, stream)

    monkeypatch.setattr(HandshakeCore, "_remove", remove)


def ack_overtakes(monkeypatch: pytest.MonkeyPatch) -> None:
    """An acknowledgement goes before the tuples that are already in the channel."""
    sends = Channel.send

    def send(channel: Channel[Any], message: Any) -> None:
        sends(channel, message)
        if message is Signal.ACK:
            channel._messages.rotate(1)

    monkeypatch.setattr(Channel, "send", send)


def ack_dawdles(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tuples go before the acknowledgements that are already in the channel."""
    sends = Channel.send

    def send(channel: Channel[Any], message: Any) -> None:
        sends(channel, message)
        waiting = [k for k, (_, held) in enumerate(channel._messages) if held is Signal.ACK]
        if isinstance(message, Block) and waiting:
            channel._messages.insert(waiting[0], channel._messages.pop())

    monkeypatch.setattr(Channel, "send", send)


def r_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """A forwarded R block stays in the core that it was sent from."""
    removes = JoinCore.remove

    def remove(core: JoinCore, stream: int, block: Block) -> None:
        if stream != R:
            removes(core, stream, block)

    monkeypatch.setattr(JoinCore, "remove", remove)


def r_passes_without_meeting(monkeypatch: pytest.MonkeyPatch) -> None:
    """A block of R is passed on by a core in the middle that it has not met."""
    meets = HandshakeCore._meet

    def meet(core: HandshakeCore, stream: int, block: Block, give: Any) -> None:
        if stream == R and core.right is not None and core.to_right.room > 1 and core.left is not None:
            core.to_right.send(block)
        else:
            meets(core, stream, block, give)

    monkeypatch.setattr(HandshakeCore, "_meet", meet)


def removed_early(monkeypatch: pytest.MonkeyPatch) -> None:
    """The driver's removals enter before the tuples that may still meet what they remove."""
    sends = Windows.messages

    def messages(windows: Windows, *args: Any) -> Any:
        made = list(sends(windows, *args))
        return sorted(made, key=lambda message: isinstance(message[1], Block))

    monkeypatch.setattr(Windows, "messages", messages)


def removed_too_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """The driver removes blocks when half of their window is over."""

    def is_half_over(span: TimeSpan, block: Block, horizon: Horizon) -> bool:
        return block.most_time + span.length // 2 <= horizon.time

    monkeypatch.setattr(TimeSpan, "is_over", is_half_over)


def too_many_removed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A removal that comes before its block removes another one besides."""
    removes = HandshakeCore._remove

    def remove(core: HandshakeCore, stream: int) -> None:
        removes(core, stream)
        if core._is_last(stream) and len(core.windows[stream]) > core.forwarded:
            removes(core, stream)

    monkeypatch.setattr(HandshakeCore, "_remove", remove)


MUTANTS = [
    no_copy,
    copy_kept,
    ack_overtakes,
    ack_dawdles,
    r_kept,
    r_passes_without_meeting,
    removed_early,
    removed_too_soon,
    too_many_removed,
]


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.__name__)
def test_the_schedules_catch_a_broken_rule(
    mutant: Callable[..., None],
    monkeypatch: pytest.MonkeyPatch,
    record_property: Callable[[str, object], None],
) -> None:
    mutant(monkeypatch)
    told = sum(not holds(seed) for seed in range(MUTATED))
    record_property(f"of {MUTATED} walks that tell {mutant.__name__}", told)
    assert told >= FLOOR, f"only {told} of {MUTATED} schedules tell the broken chain from a right one"


def holds(seed: int) -> bool:
    """Whether a schedule finds what is right."""
    case = bursty_case(seed) if seed % 2 else scheduled_case(seed)
    try:
        return case.expected_at_close() == walked(case, seed, cores=CORES[seed % len(CORES)])
    except Exception:  # noqa: BLE001 — what is broken may fail as it likes
        return False
