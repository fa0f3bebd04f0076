"""A buffer for each hop: nothing blocks, nothing is lost, it ends; whatever the order of steps. Without it, it blocks.

Every order of steps is tried, of the pure model and of the real stages; the states that they come to are as many.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from handfast.engines.local.channel import Channel
from handfast.engines.local.multiway.stage import JoinStage
from handfast.engines.local.multiway.stages import Stages
from tests.engines.local.multiway.explored import Explorer, Seen, TooMany, explored
from tests.engines.local.multiway.model import HELD, RULE, SHARED, Explored, Model, Ways, explore, line, ring

Record = Callable[[str, object], None]

# the shape, how many streams, how many partners are found at each hop, how often each stream has new tuples, the room
SMALL: list[tuple[Callable[[int], Ways], int, tuple[int, ...], int, int]] = [
    (ring, 3, (2, 2), 1, 1),
    (ring, 3, (3, 1), 1, 1),
    (ring, 3, (1, 0), 2, 1),
    (ring, 3, (1, 1), 1, 2),
    (ring, 4, (1, 1, 1), 1, 1),
    (line, 3, (2, 2), 2, 1),
    (line, 3, (3, 2), 1, 2),
    (line, 4, (2, 1, 2), 1, 1),
    (line, 4, (2, 2, 1), 1, 2),
]
LARGE = [
    (ring, 3, (2, 2), 2, 1),
    (ring, 3, (2, 2), 1, 2),
    (ring, 4, (2, 1, 1), 1, 1),
    (line, 4, (2, 2, 2), 2, 2),
]
MOST = 8_000  # states, far more than any of the small shapes has
RINGS = [own for own in SMALL if own[0] is ring and own[1:4] in ((3, (2, 2), 1), (3, (3, 1), 1), (4, (1, 1, 1), 1))]


def named(shape: Any) -> str:
    """The shape as a test's name: the same in every process."""
    make, *numbers = shape
    return f"{make.__name__} of {', '.join(map(str, numbers))}"


def modelled(
    shape: Callable[[int], Ways], streams: int, fan: tuple[int, ...], times: int, room: int, rule: str
) -> Model:
    return Model(shape(streams), tuple(range(streams)) * times, fan, room, rule)


def real(
    patch: pytest.MonkeyPatch,
    shape: Callable[[int], Ways],
    streams: int,
    fan: tuple[int, ...],
    times: int,
    room: int,
) -> Explorer:
    return Explorer(patch, shape(streams), tuple(range(streams)) * times, fan, room)


def check(model: Model, found: Explored) -> None:
    """There is one end, and in it every match has been given once."""
    assert 1 == len(found.ends)
    (end,) = found.ends
    assert model.is_empty(end)
    assert tuple(sorted(model.right)) == end.given


@pytest.mark.parametrize("shape", [*SMALL, *LARGE], ids=named)
def test_with_a_buffer_for_each_hop_every_order_ends_with_all_matches(shape: Any, record_property: Record) -> None:
    model = modelled(*shape, RULE)
    found = explore(model)
    check(model, found)
    record_property("states of the model of a ring or a line", found.states)


@pytest.mark.parametrize("rule", [SHARED, HELD])
@pytest.mark.parametrize("shape", RINGS, ids=named)
def test_without_the_rule_a_ring_blocks(shape: Any, rule: str) -> None:
    model = modelled(*shape, rule)
    assert any(not model.is_empty(end) for end in explore(model).ends)


@pytest.mark.parametrize("shape", [own for own in SMALL if own[0] is line], ids=named)
def test_a_line_cannot_block(shape: Any) -> None:
    """What one waits for is always further on: with one buffer for all hops as well."""
    model = modelled(*shape, SHARED)
    check(model, explore(model))


@pytest.mark.parametrize("shape", SMALL, ids=named)
def test_the_real_stages_come_to_the_same_states_and_the_same_end(
    shape: Any, monkeypatch: pytest.MonkeyPatch, record_property: Record
) -> None:
    model = modelled(*shape, RULE)
    seen = explored(real(monkeypatch, *shape))
    assert Seen(explore(model).states, 0, frozenset({tuple(sorted(model.right))}), 0) == seen
    record_property("states of real stages", seen.states)


# -- the real stages with a broken rule ------------------------------------------------------------------------------


class Slot:
    """What one hop sees of a buffer that is there for all hops."""

    def __init__(self, channel: Channel[Any], hop: int, hops: int) -> None:
        self._channel, self._left = channel, hops - hop

    def __len__(self) -> int:
        return len(self._channel) if len(self._channel) and len(self._channel.first.hops) == self._left else 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._channel, name)

    def __setattr__(self, name: str, value: Any) -> None:
        if name in ("_channel", "_left"):
            object.__setattr__(self, name, value)
        else:
            setattr(self._channel, name, value)


