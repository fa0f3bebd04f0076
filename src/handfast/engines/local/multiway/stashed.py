"""Stashed-MJ: a first stage with two windows and a stash of pairs, then a stage for each other stream [CMJ §III].

Every new tuple comes to the first stage first, and the stage takes them one after the other: so the stash has the pairs
of exactly those tuples that were stored before. New tuples of the two streams find their partners in each other's
window, and the pairs are kept; those of other streams find pairs in the stash, or in both windows while pairs are
missing. From there the way leads past all other stages, in one line.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from handfast.core.probe import Members
from handfast.core.stash import Stash
from handfast.core.workload import Workload
from handfast.engines.local.multiway.intermediate import Hop, Intermediate, Seek, pass_on
from handfast.engines.local.multiway.stages import Way
from handfast.plan import Pair


@dataclass(frozen=True, slots=True)
class Keep:
    """A hop: partners in the window of the other stream of the stash; the pairs are kept."""

    stash: Stash
    to: int

    def __call__(self, partial: Intermediate) -> Iterator[Members]:
        for members in Seek(partial.arrival.new.stream, self.to)(partial):
            self.stash.add(partial.arrival, members, partial.prober.segments)
            yield members


@dataclass(frozen=True, slots=True)
class FromStash:
    """A hop: pairs out of the stash; or, as long as some are missing, out of both windows."""

    stash: Stash
    again: tuple[Hop, Hop]  # how pairs are computed again

    def __call__(self, partial: Intermediate) -> Iterator[Members]:
        count = len(partial.arrival.new.block)
        if self.stash.is_whole(partial.prober.segments):
            self.stash.hits += count
            yield from self.stash.matches(partial.prober, partial.arrival)
            return
        self.stash.recomputed += count
        first, second = self.again
        for members in first(partial):
            yield from second(partial.with_members(members))


def stash_members(workload: Workload, pair: Pair) -> dict[int, int]:
    """By every other stream, that stream of the stash from which its partners are sought."""
    return {stream: workload.start(pair, stream) for stream in workload.streams if stream not in pair}


def stashed_ways(workload: Workload, stash: Stash, others: Sequence[int]) -> list[Way]:
    """By stream, the way of its new tuples: to the stage of the stash, then to those of the others in their order."""
    return [_way(workload, stash, others, origin) for origin in workload.streams]


def _way(workload: Workload, stash: Stash, others: Sequence[int], origin: int) -> Way:
    if origin in stash.pair:
        partner = next(stream for stream in stash.pair if stream != origin)
        first: Hop = Keep(stash, partner)
        bound = [origin, partner]
    else:
        member, other = sorted(stash.pair, key=lambda own: own != workload.start(stash.pair, origin))
        first = FromStash(stash, (Seek(origin, member), Seek(workload.start([origin, member], other), other)))
        bound = [origin, *stash.pair]
    way: list[tuple[int, Hop]] = [(0, first)]
    for stage, to in enumerate(others, 1):
        way.append((stage, pass_on if to == origin else Seek(workload.start(bound, to), to)))
        if to != origin:
            bound.append(to)
    return way
