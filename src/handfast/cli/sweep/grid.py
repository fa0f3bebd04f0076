"""A grid of chains of cores and their inputs: what `handfast sweep` runs for two streams."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import product
from pathlib import Path
from typing import Any

from handfast.cli.sweep.asked import Asked, Rule, check_names, check_values, number, one_of, read_asked
from handfast.engines.hardware.options import NETWORKS, SCANS, TREE
from handfast.engines.hardware.shape import CircuitShape
from handfast.engines.hardware.workload import PATTERNS, RANDOM, StreamPair
from handfast.errors import SpecError

MERGERS = ("states", "round_robin")
_ONLY_OF_TREES = {"core_buffer": 0, "merger": "", "cycles_per_result": 1}  # and what other networks have instead


@dataclass(frozen=True, slots=True)
class Configuration:
    """One circuit and its input.

    Attributes:
        core_buffer, merger, cycles_per_result: Of a tree; other networks have no such part.
        tuples: The length of each stream.
    """

    cores: int
    segment: int
    comparisons: int
    scan: str
    network: str
    core_buffer: int
    network_buffer: int
    margin: int
    merger: str
    cycles_per_result: int
    tuples: int
    match_rate: float
    pattern: str
    seed: int

    @property
    def window(self) -> int:
        """How many tuples of each stream the chain holds."""
        return self.cores * self.segment

    @property
    def name(self) -> str:
        """The same for the same configuration, and for no other."""
        return hashlib.blake2b(json.dumps(asdict(self)).encode(), digest_size=12).hexdigest()

    @property
    def shape(self) -> CircuitShape:
        """The circuit."""
        of_tree: dict[str, Any] = {
            "core_buffer": self.core_buffer,
            "merger": self.merger,
            "cycles_per_result": self.cycles_per_result,
        }
        return CircuitShape(
            cores=self.cores,
            sizes=(self.segment, self.segment),
            comparisons=self.comparisons,
            scan=self.scan,
            network=self.network,
            network_buffer=self.network_buffer,
            margin=self.margin,
            **(of_tree if self.network == TREE else {}),
        )

    @property
    def streams(self) -> StreamPair:
        """The input."""
        return StreamPair(self.tuples, self.match_rate, self.pattern, self.seed)


def _is_rate(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 1


_COUNT = "a whole number from 1 on"
_RULES: dict[str, Rule] = {
    "cores": (number(1), _COUNT),
    "segment": (number(1), f"{_COUNT}, the tuples of each stream that a core holds"),
    "comparisons": (number(1), f"{_COUNT}, the tuples that a new one is compared with at a time"),
    "scan": (one_of(SCANS), f"one of {', '.join(map(repr, SCANS))}"),
    "network": (one_of(NETWORKS), f"one of {', '.join(map(repr, NETWORKS))}"),
    "core_buffer": (number(1), _COUNT),
    "network_buffer": (number(1), _COUNT),
    "margin": (number(1), _COUNT),
    "merger": (one_of(MERGERS), f"one of {', '.join(map(repr, MERGERS))}"),
    "cycles_per_result": (number(1), _COUNT),
    "tuples": (number(1), _COUNT),
    "match_rate": (_is_rate, "a number from 0 to 1"),
    "pattern": (one_of(PATTERNS), f"one of {', '.join(map(repr, PATTERNS))}"),
    "seed": (number(0), "a whole number from 0 on"),
}


@dataclass(frozen=True)
class Grid:
    """The values of each parameter; every combination is a configuration.

    Attributes:
        tuples: The length of the streams; where nothing is given, as many tuples as the chain holds.
    """

    cores: Sequence[int] = (16,)
    segment: Sequence[int] = (8,)
    comparisons: Sequence[int] = (1,)
    scan: Sequence[str] = SCANS[:1]
    network: Sequence[str] = NETWORKS
    core_buffer: Sequence[int] = (8,)
    network_buffer: Sequence[int] = (8,)
    margin: Sequence[int] = (3,)
    merger: Sequence[str] = MERGERS[:1]
    cycles_per_result: Sequence[int] = (1,)
    tuples: Sequence[int] = ()
    match_rate: Sequence[float] = (0.2, 0.4, 0.6, 0.8, 1.0)
    pattern: Sequence[str] = (RANDOM,)
    seed: Sequence[int] = (1,)
    configurations: tuple[Configuration, ...] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        check_values(self, _RULES, may_be_empty="tuples")
        object.__setattr__(self, "configurations", tuple(self._combined()))
        for made in self.configurations:
            for name in ("core_buffer", "network_buffer"):
                depth = getattr(made, name)
                if depth <= made.margin and not (name == "core_buffer" and made.network != TREE):
                    raise SpecError(
                        f"The grid's {name} must be more than its margin={made.margin}, not {depth}: "
                        "the buffer would be almost full while empty"
                    )

    @staticmethod
    def read(path: Path | None, options: Mapping[str, str | None]) -> Grid:
        """The grid of a TOML file, if there is one, with what the options say in its place; see `read_asked`."""
        return Grid.of(read_asked(path, options), str(path))

    @staticmethod
    def of(asked: Asked, where: str) -> Grid:
        """The grid with these values, which come from there."""
        check_names(asked, parameters(), where)
        return Grid(**asked)

    @property
    def varied(self) -> tuple[str, ...]:
        """The parameters that have several values, in their order."""
        return tuple(name for name in _RULES if len(set(getattr(self, name))) > 1)

    def _combined(self) -> list[Configuration]:
        """Every combination once; what a network has no part for is not varied."""
        names = [name for name in _RULES if name != "tuples"]
        found: dict[Configuration, None] = {}
        for values in product(*(getattr(self, name) for name in names)):
            one = dict(zip(names, values, strict=True))
            one["match_rate"] = float(one["match_rate"])
            if one["network"] != TREE:
                one |= _ONLY_OF_TREES
            for tuples in self.tuples or (one["cores"] * one["segment"],):
                found[Configuration(**one, tuples=tuples)] = None
        return list(found)


def parameters() -> tuple[str, ...]:
    """Everything that a grid may vary."""
    return tuple(_RULES)
