"""Stages as a pure model, so small that every order of their steps can be tried: with the rule, and without it.

An intermediate is the path by which it came: the number of the new tuples, and which partner it met at each hop. What
the model leaves out is what cannot block: windows, indexes, members.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

Path = tuple[int, ...]  # the number of the new tuples, then which partner at each hop
Ways = tuple[tuple[int, ...], ...]  # by stream, the stages that its new tuples come to

RULE = "a buffer for each hop"
SHARED = "one buffer for all hops"
HELD = "a buffer for each hop, but a scan that was begun is held to"


def ring(streams: int) -> Ways:
    """The ways past the stages of a ring."""
    return tuple(tuple((origin + k) % streams for k in range(1, streams)) for origin in range(streams))


def line(streams: int) -> Ways:
    """The ways past a stage of two windows, and then past those of the others."""
    return (tuple(range(streams - 1)),) * streams


@dataclass(frozen=True)
class Stage:
    """What waits at one stage, and how far its scans are.

    Attributes:
        buffers: By hop, what waits; with one buffer for all hops there is only the first.
        scanned: By hop, how many partners the oldest has met.
        held: The hop whose scan has to go on, where a scan is held to; or -1.
    """

    buffers: tuple[tuple[Path, ...], ...]
    scanned: tuple[int, ...]
    held: int = -1


@dataclass(frozen=True)
class State:
    """Where everything is."""

    waiting: tuple[Path, ...]
    stages: tuple[Stage, ...]
    found: tuple[tuple[Path, ...], ...]  # by stage
    given: tuple[Path, ...]  # sorted


@dataclass(frozen=True)
class Model:
    """Stages of one shape.

    Attributes:
        origins: The streams of the new tuples, in their order.
        fan: How many partners each finds, by hop.
        room: How much each buffer holds.
    """

    ways: Ways
    origins: tuple[int, ...]
    fan: tuple[int, ...]
    room: int
    rule: str = RULE
    hops: int = field(init=False)
    count: int = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "hops", len(self.ways[0]))
        object.__setattr__(self, "count", 1 + max(map(max, self.ways)))

    @property
    def start(self) -> State:
        buffers = 1 if self.rule == SHARED else self.hops
        stage = Stage(((),) * buffers, (0,) * buffers)
        waiting = tuple((number,) for number in range(len(self.origins)))
        return State(waiting, (stage,) * self.count, ((),) * self.count, ())

    @property
    def right(self) -> Counter[Path]:
        """Every match, once."""
        paths: list[Path] = [(number,) for number in range(len(self.origins))]
        for fan in self.fan:
            paths = [(*path, partner) for path in paths for partner in range(fan)]
        return Counter(paths)

    def successors(self, state: State) -> Iterator[State]:
        """What can come next: the driver lets in or takes out, or a stage does a part of a scan."""
        if state.waiting:
            first = self._way(state.waiting[0])[0]
            if self._room(state, first, 0):
                yield self._put(_replaced(state, waiting=state.waiting[1:]), first, 0, state.waiting[0])
        for stage, found in enumerate(state.found):
            if found:
                rest = _at(state.found, stage, found[1:])
                yield _replaced(state, found=rest, given=tuple(sorted((*state.given, found[0]))))
        for stage in range(self.count):
            yield from self._works(state, stage)

    def is_empty(self, state: State) -> bool:
        """Whether nothing is left anywhere."""
        return not state.waiting and not any(state.found) and not any(any(own.buffers) for own in state.stages)

    def _way(self, path: Path) -> tuple[int, ...]:
        return self.ways[self.origins[path[0]]]

    def _works(self, state: State, stage: int) -> Iterator[State]:
        own = state.stages[stage]
        order: Sequence[int] = range(len(own.buffers))[::-1]
        if own.held >= 0:
            order = [own.held]
        for slot in order:
            if not own.buffers[slot]:
                continue
            path = own.buffers[slot][0]
            hop, way = len(path) - 1, self._way(path)
            is_last = hop == self.hops - 1
            if not (len(state.found[stage]) < self.room if is_last else self._room(state, way[hop + 1], hop + 1)):
                continue
            if own.scanned[slot] == self.fan[hop]:
                ended = Stage(_at(own.buffers, slot, own.buffers[slot][1:]), _at(own.scanned, slot, 0))
                yield _replaced(state, stages=_at(state.stages, stage, ended))
                return
            wider = (*path, own.scanned[slot])
            held = slot if self.rule == HELD else -1
            further = Stage(own.buffers, _at(own.scanned, slot, own.scanned[slot] + 1), held)
            state = _replaced(state, stages=_at(state.stages, stage, further))
            if is_last:
                yield _replaced(state, found=_at(state.found, stage, (*state.found[stage], wider)))
            else:
                yield self._put(state, way[hop + 1], hop + 1, wider)
            return

    def _slot(self, hop: int) -> int:
        return 0 if self.rule == SHARED else hop

    def _room(self, state: State, stage: int, hop: int) -> bool:
        return len(state.stages[stage].buffers[self._slot(hop)]) < self.room

    def _put(self, state: State, stage: int, hop: int, path: Path) -> State:
        own, slot = state.stages[stage], self._slot(hop)
        put = Stage(_at(own.buffers, slot, (*own.buffers[slot], path)), own.scanned, own.held)
        return _replaced(state, stages=_at(state.stages, stage, put))


def _at(values, place, value):  # type: ignore[no-untyped-def]
    """The tuple with another value at one place."""
    return (*values[:place], value, *values[place + 1 :])


def _replaced(state, **parts):  # type: ignore[no-untyped-def]
    known = {name: getattr(state, name) for name in ("waiting", "stages", "found", "given")}
    return State(**(known | parts))


@dataclass(frozen=True)
class Explored:
    """All that can happen: how many states there are, and in which of them nothing can go on."""

    states: int
    ends: tuple[State, ...]


def explore(model: Model) -> Explored:
    """Every state that any order of steps leads to."""
    start = model.start
    seen, open_states, ends = {start}, [start], []
    while open_states:
        state = open_states.pop()
        following = list(model.successors(state))
        if not following:
            ends.append(state)
        for own in following:
            if own not in seen:
                seen.add(own)
                open_states.append(own)
    return Explored(len(seen), tuple(ends))
