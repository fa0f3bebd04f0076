"""The inputs of the thesis' evaluations: two streams of which a part matches, as the steps that a circuit is fed."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.random import Philox

from handfast.engines.hardware.model.circuit import EMPTY, Ints, Pairs, Steps
from handfast.errors import SpecError
from handfast.flow.topology import R, S

RANDOM, GAUSSIAN, BURST = PATTERNS = ("random", "gaussian", "burst")

DEVIATION = 1 / 8
"""The standard deviation of the Gaussian pattern, as a part of the stream, which the thesis does not give: the stream
is as long as eight of them, and the tuples that match crowd in its middle."""

BURST_AT = 0.5
"""Where a burst is, from 0, the beginning of the stream, to 1, its end, which the thesis does not say either."""

_MATCHING = 0  # the key of all tuples that match; no other tuple has the key of any


@dataclass(frozen=True, slots=True)
class StreamPair:
    """Two streams as long as each other, of which the same part matches: every such tuple of R every such tuple of S.

    With p · n of n tuples that match, there are (p · n)² results: they go with the square of the match rate, as in the
    thesis' figures, where 512 tuples of each stream have 262,144 results at 100%.

    Attributes:
        tuples: The length of each stream.
        match_rate: The part of each stream that matches, from 0 to 1.
        pattern: Where these tuples stand [OGE §5.2]: "random", anywhere; "gaussian", most of them in the middle of
            the stream; "burst", one behind the other.
        seed: Of the first two patterns; a burst has nothing random.
        deviation: Of the Gaussian pattern, as a part of the stream.
        burst_at: Where the burst is, from 0, the beginning of the stream, to 1, its end.
    """

    tuples: int
    match_rate: float
    pattern: str = RANDOM
    seed: int = 1
    deviation: float = DEVIATION
    burst_at: float = BURST_AT

    def __post_init__(self) -> None:
        if self.tuples < 1:
            raise SpecError(f"A stream has at least 1 tuple, not {self.tuples!r}")
        if not 0 <= self.match_rate <= 1:
            raise SpecError(f"A match rate is from 0 to 1, not {self.match_rate!r}")
        if self.pattern not in PATTERNS:
            raise SpecError(f"An input pattern is one of {', '.join(map(repr, PATTERNS))}, not {self.pattern!r}")
        if not 0 <= self.seed < 1 << 63:
            raise SpecError(f"A seed is a whole number from 0 on, below 2^63, not {self.seed!r}")
        if not self.deviation > 0:
            raise SpecError(f"A standard deviation is more than 0, not {self.deviation!r}")
        if not 0 <= self.burst_at <= 1:
            raise SpecError(f"A burst is from 0, the beginning of the stream, to 1, its end, not at {self.burst_at!r}")

    @property
    def matching(self) -> int:
        """How many tuples of each stream match."""
        return round(self.match_rate * self.tuples)

    @property
    def results(self) -> int:
        """How many results there are where the windows hold the whole streams."""
        return self.matching**2

    def keys(self) -> tuple[Ints, Ints]:
        """The keys of R and of S."""
        found = []
        for stream, sign in ((R, 1), (S, -1)):  # by their signs no other tuple of R has the key of one of S
            own = sign * np.arange(1, self.tuples + 1, dtype=np.int64)
            own[self._places(stream)] = _MATCHING
            found.append(own)
        return found[R], found[S]

    def pairs(self) -> Pairs:
        """Which tuples match."""
        return Pairs.by_keys(*self.keys())

    def steps(self, flush: int) -> Steps:
        """The streams side by side, a tuple of each in every step, then so many empty ones."""
        own = np.concatenate([np.arange(self.tuples, dtype=np.int64), np.full(flush, EMPTY, np.int64)])
        return Steps(own, own)

    def _places(self, stream: int) -> Ints:
        """Where the tuples stand that match."""
        if self.pattern == BURST:
            first = int(self.burst_at * (self.tuples - self.matching))
            return np.arange(first, first + self.matching)
        # Raw words: no later numpy changes the numbers. Each tuple draws how long it waits to be chosen; those with a
        # larger weight wait for a shorter time, and the first that come are a sample by these weights.
        words = Philox(key=np.array([self.seed, stream], np.uint64)).random_raw(self.tuples)
        waits = -np.log((words.astype(np.float64) + 1) / 2.0**64)
        if self.pattern == GAUSSIAN:
            middle = (self.tuples - 1) / 2
            waits /= np.exp(-0.5 * ((np.arange(self.tuples) - middle) / (self.deviation * self.tuples)) ** 2)
        return np.sort(np.argsort(waits, kind="stable")[: self.matching])
