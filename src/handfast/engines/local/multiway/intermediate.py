"""Intermediates: partial matches on their way past the windows of the other streams."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from handfast.core.probe import Arrival, Members, NewTuples, Prober


@dataclass(frozen=True, slots=True)
class Intermediate:
    """Partial matches of new tuples; without members they are the new tuples themselves."""

    prober: Prober
    arrival: Arrival
    members: Members
    hops: tuple[Hop, ...]  # what is still to be done with them

    def extended(self) -> Iterator[Intermediate]:
        """What the next hop makes of them, piece by piece; after the last hop the pieces are matches."""
        hop, *later = self.hops
        for wider in hop(self):
            if not later:
                wider = self.prober.whole(self.arrival.new, wider)
            if len(wider[self.arrival.new.stream]):
                yield Intermediate(self.prober, self.arrival, wider, tuple(later))

    def kept(self) -> Intermediate:
        """The same in memory of their own: an index writes what it finds first over what it found before."""
        return self.with_members({stream: positions.copy() for stream, positions in self.members.items()})

    def with_members(self, members: Members) -> Intermediate:
        """The same new tuples with these members."""
        return replace(self, members=members)

    def matches(self) -> Iterator[tuple[NewTuples, Members]]:
        """All matches they become, one hop after the other in the calling thread."""
        if not self.hops:
            yield self.arrival.new, self.members
            return
        for wider in self.extended():
            yield from wider.matches()


Hop = Callable[[Intermediate], Iterator[Members]]  # extends partial matches by a partner from one or two windows


@dataclass(frozen=True, slots=True)
class Seek:
    """A hop: partners in the window of one more stream, sought from the member of another."""

    start: int
    to: int

    def __call__(self, partial: Intermediate) -> Iterator[Members]:
        arrival = partial.arrival
        return partial.prober.extended(arrival.new, partial.members, self.start, self.to, arrival.stops[self.to])


def pass_on(partial: Intermediate) -> Iterator[Members]:
    """A hop that has nothing to add: the stage holds the window of the new tuples' own stream."""
    yield partial.members
