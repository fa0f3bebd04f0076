"""How a join is laid out: routing, index, cores, and the reason for each choice."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from handfast.spec.classify import Band, Equality
from handfast.spec.join import BoundJoin

MAX_INDEXED_BANDS = 2
_LARGEST_BOUND = 1 << 60


class Routing(Enum):
    """Which cores a tuple is sent to."""

    HASH = "hash"  # the one core of its equality keys
    RANGE = "range"  # the core of its stripe; copies where its partners' stripes begin
    MEET = "meet"  # every core: stored at one of them, it meets the tuples stored at the others


@dataclass(frozen=True, slots=True)
class Choice:
    """One decision of the plan, for people."""

    what: str
    choice: str
    reason: str


@dataclass(frozen=True, slots=True)
class Plan:
    """The layout of one join over a number of cores."""

    join: BoundJoin
    cores: int
    routing: Routing
    equalities: tuple[Equality, ...]
    bands: tuple[Band, ...]

    @property
    def indexed(self) -> bool:
        """Whether an index proposes candidates; otherwise every pair in the windows is tried."""
        return bool(self.equalities or self.bands)

    @property
    def fingerprint(self) -> str:
        """The same for the same join laid out in the same way."""
        return f"{self.join.fingerprint}/{self.cores}"

    def choices(self) -> tuple[Choice, ...]:
        """Every decision with its reason."""
        return (self._routing_choice(), self._index_choice(), self._window_choice())

    def _routing_choice(self) -> Choice:
        if self.cores == 1:
            return Choice("routing", "one core", "there is nothing to divide")
        reasons = {
            Routing.HASH: ("hash", "equal keys are sent to the same core, each tuple to one"),
            Routing.RANGE: (
                "range, with copies at the borders",
                f"no equality, but a band: tuples of {self._name(0)!r} go to the core of their stripe, "
                f"those of {self._name(1)!r} also to the stripes next to a border",
            ),
            Routing.MEET: (
                "store once, meet everywhere",
                "neither equality nor band joins the streams: every core sees every new tuple and stores its share",
            ),
        }
        choice, reason = reasons[self.routing]
        return Choice("routing", f"{choice}, over {self.cores} cores", reason)

    def _index_choice(self) -> Choice:
        if not self.indexed:
            return Choice("index", "none: SIMD scan", "no equality and no band of constant width to find candidates by")
        parts = []
        if self.equalities:
            parts.append(f"hash on {len(self.equalities)} equalit{'y' if len(self.equalities) == 1 else 'ies'}")
        if self.bands:
            parts.append(f"buckets on {len(self.bands)} band{'' if len(self.bands) == 1 else 's'}")
        return Choice(
            "index", " and ".join(parts), "it proposes candidates; the whole predicate is checked on each, as written"
        )

    def _window_choice(self) -> Choice:
        windows = ", ".join(f"{s.name}: {s.window}" for s in self.join.spec.streams)
        return Choice("windows", windows, f"as an interval: {self.join.interval()}")

    def _name(self, stream: int) -> str:
        return self.join.spec.names[stream]


def make_plan(join: BoundJoin, cores: int) -> Plan:
    """Lay a join out over so many cores."""
    equalities = join.conditions.equalities
    bands = tuple(band for band in join.conditions.bands if _has_room(band))[:MAX_INDEXED_BANDS]
    routing = Routing.HASH if equalities else Routing.RANGE if bands else Routing.MEET
    return Plan(join, cores, routing, equalities, bands)


def _has_room(band: Band) -> bool:
    """Whether the band's bounds are small enough for sums of keys and bounds to stay inside int64."""
    return max(abs(band.low), abs(band.high), band.constants) < _LARGEST_BOUND
