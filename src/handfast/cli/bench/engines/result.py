"""A workload on all engines: what each found, held against the oracle."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from handfast.cli.bench.engines.seen import Seen
from handfast.cli.bench.engines.workload import Workload
from handfast.cli.screen import NO, YES
from handfast.judge.difference import difference


@dataclass(frozen=True)
class Compared:
    """A workload on all engines.

    Attributes:
        seen: Of each engine; the oracle is first.
        circuit: The circuit in words and as a picture.
    """

    workload: Workload
    seen: Sequence[Seen]
    circuit: str

    def verdict(self, seen: Seen) -> str:
        """Whether an engine found what the oracle found, in words."""
        if seen is self.seen[0]:
            return "the definition"
        differs = difference(seen.matches, self.seen[0].matches)
        if not differs:
            return f"{YES} the same"
        return f"{NO} {len(differs.missing):,} missing, {len(differs.extra):,} too many"

    @property
    def agrees(self) -> bool:
        """Whether all engines found the same, and anything at all."""
        expected = self.seen[0].matches
        return len(expected) > 0 and not any(difference(seen.matches, expected) for seen in self.seen[1:])
