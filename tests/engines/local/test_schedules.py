"""Driver, crew and merger under adversarial schedules: whoever is let run next, the result is the same."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from handfast.engines.local import low_latency, merger
from handfast.engines.local.chain_driver import ChainDriver, Windows
from handfast.engines.local.channel import Channel
from handfast.engines.local.handshake import HandshakeChain, Signal
from handfast.engines.local.low_latency import LowLatency
from handfast.engines.local.options import FORWARDING, HANDSHAKE, LOW_LATENCY
from handfast.flow.block import HOME, Block
from handfast.flow.order import RANK
from handfast.flow.topology import R
from tests.engines.local.driven import check, holds

SCHEDULES = 40
MUTATED = 24  # schedules that each mutant runs through

Patch = pytest.MonkeyPatch


@pytest.mark.parametrize("forwarding", FORWARDING)
def test_every_schedule_gives_what_the_oracle_gives(
    forwarding: str, record_property: Callable[[str, object], None]
) -> None:
    for seed in range(SCHEDULES):
        check(seed, forwarding)
    record_property(f"schedules of threads, {forwarding}", SCHEDULES)


@pytest.mark.slow
@pytest.mark.parametrize("forwarding", FORWARDING)
@pytest.mark.parametrize("start", range(SCHEDULES, 1000 + SCHEDULES, 100))
def test_a_thousand_schedules_give_what_the_oracle_gives(start: int, forwarding: str) -> None:
    for seed in range(start, start + 100):
        check(seed, forwarding)


# -- a chain with a broken rule ------------------------------------------------------------------------------------


def an_expiry_lost(patch: Patch) -> None:
    """Every third expiry that the driver sends never enters the chain."""
    sends = Windows.messages

    def messages(windows: Windows, *args: Any) -> Iterator[Any]:
        for message in sends(windows, *args):
            lost = getattr(windows, "lost", 0) + (message[1] is Signal.EXPIRE)
            setattr(windows, "lost", lost)  # noqa: B010 — a note of the test's own
            if message[1] is not Signal.EXPIRE or lost % 3:
                yield message

    patch.setattr(Windows, "messages", messages)


def a_flush_that_overtakes(patch: Patch) -> None:
    """The flush goes before the tuples that are already in the channel."""
    sends = Channel.send

    def send(channel: Channel[Any], message: Any) -> None:
        sends(channel, message)
        if message is Signal.FLUSH:
            channel._messages.rotate(1)

    patch.setattr(Channel, "send", send)


def a_bell_rung_before_the_message(patch: Patch) -> None:
    """A reader is woken before there is anything to read, and may sleep again."""

    def send(channel: Channel[Any], message: Any) -> None:
        channel._reader.ring()
        channel._messages.append((channel.sent, message))
        channel.sent += 1

    patch.setattr(Channel, "send", send)


def matches_in_the_order_they_are_found(patch: Patch) -> None:
    """The merger gives in any order what may be given."""
    for module in (merger, low_latency):
        patch.setattr(module, "by_rank", lambda batches: [batch.drop_columns([RANK]) for batch in batches])


def matches_given_at_once(patch: Patch) -> None:
    """The merger does not wait for those of a lower rank."""
    patch.setattr(Windows, "passed", lambda windows, chain: np.inf)


def one_end_taken_for_both(patch: Patch) -> None:
    """The merger goes by what has passed of R alone."""
    passes = Windows.passed

    def passed(windows: Windows, chain: HandshakeChain) -> float:
        passes(windows, chain)
        return windows._entered[R][0] if windows._entered[R] else np.inf

    patch.setattr(Windows, "passed", passed)


def matches_taken_before_it_is_asked_what_has_passed(patch: Patch) -> None:
    """What is found in between is held back, though others of a higher rank are given."""

    def collect(driver: ChainDriver) -> Iterator[pa.RecordBatch]:
        driver._crew.check()
        found = driver._merger.collect()
        yield from driver._merger.give(found, driver._windows.passed(driver.chain))

    patch.setattr(ChainDriver, "_collect", collect)


# -- low latency with a broken rule --------------------------------------------------------------------------------


def a_block_with_two_homes(patch: Patch) -> None:
    """Tuples are stored at two cores."""
    rushes = LowLatency._rushed

    def rushed(cores: LowLatency, stream: int, block: Block) -> dict[int, Block]:
        return {
            n: own.with_flags(own.flags | HOME if n < 2 else own.flags)
            for n, own in rushes(cores, stream, block).items()
        }

    patch.setattr(LowLatency, "_rushed", rushed)


def a_step_skipped(patch: Patch) -> None:
    """A core says that it has taken in a step, and has not."""
    takes_in = low_latency._Core.take_in

    def take_in(core: Any, step: Any) -> None:
        if step.number % 4 == 2:
            core.book = replace(core.book, done=step.number)
        else:
            takes_in(core, step)

    patch.setattr(low_latency._Core, "take_in", take_in)


def matches_given_when_the_first_core_is_done(patch: Patch) -> None:
    """A step counts as done when one core has taken it in."""
    patch.setattr(low_latency, "all", any, raising=False)


def order_by_the_core_that_is_ahead(patch: Patch) -> None:
    """The matches of a step are given in order before all cores have found theirs."""
    patch.setattr(low_latency, "min", max, raising=False)


# by forwarding, how many of the schedules tell a mutant at least
MUTANTS = [
    (HANDSHAKE, an_expiry_lost, 12),
    (HANDSHAKE, a_flush_that_overtakes, 10),
    (HANDSHAKE, a_bell_rung_before_the_message, 3),
    (HANDSHAKE, matches_in_the_order_they_are_found, 6),
    (HANDSHAKE, matches_given_at_once, 6),
    (HANDSHAKE, one_end_taken_for_both, 1),
    (HANDSHAKE, matches_taken_before_it_is_asked_what_has_passed, 1),
    (LOW_LATENCY, a_bell_rung_before_the_message, 10),
    (LOW_LATENCY, matches_in_the_order_they_are_found, 6),
    (LOW_LATENCY, a_block_with_two_homes, 4),
    (LOW_LATENCY, a_step_skipped, 12),
    (LOW_LATENCY, matches_given_when_the_first_core_is_done, 3),
    (LOW_LATENCY, order_by_the_core_that_is_ahead, 3),
]


@pytest.mark.parametrize(("forwarding", "mutant", "floor"), MUTANTS)
def test_the_schedules_tell(
    forwarding: str,
    mutant: Callable[[Patch], None],
    floor: int,
    monkeypatch: Patch,
    record_property: Callable[[str, object], None],
) -> None:
    mutant(monkeypatch)
    told = sum(not holds(seed, forwarding) for seed in range(MUTATED))
    record_property(f"of {MUTATED} schedules that tell {mutant.__name__}, {forwarding}", told)
    assert told >= floor, f"only {told} of {MUTATED} schedules tell"