def one_buffer_for_all_hops(patch: pytest.MonkeyPatch) -> None:
    """A stage has one buffer."""
    starts = Stages.__init__

    def start(self: Stages, ways: Any, buffer: int) -> None:
        starts(self, ways, buffer)
        hops = len(ways[0])
        for own in self.stages:
            channel = next(iter(own.buffers.values()))
            own.buffers = {hop: Slot(channel, hop, hops) for hop in own.buffers}  # type: ignore[misc]
        for own in self.stages:
            own.onward = {
                hop: next(other.buffers[hop + 1] for other in self.stages if other.bell is ahead._reader)
                for hop, ahead in own.onward.items()
            }

    patch.setattr(Stages, "__init__", start)


def a_scan_that_was_begun_is_held_to(patch: pytest.MonkeyPatch) -> None:
    """A stage that finds no room for what comes of a scan waits, and does nothing else."""

    def work(self: JoinStage) -> bool:
        begun = next((hop for hop in self._hops if self._scans[hop] is not None), None)
        return any(self._advance(hop) for hop in (self._hops if begun is None else [begun]))

    patch.setattr(JoinStage, "work", work)


def an_intermediate_dropped_for_want_of_room(patch: pytest.MonkeyPatch) -> None:
    """What finds no room is lost, as where there is no back-pressure."""
    advances, sends = JoinStage._advance, Channel.send

    def advance(self: JoinStage, hop: int) -> bool:
        onward = self.onward.get(hop)
        if onward is None or onward.room > 0 or not len(self.buffers[hop]):
            return advances(self, hop)
        before = onward._capacity
        onward._capacity += 1
        try:
            patch.setattr(Channel, "send", lambda channel, message: None)
            made = self.made
            did = advances(self, hop)
            self.made = made
        finally:
            patch.setattr(Channel, "send", sends)
            onward._capacity = before
        return did

    patch.setattr(JoinStage, "_advance", advance)


def an_intermediate_let_go_before_its_scan_has_ended(patch: pytest.MonkeyPatch) -> None:
    """A scan ends with its first piece."""
    advances = JoinStage._advance

    def advance(self: JoinStage, hop: int) -> bool:
        before = self.buffers[hop].taken
        did = advances(self, hop)
        if did and self.buffers[hop].taken == before:
            self._scans[hop] = None
            self.buffers[hop].drop_first()
            self.ended += 1
        return did

    patch.setattr(JoinStage, "_advance", advance)


def one_scan_for_all_hops(patch: pytest.MonkeyPatch) -> None:
    """Another hop's scan is forgotten when one is taken up."""
    advances = JoinStage._advance

    def advance(self: JoinStage, hop: int) -> bool:
        did = advances(self, hop)
        if did:
            self._scans.update({other: None for other in self._scans if other != hop})
        return did

    patch.setattr(JoinStage, "_advance", advance)


def what_was_made_not_counted(patch: pytest.MonkeyPatch) -> None:
    """The driver compares what has ended with what it let in."""
    patch.setattr(Stages, "_are_empty", lambda self: sum(stage.ended for stage in self.stages) >= self._submitted)


def matches_counted_as_under_way(patch: pytest.MonkeyPatch) -> None:
    """What is handed to the driver counts as an intermediate that has to end."""
    advances = JoinStage._advance

    def advance(self: JoinStage, hop: int) -> bool:
        before = len(self.found)
        did = advances(self, hop)
        self.made += len(self.found) - before
        return did

    patch.setattr(JoinStage, "_advance", advance)


BROKEN = [
    one_buffer_for_all_hops,
    a_scan_that_was_begun_is_held_to,
    an_intermediate_dropped_for_want_of_room,
    an_intermediate_let_go_before_its_scan_has_ended,
    one_scan_for_all_hops,
    what_was_made_not_counted,
    matches_counted_as_under_way,
]


def tells(patch: pytest.MonkeyPatch, shape: Any) -> bool:
    """Whether the stages of a shape do other than they should, or never come to an end."""
    model = modelled(*shape, RULE)
    right = Seen(MOST, 0, frozenset({tuple(sorted(model.right))}), 0)
    try:
        return replace(explored(real(patch, *shape), MOST), states=MOST) != right
    except TooMany:
        return True


def test_exploring_the_real_stages_finds_nothing_wrong_with_them(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not any(tells(monkeypatch, shape) for shape in RINGS)


@pytest.mark.parametrize("broken", BROKEN, ids=lambda broken: broken.__name__)
def test_exploring_the_real_stages_catches(
    broken: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    broken(monkeypatch)
    assert any(tells(monkeypatch, shape) for shape in RINGS)


@pytest.mark.parametrize("broken", [one_buffer_for_all_hops, a_scan_that_was_begun_is_held_to])
def test_the_real_stages_block_without_the_rule(
    broken: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    broken(monkeypatch)
    assert explored(real(monkeypatch, *RINGS[0]), MOST).stuck > 0
