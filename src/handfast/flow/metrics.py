"""Counters of what became of every row: they add up, and each is counted where it happens."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass, field
from datetime import datetime
from typing import Any

from handfast.spec.moment import as_datetime


@dataclass(frozen=True, slots=True)
class StreamMetrics:
    """What became of one stream's rows: rows_in = waiting + live + expired + late + shed + rejected, at every moment.

    Attributes:
        rows_in: Rows that were read or pushed, admitted or not.
        waiting: Admitted rows that have not reached a core yet: their place in the order is not final (count windows,
            results in order), or they are on their way (a session that does not wait, a handshake chain).
        live: Rows that the cores hold in their windows.
        expired: Rows that have joined and left their window, and rows that could never match and were not stored.
        late: Refused rows, because the watermark had passed their time.
        shed: Refused rows, because there was too much to do.
        rejected: Refused rows, because they had no valid time.
    """

    rows_in: int = 0
    waiting: int = 0
    live: int = 0
    expired: int = 0
    late: int = 0
    shed: int = 0
    rejected: int = 0

    def __add__(self, other: StreamMetrics) -> StreamMetrics:
        return StreamMetrics(*map(sum, zip(astuple(self), astuple(other), strict=True)))


@dataclass(frozen=True, slots=True)
class CoreMetrics:
    """What one core of the local engine holds and has done.

    Attributes:
        live: How many tuples its segment holds, by stream.
        queued: Messages that wait for it, including the one it is working on.
        scanned: Pairs of tuples that met here, also those that an index ruled out without a comparison.
        matched: Matches that were found here.
        forwarded: Tuples that it has passed on to a neighbour.
        busy: Seconds that it has spent joining.
        idle: Seconds in which it had nothing to do.
        stages: Where three and more streams go from stage to stage, what each stage has done.
        stash: Where pairs of two streams are kept, what they were good for.
    """

    live: tuple[int, ...]
    queued: int
    scanned: int
    matched: int
    forwarded: int
    busy: float = field(compare=False)
    idle: float = field(compare=False)
    stages: tuple[StageMetrics, ...] = ()
    stash: StashMetrics | None = None


@dataclass(frozen=True, slots=True)
class StageMetrics:
    """What one stage of a join of three and more streams has done; the local engine has stages.

    Attributes:
        streams: The streams whose windows are there.
        queued: Intermediates that wait for it, including the one it is working on.
        passed: Intermediates that it has handed on.
        busy: Seconds that it has spent joining.
        idle: Seconds in which it had nothing to do.
    """

    streams: tuple[str, ...]
    queued: int
    passed: int
    busy: float = field(compare=False)
    idle: float = field(compare=False)


@dataclass(frozen=True, slots=True)
class StashMetrics:
    """What a stash holds and what it was good for.

    Attributes:
        streams: The two streams whose pairs it keeps.
        pairs: How many it has.
        hits: New tuples of other streams that found their partners in it.
        overwritten: Pairs that made room for others while they could still match.
        recomputed: New tuples of other streams that had to compute the pairs again, since some were missing.
    """

    streams: tuple[str, str]
    pairs: int
    hits: int
    overwritten: int
    recomputed: int


@dataclass(frozen=True, slots=True)
class Metrics:
    """A join's counters.

    Attributes:
        streams: What became of each stream's rows.
        matches: How many matches were given.
        watermark: The join's watermark in microseconds; None as long as a stream has sent nothing.
        cores: What each core holds and has done; the local engine alone has this.
        held: The longest time, in seconds, that a match was held back after it was found so that all come in order.
        newest: The highest time of each stream, in microseconds; without the streams that have sent nothing.
    """

    streams: dict[str, StreamMetrics]
    matches: int = 0
    watermark: int | None = None
    cores: tuple[CoreMetrics, ...] = ()
    held: float = field(default=0.0, compare=False)
    newest: dict[str, int] = field(default_factory=dict)

    @property
    def watermark_time(self) -> datetime | None:
        """The watermark as a time in UTC; None as long as a stream has sent nothing."""
        return None if self.watermark is None else as_datetime(self.watermark)

    @property
    def newest_times(self) -> dict[str, datetime | None]:
        """The highest time of each stream, in UTC; None for a stream that has sent nothing."""
        return {name: as_datetime(self.newest[name]) if name in self.newest else None for name in self.streams}

    @property
    def balance(self) -> float:
        """The size of the largest segment divided by the mean: 1 where the cores share the windows evenly."""
        sizes = [sum(core.live) for core in self.cores]
        return max(sizes) * len(sizes) / sum(sizes) if sum(sizes) else 1.0

    @staticmethod
    def start(names: Sequence[str]) -> Metrics:
        return Metrics({name: StreamMetrics() for name in names})

    @staticmethod
    def total(shares: Sequence[Metrics]) -> Metrics:
        """The counters of all cores together; the watermark is the same at every core."""
        streams = {name: sum((s.streams[name] for s in shares), StreamMetrics()) for name in shares[0].streams}
        newest = latest(share.newest for share in shares)
        matches = sum(share.matches for share in shares)
        return Metrics(streams, matches, shares[0].watermark, newest=newest)

    def encode(self) -> Any:
        """The counters in a form that JSON can hold."""
        streams = {name: astuple(own) for name, own in self.streams.items()}
        return [streams, self.matches, self.watermark, self.newest]

    @staticmethod
    def decode(data: Any) -> Metrics:
        streams, matches, watermark, *newest = data  # the first versions did not keep the newest times
        counted = {name: StreamMetrics(*own) for name, own in streams.items()}
        return Metrics(counted, matches, watermark, newest=newest[0] if newest else {})


def latest(told: Iterable[Mapping[str, int]]) -> dict[str, int]:
    """The latest of the times that are given for each stream."""
    found: dict[str, int] = {}
    for times in told:
        for name, time in times.items():
            found[name] = max(found.get(name, time), time)
    return found
