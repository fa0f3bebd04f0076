"""What one source reads of a workload, and the options that say so."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from datetime import UTC, timedelta
from itertools import pairwise

import pyarrow as pa

from handfast.connectors.generate import KINDS, MAX_ROWS, Workload, check_stream, did_you_mean
from handfast.errors import SpecError

FORMAT = "handfast"
PARTITIONS = 2  # tasks per stream and trigger, where none are asked for
_LIMITS = ("rows", "rowsPerTrigger", "partitions")
_BATCH_ROWS = 1 << 16  # rows of one Arrow batch


@dataclass(frozen=True, slots=True)
class Feed:
    """What one source reads: a stream of a workload, how much of it in all and at a time, in how many tasks."""

    workload: Workload
    stream: str
    rows: int | None
    rows_per_trigger: int
    partitions: int = PARTITIONS

    def __post_init__(self) -> None:
        check_stream(self.stream)
        for name, value in zip(_LIMITS, (self.rows, self.rows_per_trigger, self.partitions), strict=True):
            if value is not None and not 1 <= value <= MAX_ROWS:
                raise SpecError(f"Option {name!r} must be a whole number from 1 to {MAX_ROWS:,}, not {value!r}")

    @classmethod
    def read(cls, options: Mapping[str, str]) -> Feed:
        """Read the options of a Spark source; like all of Spark's, their names in any case."""
        given = {name.lower(): value for name, value in options.items()}
        for needed in ("workload", "stream"):
            if needed not in given:
                raise SpecError(f"Source {FORMAT!r} needs option {needed!r}; add .option({needed!r}, …)")
        kind = given["workload"]
        parameters = {_option(name).lower(): name for name in Workload.parameters(kind)}
        names = ("workload", "stream", *_LIMITS, *(_option(name) for name in parameters.values()))
        for name in given:
            if name not in {known.lower() for known in names}:
                raise SpecError(f"Workload {kind!r} takes no option {name!r}{did_you_mean(name, names)}")
        workload = Workload.named(kind, **{parameters[n]: value for n, value in given.items() if n in parameters})
        limits = {name: _whole(name, given[name.lower()]) for name in _LIMITS if name.lower() in given}
        return cls(
            workload,
            given["stream"],
            limits.get("rows"),
            limits.get("rowsPerTrigger", workload.rate),
            limits.get("partitions", PARTITIONS),
        )

    def options(self) -> dict[str, str]:
        """The options that `read` turns into this value."""
        limits = zip(_LIMITS, (self.rows, self.rows_per_trigger, self.partitions), strict=True)
        return self.identity() | {name: str(value) for name, value in limits if value is not None}

    def identity(self) -> dict[str, str]:
        """The options that say which rows they are, not how many."""
        workload, kind = self.workload, self.workload.kind
        return {
            "workload": workload.name,
            "stream": self.stream,
            "seed": str(workload.seed),
            "rate": str(workload.rate),
            "start": workload.start.astimezone(UTC).isoformat(),
            "disorder": f"{workload.disorder // timedelta(microseconds=1)} us",
        } | {_option(f.name): str(getattr(kind, f.name)) for f in fields(KINDS[workload.name])}

    def split(self, start: int, stop: int) -> list[tuple[int, int]]:
        """Cut rows [`start`, `stop`) into consecutive parts of about the same length, one per task."""
        parts = min(self.partitions, stop - start)
        cuts = [start + (stop - start) * part // parts for part in range(parts + 1)] if parts else []
        return list(pairwise(cuts))

    def batches(self, start: int, stop: int) -> Iterator[pa.RecordBatch]:
        """Generate rows [`start`, `stop`), some at a time."""
        for low in range(start, stop, _BATCH_ROWS):
            table = self.workload.table(self.stream, low, min(low + _BATCH_ROWS, stop))
            yield from table.combine_chunks().to_batches()


def _option(parameter: str) -> str:
    """A parameter's name as Spark spells options: match_rate, matchRate."""
    first, *others = parameter.split("_")
    return first + "".join(word.capitalize() for word in others)


def _whole(option: str, value: str) -> int:
    try:
        return int(value)
    except ValueError:
        raise SpecError(f"Option {option!r} must be a whole number, not {value!r}") from None
