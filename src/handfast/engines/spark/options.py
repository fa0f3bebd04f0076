"""The options of the engine on Spark."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from handfast.errors import SpecError
from handfast.plan import Hot

CORES, NATIVE = BATCH_JOINS = ("cores", "native")


@dataclass(frozen=True, slots=True)
class SparkOptions:
    """How a join runs on Spark. The result is the same for all of them.

    Args:
        batch_join: What joins batch DataFrames: "cores", handfast's own JoinCores; or "native", Spark's own join by
            equal keys, for joins of which it is certain to give the same result. It tries every pair of equal keys,
            however far they are apart in time. None: "native" where the windows are longer than the span of valid
            times, so that no pair is tried in vain, "cores" everywhere else.
        hot_keys: Keys that so many rows have that one core would be too slow for them, in a join of two streams by
            equality: values of the column that is the key, or tuples of values where there are several. All cores share
            them: of the first stream (or the one whose unmatched rows are given) each row is stored at one of them, and
            the other stream's rows with that key go to all. A running query keeps what it was started with.
        hot_ranges: The same for a join by a band: tuples of a lowest and a highest value of the first stream's column.
    """

    batch_join: str | None = None
    hot_keys: Hot = ()
    hot_ranges: Hot = ()

    def __post_init__(self) -> None:
        for name in ("hot_keys", "hot_ranges"):
            named = getattr(self, name)
            if not isinstance(named, list | tuple):
                raise SpecError(f"SparkOptions({name}=…) is a list, not {named!r}")
            object.__setattr__(self, name, tuple(tuple(own) if isinstance(own, list) else own for own in named))
            try:
                hash(getattr(self, name))  # a plan is looked up by them
            except TypeError:
                raise SpecError(f"SparkOptions({name}=…) holds values of columns, not {named!r}") from None
        if self.hot_keys and self.hot_ranges:
            raise SpecError("SparkOptions: hot_keys are for joins by equality, hot_ranges by a band; leave one out")
        if self.batch_join is not None and self.batch_join not in BATCH_JOINS:
            listed = ", ".join(map(repr, BATCH_JOINS))
            raise SpecError(f"SparkOptions(batch_join=…) is one of {listed}, or None, not {self.batch_join!r}")


def checked_options(options: Any) -> SparkOptions:
    """The options, or the usual ones where there are none."""
    if options is not None and not isinstance(options, SparkOptions):
        raise SpecError(f"options must be hf.SparkOptions(…) with Spark DataFrames, not {options!r}")
    return options or SparkOptions()
