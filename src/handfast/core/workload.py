"""What a join of several streams has to do, and what each way to do it is expected to cost."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import permutations

from handfast.plan import Pair

Step = tuple[int, int]  # from which stream, already in the partial match, partners in another are sought

# Nanoseconds, as measured by `benchmarks/multiway.py`: to look one tuple up in an index, to check and pass on one
# partner, to try one pair in a scan, to keep one pair in the stash.
PROBE, PARTNER, PAIR, STASH = 160.0, 54.0, 0.28, 760.0

_ALIKE = 0.8  # match rates that are nearer to each other than this are taken to be the same

_EVERY_ORDER = 5  # with so many streams at the most, every order is tried


@dataclass(frozen=True)  # without slots: the best ways are computed once
class Workload:
    """The windows as they are, and the match rates that were seen.

    Attributes:
        live: By stream, how many tuples its window holds.
        arriving: By stream, its part of all new tuples.
        selectivity: By pair of streams, the part of all pairs of their tuples that match.
        indexed: The pairs of streams that have an index.
    """

    live: tuple[int, ...]
    arriving: tuple[float, ...]
    selectivity: Mapping[Pair, float]
    indexed: frozenset[Pair]

    @property
    def streams(self) -> range:
        return range(len(self.live))

    def rate(self, start: int, to: int) -> float:
        """How many partners a tuple of one stream finds in the window of another."""
        return self.live[to] * self.selectivity[_pair(start, to)]

    def start(self, bound: Sequence[int], to: int) -> int:
        """The member from which partners are sought in one more stream: one with an index, that finds the fewest.

        The first is preferred, the new tuple itself: however many partial matches it has, it is looked up once.
        """
        found = {own: self.selectivity[_pair(own, to)] for own in bound}
        found[bound[0]] *= _ALIKE
        return min(bound, key=lambda own: (_pair(own, to) not in self.indexed, found[own]))

    def steps(self, way: Sequence[int]) -> tuple[Step, ...]:
        """At each stream of a way, which begins at the new tuples' own, from where its partners are sought."""
        return tuple((self.start(way[:k], way[k]), way[k]) for k in range(1, len(way)))

    def hops(self, way: Sequence[int]) -> Iterator[tuple[int, float, float]]:
        """For one new tuple: each stream of the way, what is spent there, and how many partial matches leave it."""
        partial = 1.0
        for start, to in self.steps(way):
            probes = min(partial, 1.0) if start == way[0] else partial  # equal members are looked up once
            found = partial * self.rate(start, to)
            cost = probes * (PROBE if _pair(start, to) in self.indexed else self.live[to] * PAIR)
            yield to, cost + found * PARTNER, found
            partial = found

    def cost(self, way: Sequence[int]) -> float:
        """What one new tuple costs on its way."""
        return sum(cost for _, cost, _ in self.hops(way))

    # -- the best order --------------------------------------------------------------------------

    def best_way(self, origin: int) -> tuple[int, ...]:
        """The cheapest way of new tuples of a stream past all others, which begins at their own."""
        return self._best_ways[origin]

    @cached_property
    def _best_ways(self) -> list[tuple[int, ...]]:
        return [self._best_way(origin) for origin in self.streams]

    def _best_way(self, origin: int) -> tuple[int, ...]:
        if len(self.live) > _EVERY_ORDER:
            return self._greedy(origin)
        others = [stream for stream in self.streams if stream != origin]
        return min(((origin, *rest) for rest in permutations(others)), key=self.cost)

    def best_ring(self) -> tuple[int, ...]:
        """The order of the streams in a ring, in which the ways of all new tuples cost the least."""
        if len(self.live) > _EVERY_ORDER:
            return self._greedy(0)
        return min(((0, *rest) for rest in permutations(self.streams[1:])), key=self.ring_cost)

    def ring_cost(self, ring: Sequence[int]) -> float:
        """What a new tuple costs in a ring, of whichever stream it is."""
        ways = ((*ring[k:], *ring[:k]) for k in range(len(ring)))
        return sum(self.arriving[way[0]] * self.cost(way) for way in ways)

    def plain_cost(self) -> float:
        """What a new tuple costs, of whichever stream it is, if each takes its best way."""
        return sum(self.arriving[origin] * self.cost(self.best_way(origin)) for origin in self.streams)

    def _greedy(self, origin: int) -> tuple[int, ...]:
        """A way that always goes on to where the least is spent and found."""
        way = [origin]
        while len(way) < len(self.live):
            others = [stream for stream in self.streams if stream not in way]
            way.append(min(others, key=lambda to: sum(list(self.hops((*way, to)))[-1][1:])))
        return tuple(way)

    # -- the stash -------------------------------------------------------------------------------

    def best_stash(self) -> Pair:
        """The two streams whose pairs are the ones to keep."""
        return min(self.selectivity, key=self.stash_cost)

    def stash_size(self, pair: Pair) -> float:
        """How many pairs of two streams are in their windows."""
        a, b = pair
        return self.live[a] * self.live[b] * self.selectivity[pair]

    def stash_cost(self, pair: Pair) -> float:
        """What a new tuple costs, of whichever stream it is, if the pairs of two streams are kept."""
        return sum(self.arriving[origin] * sum(self.stashed_hops(pair, origin)) for origin in self.streams)

    def stashed_hops(self, pair: Pair, origin: int) -> list[float]:
        """What one new tuple costs at the stage of the stash, and then at that of each other stream."""
        others = self.others(pair)
        if origin in pair:
            partner = pair[1 - pair.index(origin)]
            (_, cost, found), *later = self.hops((origin, partner, *others))
            return [cost + found * STASH, *(own for _, own, _ in later)]
        member = self.start(pair, origin)
        entries = self.stash_size(pair)
        candidates = entries * self.selectivity[_pair(member, origin)]
        seek = PROBE if _pair(member, origin) in self.indexed else entries * PAIR
        found = candidates * self._passing(origin, pair[1 - pair.index(member)])
        bound, costs = [origin, *pair], [seek + candidates * PARTNER]
        for to in others:
            if to == origin:
                costs.append(0.0)
                continue
            start = self.start(bound, to)
            spent = found * (PROBE if _pair(start, to) in self.indexed else self.live[to] * PAIR)
            found *= self.rate(start, to)
            costs.append(spent + found * PARTNER)
            bound.append(to)
        return costs

    def others(self, pair: Pair) -> tuple[int, ...]:
        """The streams that do not share the stash, in the order of their stages."""
        way = self.best_way(pair[0]) if self.live else ()
        return tuple(stream for stream in way if stream not in pair)

    def _passing(self, origin: int, member: int) -> float:
        """The part of candidates that the second member of a pair lets pass: all, if it says nothing new."""
        return 1.0 if _pair(origin, member) in self.indexed else self.selectivity[_pair(origin, member)]


def _pair(a: int, b: int) -> Pair:
    return (a, b) if a < b else (b, a)
