"""Inputs of the evaluations of rings: streams whose tuples match each other with a given probability."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.random import Philox
from numpy.typing import NDArray

from handfast.engines.hardware.model.circular import Entering
from handfast.engines.hardware.model.ring_lists import Lists, by_keys, by_neighbours
from handfast.errors import SpecError

Ints = NDArray[np.int64]

NEIGHBOURS, ONE_KEY = PATTERNS = ("neighbours", "one key")
_LEAST_PROBABILITY = 1e-18
_MOST_ROWS = 1 << 22  # of a stream: some GB with 8 streams
_MOST_SCANS, _MOST_MATCHES = 1e9, 3e7  # of a run: some minutes, and some GB


@dataclass(frozen=True)
class RingStreams:
    """Streams that bring their tuples in turn, with windows of rows.

    Two tuples of neighbouring streams match with this probability. The paper says no more of its inputs [CMJ §IV], so
    there are two patterns: with "neighbours", each pair of neighbours has keys of its own, the last stream and the
    first among them, so that a tuple's partners in one window say nothing about those in the next. With "one key", all
    streams have the same key: all that a tuple meets has the same partners, so that few tuples have most of the work.

    Attributes:
        streams: How many there are.
        window: Rows of each window.
        match_probability: Of two tuples of neighbouring streams.
        tuples: How many tuples come, of all streams together.
        pattern: "neighbours" or "one key".
        filled: Whether the windows are full when the first of these tuples comes, or empty.
        seed: Of the keys.
    """

    streams: int
    window: int
    match_probability: float
    tuples: int
    pattern: str = NEIGHBOURS
    filled: bool = False
    seed: int = 1

    def __post_init__(self) -> None:
        if self.streams < 2 or self.window < 1 or self.tuples < 0:
            raise SpecError(
                "There are 2 streams at least, windows of 1 row at least and 0 tuples at least, not "
                f"{self.streams!r}, {self.window!r} and {self.tuples!r}"
            )
        if not 0 < self.match_probability <= 1:
            raise SpecError(f"A match probability is more than 0 and not more than 1, not {self.match_probability!r}")
        if self.match_probability < _LEAST_PROBABILITY:
            raise SpecError(
                f"A match probability is {_LEAST_PROBABILITY:g} at least, not {self.match_probability!r}: keys are "
                "integers of 64 bits"
            )
        if self.pattern not in PATTERNS:
            raise SpecError(f"An input pattern is one of {', '.join(map(repr, PATTERNS))}, not {self.pattern!r}")
        if max(self.window, self.rows) > _MOST_ROWS:
            raise SpecError(
                f"The model has room for {_MOST_ROWS:,} rows of each stream, not for {max(self.window, self.rows):,}: "
                "take shorter windows, or fewer tuples"
            )
        scans, matches = self.tuples * self.scans, self.tuples * self.matches
        if scans > _MOST_SCANS or matches > _MOST_MATCHES:
            raise SpecError(
                f"With windows of {self.window:,} rows and a match probability of {self.match_probability:g}, "
                f"{self.tuples:,} tuples of {self.streams} streams take about {scans:.2g} scans and have "
                f"{matches:.2g} matches; the model has time for {_MOST_SCANS:g} and room for {_MOST_MATCHES:g}: take a "
                "lower match probability, shorter windows or fewer streams"
            )

    @property
    def before(self) -> int:
        """How many tuples of each stream have come before."""
        return self.window if self.filled else 0

    @property
    def rows(self) -> int:
        """How many rows each stream has, those before among them."""
        return self.before + -(-self.tuples // self.streams)

    @cached_property
    def keys(self) -> tuple[list[Ints], list[Ints]]:
        """By stream and tuple, the keys that the stream before sees, and those that the next stream sees."""
        random = np.random.Generator(Philox(self.seed))
        count = round(1 / self.match_probability)
        left = [random.integers(0, count, self.rows) for _ in range(self.streams)]
        if self.pattern == ONE_KEY:
            return left, left
        return left, [random.integers(0, count, self.rows) for _ in range(self.streams)]

    def entering(self) -> Entering:
        """The tuples, one of each stream in turn."""
        number = np.arange(self.tuples)
        origins = number % self.streams
        turns, place = number[:, None] // self.streams, np.arange(self.streams)[None, :]
        stops = self.before + turns + (place < origins[:, None])
        return Entering(origins, stops, np.minimum(stops, self.window))

    def lists(self) -> Lists:
        """Which tuples match."""
        left, right = self.keys
        origins = np.arange(self.tuples) % self.streams
        if self.pattern == ONE_KEY:
            return by_keys(left, origins, self.before)
        return by_neighbours(left, right, origins, self.before)

    @property
    def scans(self) -> float:
        """How many scans a tuple takes, on average, when all windows are full: Σ (mp · w)^k for k from 0 to N - 2."""
        return sum((self.match_probability * self.window) ** k for k in range(self.streams - 1))

    @property
    def matches(self) -> float:
        """How many matches a tuple has, on average, when all windows are full."""
        closing = self.match_probability if self.pattern == NEIGHBOURS else 1.0  # the last stream must match the first
        return closing * (self.match_probability * self.window) ** (self.streams - 1)
