"""Match rates: how many of the tuples that meet in two streams' windows match, as seen while the join runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from handfast.core.recipe import Recipe
from handfast.core.segment import Segment
from handfast.core.workload import Workload
from handfast.plan import Pair

_MEMORY = 1 << 17  # probing tuples after which what was seen counts half
_LEAST = 256  # tuples that a window is taken to have: it is about to
_EXPECTED = (1e-3, 1e-2, 0.3, 1.0)  # before anything was seen, by how good an index the pair has


@dataclass(slots=True)
class _Seen:
    """What became of tuples of one stream that sought partners in the window of another."""

    probes: int = 0
    met: float = 0.0  # pairs of a probing tuple and one in the window
    found: int = 0


class Rates:
    """Counts probes and partners, by the stream that seeks and the one it seeks in; each has one writing thread."""

    def __init__(self, recipe: Recipe) -> None:
        self._recipe = recipe
        streams = len(recipe.plan.join.schemas)
        self._seen = {(a, b): _Seen() for a in range(streams) for b in range(streams) if a != b}
        self._arrived = [0.0] * streams
        self.tuples = 0  # new ones so far

    def arrived(self, stream: int, count: int) -> None:
        """Count new tuples of a stream."""
        self.tuples += count
        self._arrived[stream] += count
        if sum(self._arrived) > _MEMORY:
            self._arrived = [own / 2 for own in self._arrived]

    def tell(self, start: int, to: int, probes: int, live: int, found: int) -> None:
        """So many tuples of one stream sought partners among so many of another, and found so many pairs."""
        seen = self._seen[start, to]
        seen.probes += probes
        seen.met += probes * live
        seen.found += found
        if seen.probes > _MEMORY:
            seen.probes, seen.met, seen.found = seen.probes // 2, seen.met / 2, seen.found // 2

    def workload(self, segments: Sequence[Segment]) -> Workload:
        """What is known by now."""
        total = sum(self._arrived)
        streams = len(segments)
        arriving = tuple(own / total if total else 1 / streams for own in self._arrived)
        live = tuple(max(segment.stop - segment.first, _LEAST) for segment in segments)
        pairings = self._recipe.pairings
        indexed = frozenset(pair for pair, own in pairings.items() if own.index is not None)
        return Workload(live, arriving, {pair: self._selectivity(pair) for pair in pairings}, indexed)

    def _selectivity(self, pair: Pair) -> float:
        """The part of all pairs that match; half a pair more was found than was seen, so that nothing is impossible."""
        a, b = pair
        there, back = self._seen[a, b], self._seen[b, a]
        met = there.met + back.met
        expected = _EXPECTED[self._recipe.cost(a, b)]
        return (there.found + back.found + expected) / (met + 1)
