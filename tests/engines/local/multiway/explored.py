"""The real stages, without threads: their whole state can be taken and put back, so that every order can be tried.

What is real: `Stages` with its buffers, `JoinStage`, `Channel`, what the driver lets in, and how it tells the end. What
stands in: hops that find so many partners, and the crew, whose threads would take their steps when they like.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pytest

from handfast.engines.local.multiway import stages
from handfast.engines.local.multiway.stages import Stages
from tests.engines.local.multiway.model import Path, Ways

Snapshot = tuple[Any, ...]


class NoCrew:
    """Stands for the crew: nobody works unless told to."""

    def __init__(self, works: Sequence[Callable[[], bool]], bells: Any, driver: Any, cpus: Any) -> None:
        self.idle = [0.0] * len(works)

    def check(self) -> None:
        pass

    def stop(self) -> None:
        pass


@dataclass(frozen=True)
class New:
    """New tuples of a stream."""

    stream: int
    number: int


@dataclass(frozen=True)
class Arrived:
    """Their arrival."""

    new: New


class Scan:
    """What a hop finds: so many partners, one after the other. It can be taken up from anywhere."""

    def __init__(self, partial: Partial, at: int = 0) -> None:
        self.partial, self.at = partial, at

    def __iter__(self) -> Iterator[Partial]:
        return self

    def __next__(self) -> Partial:
        partners, *later = self.partial.hops
        if self.at == partners:
            raise StopIteration
        self.at += 1
        return Partial(None, self.partial.arrival, (*self.partial.members, self.at - 1), tuple(later))


class Partial:
    """Stands for an intermediate: its hops say how many partners it finds; members are the path by which it came."""

    def __init__(self, prober: Any, arrival: Arrived, members: Any, hops: tuple[int, ...]) -> None:
        self.arrival, self.members, self.hops = arrival, tuple(members), hops

    def extended(self) -> Scan:
        return Scan(self)

    def kept(self) -> Partial:
        return self


class Explorer:
    """Stages, new tuples for them, and what was given; every move is one of `moves`."""

    def __init__(self, patch: pytest.MonkeyPatch, ways: Ways, origins: Sequence[int], fan: Sequence[int], room: int):
        patch.setattr(stages, "Crew", NoCrew)
        patch.setattr(stages, "Intermediate", Partial)
        self.stages = Stages([list(zip(way, fan, strict=True)) for way in ways], room)  # type: ignore[arg-type]
        self.waiting: deque[Any] = deque(Arrived(New(origin, number)) for number, origin in enumerate(origins))
        self.given: list[Path] = []
        takes = [lambda own=own: self._take(own) for own in range(len(self.stages.stages))]
        works = [own.work for own in self.stages.stages]
        self.moves: list[Callable[[], bool]] = [self._send, *takes, *works]

    def _send(self) -> bool:
        before = len(self.waiting)
        if before:
            # one at a time: a driver that lets in several does so one after the other, and anyone may step between
            first = deque([self.waiting[0]])
            self.stages._send(None, first)  # type: ignore[arg-type]
            if not first:
                self.waiting.popleft()
                return True
        return False

    def _take(self, stage: int) -> bool:
        found = self.stages.stages[stage].found
        if not len(found):
            return False
        new, members = found.first
        found.drop_first()
        self.given.append((new.number, *members))  # type: ignore[attr-defined]
        return True

    @property
    def says_empty(self) -> bool:
        """What the driver goes by when it ends."""
        return not self.waiting and self.stages._are_empty() and not any(len(own.found) for own in self.stages.stages)

    @property
    def is_empty(self) -> bool:
        """Whether nothing is left anywhere."""
        every = (len(own.found) + own.queued for own in self.stages.stages)
        return not self.waiting and not any(every)

    def snapshot(self) -> Snapshot:
        """Everything that a step can change, but for bells."""
        parts = []
        for own in self.stages.stages:
            scans = tuple((hop, scan.at if scan is not None else None) for hop, scan in own._scans.items())  # type: ignore[attr-defined]
            buffers = tuple(
                (hop, tuple((m.arrival, m.members, m.hops) for _, m in channel._messages))
                for hop, channel in own.buffers.items()
            )
            found = tuple((new, members) for _, (new, members) in own.found._messages)
            parts.append((buffers, scans, found, own.made, own.ended))
        return tuple(self.waiting), tuple(parts), tuple(sorted(self.given)), self.stages._submitted

    def restore(self, snapshot: Snapshot) -> None:
        """Go back to where it was then."""
        waiting, parts, given, self.stages._submitted = snapshot
        self.waiting, self.given = deque(waiting), list(given)
        for own, (buffers, scans, found, made, ended) in zip(self.stages.stages, parts, strict=True):
            for hop, held in buffers:
                own.buffers[hop]._messages = deque((0, Partial(None, *parts)) for parts in held)
            for hop, at in scans:
                own._scans[hop] = None if at is None else Scan(own.buffers[hop].first, at)  # type: ignore[assignment,arg-type]
            own.found._messages = deque((0, match) for match in found)
            own.made, own.ended = made, ended


class TooMany(AssertionError):
    """There is no end to it."""


@dataclass(frozen=True)
class Seen:
    """What all orders of steps come to.

    Attributes:
        states: How many there are.
        stuck: In how many nothing can go on though something is under way.
        results: What was given in those where all is done.
        wrong_ends: How many states are taken for the end and are not, or the other way round.
    """

    states: int
    stuck: int
    results: frozenset[tuple[Path, ...]]
    wrong_ends: int


def explored(explorer: Explorer, most: int = 1_000_000) -> Seen:
    """Try every order of steps."""
    start = explorer.snapshot()
    seen, open_states, results = {start}, [start], set()
    stuck = wrong_ends = 0
    while open_states:
        state = open_states.pop()
        if len(seen) > most:
            raise TooMany
        explorer.restore(state)
        wrong_ends += explorer.says_empty != explorer.is_empty
        moved = False
        for move in explorer.moves:
            explorer.restore(state)
            if not move():
                continue
            moved = True
            following = explorer.snapshot()
            if following not in seen:
                seen.add(following)
                open_states.append(following)
        explorer.restore(state)
        if not moved and not explorer.is_empty:
            stuck += 1
        elif not moved:
            results.add(tuple(sorted(explorer.given)))
    return Seen(len(seen), stuck, frozenset(results), wrong_ends)
