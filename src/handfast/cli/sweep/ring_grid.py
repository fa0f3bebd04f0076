"""A grid of rings, and of lines with a stash, and their inputs: what `handfast sweep` runs for many streams."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from itertools import product
from typing import Any

from handfast.cli.sweep.asked import Asked, Rule, check_names, check_values, number, one_of
from handfast.engines.hardware.circular.shape import RingShape
from handfast.engines.hardware.circular.workload import ONE_KEY, PATTERNS, RingStreams
from handfast.engines.hardware.options import CIRCULAR, STASHED, TURNS
from handfast.engines.hardware.stashed.shape import LineShape
from handfast.errors import SpecError

MOST_STREAMS = 8
_ALGORITHMS = (CIRCULAR, STASHED)
_ROUNDS = 4  # of a window's length, that come where nothing is said of the tuples


@dataclass(frozen=True, slots=True)
class RingConfiguration:
    """One ring or line, and its input, which comes when the windows are empty.

    Attributes:
        stash_size: Of a line; a ring has 0.
        turn: Of a ring; a line has none.
        tuples: Of all streams together.
    """

    algorithm: str
    streams: int
    window: int
    comparisons: int
    in_flight: int
    stage_buffer: int
    stash_size: int
    turn: str
    network_buffer: int
    margin: int
    tuples: int
    match_probability: float
    pattern: str
    seed: int

    @property
    def name(self) -> str:
        """The same for the same configuration, and for no other."""
        return hashlib.blake2b(json.dumps(asdict(self)).encode(), digest_size=12).hexdigest()

    @property
    def shape(self) -> RingShape | LineShape:
        """The circuit."""
        both: dict[str, Any] = {
            "sizes": (self.window,) * self.streams,
            "counted": (self.window,) * self.streams,
            "comparisons": self.comparisons,
            "in_flight": self.in_flight,
            "buffer": self.stage_buffer,
            "network_buffer": self.network_buffer,
            "margin": self.margin,
        }
        if self.algorithm == STASHED:
            return LineShape(**both, stash=self.stash_size)
        return RingShape(**both, turn=self.turn)

    @property
    def input(self) -> RingStreams:
        """The input."""
        return RingStreams(self.streams, self.window, self.match_probability, self.tuples, self.pattern, seed=self.seed)


def _is_probability(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 < value <= 1


_COUNT = "a whole number from 1 on"
_RULES: dict[str, Rule] = {
    "algorithm": (one_of(_ALGORITHMS), f"one of {', '.join(map(repr, _ALGORITHMS))}"),
    "streams": (number(3, MOST_STREAMS), f"a whole number from 3 to {MOST_STREAMS}"),
    "window": (number(1), f"{_COUNT}, the tuples of each window"),
    "comparisons": (number(1), f"{_COUNT}, the slots that a stage compares at a time"),
    "in_flight": (number(1), f"{_COUNT}, the tuples that may be under way"),
    "stage_buffer": (number(1), f"{_COUNT}, the intermediates that a queue of a stage has room for"),
    "stash_size": (number(0), "a whole number from 0 on, the pairs that a line keeps"),
    "turn": (one_of(TURNS), f"one of {', '.join(map(repr, TURNS))}"),
    "network_buffer": (number(1), _COUNT),
    "margin": (number(1), _COUNT),
    "tuples": (number(1), f"{_COUNT}, of all streams together"),
    "match_probability": (_is_probability, "a number above 0 and up to 1"),
    "pattern": (one_of(PATTERNS), f"one of {', '.join(map(repr, PATTERNS))}"),
    "seed": (number(0), "a whole number from 0 on"),
}


@dataclass(frozen=True)
class RingGrid:
    """The values of each parameter; every combination is a configuration.

    Attributes:
        tuples: Of all streams together; where nothing is given, four times as many as fill the windows.
    """

    algorithm: Sequence[str] = (CIRCULAR,)
    streams: Sequence[int] = (3,)
    window: Sequence[int] = (1_024,)
    comparisons: Sequence[int] = (1,)
    in_flight: Sequence[int] = (128,)
    stage_buffer: Sequence[int] = (8,)
    stash_size: Sequence[int] = (1_024,)
    turn: Sequence[str] = TURNS[:1]
    network_buffer: Sequence[int] = (8,)
    margin: Sequence[int] = (3,)
    tuples: Sequence[int] = ()
    match_probability: Sequence[float] = (1e-5, 1e-3)
    pattern: Sequence[str] = PATTERNS[:1]
    seed: Sequence[int] = (1,)
    configurations: tuple[RingConfiguration, ...] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        check_values(self, _RULES, may_be_empty="tuples")
        if STASHED in self.algorithm and any(own != ONE_KEY for own in self.pattern):
            raise SpecError(
                f"The grid's pattern must be {ONE_KEY!r} for algorithm={STASHED!r}, not {self.pattern[0]!r}: pairs "
                "that are kept are looked up by the key that all streams share"
            )
        for depth, margin in product(self.network_buffer, self.margin):
            if depth <= margin:
                raise SpecError(
                    f"The grid's network_buffer must be more than its margin={margin}, not {depth}: "
                    "the buffer would be almost full while empty"
                )
        object.__setattr__(self, "configurations", tuple(self._combined()))
        for made in self.configurations:
            _ = made.input  # refuses what the model has no room or no time for, before anything runs

    @staticmethod
    def of(asked: Asked, where: str) -> RingGrid:
        """The grid with these values, which come from there."""
        check_names(asked, tuple(_RULES), where)
        return RingGrid(**asked)

    @property
    def varied(self) -> tuple[str, ...]:
        """The parameters that have several values, in their order."""
        return tuple(name for name in _RULES if len(set(getattr(self, name))) > 1)

    def _combined(self) -> list[RingConfiguration]:
        """Every combination once; what an algorithm has no part for is not varied."""
        names = [name for name in _RULES if name != "tuples"]
        found: dict[RingConfiguration, None] = {}
        for values in product(*(getattr(self, name) for name in names)):
            one = dict(zip(names, values, strict=True))
            one["match_probability"] = float(one["match_probability"])
            one |= {"turn": ""} if one["algorithm"] == STASHED else {"stash_size": 0}
            for tuples in self.tuples or (_ROUNDS * one["streams"] * one["window"],):
                found[RingConfiguration(**one, tuples=tuples)] = None
        return list(found)


def ring_parameters() -> tuple[str, ...]:
    """Everything that a grid of rings may vary."""
    return tuple(_RULES)
