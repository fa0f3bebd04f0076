"""What the demo joins, and how much of it: live, and as a backfill."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from handfast.connectors.generate import CellJoin, Workload
from handfast.errors import SpecError
from handfast.flow.batch import schema_of
from handfast.spec.join import BoundJoin, JoinSpec
from handfast.spec.window import parse_duration

MAX_ROWS = 500_000  # of each stream: the oracle holds them all as Python dicts
MAX_CORES = 64
MAX_RATE = 1_000_000_000  # of a workload
MAX_BACKFILL = 10_000_000  # rows of each stream
MAX_PAIRS = 300_000_000  # the oracle tries them one by one, at about a microsecond each


@dataclass(frozen=True, slots=True)
class Scenario:
    """CellJoin's join [HSJ §5.2] of two generated streams.

    Attributes:
        rows: How many rows each stream brings.
        rate: How many rows a second each stream brings, in event time.
        window: How long a tuple stays, like "2 seconds".
        seed: Which rows: the same seed, the same rows.
        cores: How many JoinCores share the windows, and how many cores Spark gets.
        backfill: How many rows of each stream the backfill joins; 0 leaves it out.
    """

    # The paper has 10,000: a demo has fewer rows, and should find a few hundred matches all the same.
    DOMAIN: ClassVar[int] = 4_000
    DISORDER: ClassVar[str] = "1 second"
    BATCHES: ClassVar[int] = 10  # or fewer
    SMALLEST_BATCH: ClassVar[int] = 500  # rows of each stream
    # Of each stream, in the backfill: so that a row has about one match, among tens of thousands that it meets.
    HELD: ClassVar[int] = 20_000

    rows: int
    rate: int
    window: str
    seed: int
    cores: int
    backfill: int

    def __post_init__(self) -> None:
        for name, value, least, most in (
            ("rows", self.rows, 1, MAX_ROWS),
            ("cores", self.cores, 1, MAX_CORES),
            ("backfill", self.backfill, 0, MAX_BACKFILL),
        ):
            if not least <= value <= most:
                raise SpecError(f"The demo's {name} must be a whole number from {least} to {most:,}, not {value:,}")
        _ = self.workload, self.spec  # they check rate, seed and window
        if self.pairs > MAX_PAIRS:
            raise SpecError(
                f"{self.rows:,} rows of each stream at {self.rate:,} rows/s with windows of {self.window} are "
                f"{self.pairs:,} pairs, and the oracle tries them one by one; the most is {MAX_PAIRS:,}: "
                "take fewer rows, a lower rate or a shorter window"
            )

    @property
    def workload(self) -> Workload:
        """The two live streams."""
        return Workload.named("celljoin", domain=self.DOMAIN, seed=self.seed, rate=self.rate, disorder=self.DISORDER)

    @property
    def history(self) -> Workload:
        """The two streams of the backfill: so many rows a second that a window holds `HELD` of each."""
        rate = min(max(1, self.HELD * 1_000_000 // self.window_micros), MAX_RATE)
        return Workload.named("celljoin", domain=self.DOMAIN, seed=self.seed, rate=rate)

    @property
    def near(self) -> int:
        """How far apart two rows that match are at most, in each coordinate."""
        return CellJoin.BAND

    @property
    def window_micros(self) -> int:
        """How long a tuple stays, in microseconds."""
        return parse_duration(self.window, what="The window")

    @property
    def keywords(self) -> dict[str, Any]:
        """The join, as the keywords of `hf.join`."""
        # Lateness is just the disorder: no row is late, so the result is the oracle's on all rows.
        return {"on": self.workload.on, "window": self.window, "time": "ts", "lateness": self.DISORDER}

    @property
    def spec(self) -> JoinSpec:
        """The join, as a value."""
        return JoinSpec(("r", "s"), **self.keywords)

    @property
    def bound(self) -> BoundJoin:
        """The join over the streams' columns."""
        return self.spec.bind({name: schema_of(self.workload.schema(name)) for name in self.spec.names})

    @property
    def rows_in(self) -> int:
        """The rows of both streams."""
        return 2 * self.rows

    @property
    def rows_per_trigger(self) -> int:
        """The rows of each stream that Spark takes in one batch."""
        return max(-(-self.rows // self.BATCHES), self.SMALLEST_BATCH)

    @property
    def seconds(self) -> float:
        """How long the streams last, in event time."""
        return self.rows / self.rate

    @property
    def pairs(self) -> int:
        """About how many pairs of tuples meet in the windows."""
        return self._pairs(self.rows, self.rate)

    @property
    def history_pairs(self) -> int:
        """About how many pairs of tuples meet in the windows of the backfill."""
        return self._pairs(self.backfill, self.history.rate)

    def _pairs(self, rows: int, rate: int) -> int:
        held = rate * self.window_micros / 1_000_000
        return round(rows**2 if rows <= held else 2 * rows * held - held**2)

    @property
    def match_rate(self) -> float:
        """The chance that a pair in the windows matches."""
        return self.workload.match_rate
