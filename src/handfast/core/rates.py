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

    def and_of(self, back: _Seen) -> tuple[float, int]:
        """How many pairs have met, and how many of them match, from here and from the other side."""
        return self.met + back.met, self.found + back.found


class Rates:
    """Counts probes and partners, by the stream that seeks and the one it seeks in; each has one writing thread."""

    def __init__(self, recipe: Recipe) -> None:
        self._recipe = recipe
        streams = len(recipe.plan.join.schemas)
        self._seen = {(a, b): _Seen() for a in range(streams) for b in range(streams) if a != b}
        self._kinds = {pair: recipe.cost(*pair) for pair in recipe.pairings}
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
        return Workload(live, arriving, self._selectivities(), indexed)

    def _selectivities(self) -> dict[Pair, float]:
        """The part of all pairs that match, by pair of streams.

        To what was seen of a pair of streams, one pair more is added that matches as much as is expected: so nothing is
        impossible. What is expected of streams before they were seen is what was seen of those with as good an index.
        """
        seen = {(a, b): self._seen[a, b].and_of(self._seen[b, a]) for a, b in self._recipe.pairings}
        expected = {}
        for kind, least in enumerate(_EXPECTED):
            alike = [own for pair, own in seen.items() if self._kinds[pair] == kind]
            expected[kind] = (sum(found for _, found in alike) + least) / (sum(met for met, _ in alike) + 1)
        return {pair: (found + expected[self._kinds[pair]]) / (met + 1) for pair, (met, found) in seen.items()}
