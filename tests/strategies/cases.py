"""One random join with its data, and the way the data arrives."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import cached_property
from itertools import accumulate, pairwise
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

from handfast.judge import oracle
from handfast.spec.join import BoundJoin, JoinSpec
from handfast.spec.window import CountWindow
from tests.judges.rows import by_duckdb, multiset, plain_values, schemas_of, tables_of
from tests.strategies.coverage import measure
from tests.strategies.maker import Maker
from tests.strategies.shapes import SHAPES, Shape

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Case:
    """One join with its data, and the way the data arrives.

    Attributes:
        kwargs: What `hf.join` takes beside the inputs, for bounded inputs.
        lateness: What it takes besides for unbounded ones.
        tables: Every stream's rows in the order of arrival.
        steps: The same rows as they arrive, batch by batch; a stream may be missing from a step, or empty in it.
        cores: On how many cores to run it.
        clock: When each step arrives, in microseconds of processing time, where streams may fall idle.
    """

    shape: Shape
    streams: tuple[str, ...]
    kwargs: dict[str, Any]
    lateness: str | dict[str, str]
    tables: dict[str, pa.Table]
    steps: list[dict[str, pa.Table]]
    cores: int
    clock: tuple[int, ...] | None = None
    origin: str = field(default="", compare=False)

    def __repr__(self) -> str:
        data = {name: table.to_pylist() for name, table in self.tables.items()}
        sizes = [{name: len(table) for name, table in step.items()} for step in self.steps]
        asked = ", ".join(f"{name}={value!r}" for name, value in {**self.kwargs, "lateness": self.lateness}.items())
        arrival = f"steps={sizes}, clock={self.clock}"
        return f"{self.origin or 'Case'}: {self.shape.name}, {asked}, cores={self.cores}, {arrival}, tables={data}"

    @classmethod
    def of(cls, seed: int, *, for_spark: bool = False, shape: Shape | None = None) -> Case:
        """The case with this number."""
        case = cls.random(random.Random(seed), for_spark=for_spark, shape=shape)
        return replace(case, origin=f"Case.of({seed}, for_spark={for_spark}, shape={shape and shape.name!r})")

    @classmethod
    def random(cls, rng: random.Random, *, for_spark: bool = False, shape: Shape | None = None) -> Case:
        """A random case; `for_spark` keeps to columns that a Spark DataFrame can hold."""
        return cls(**Maker(rng, for_spark, shape or rng.choice(SHAPES)).parts())

    @cached_property
    def spec(self) -> JoinSpec:
        return JoinSpec(self.streams, **self.kwargs, lateness=self.lateness)

    @cached_property
    def join(self) -> BoundJoin:
        return self.spec.bind(schemas_of(self.tables))

    @cached_property
    def admission(self) -> oracle.Admission:
        """What the oracle lets in when the steps arrive one by one."""
        return oracle.admit(self.join, [tables_of(step) for step in self._numbered_steps()], self.clock)

    @cached_property
    def admitted(self) -> dict[str, pa.Table]:
        """The rows that the oracle lets in when the steps arrive one by one."""
        rows = {name: [row["#"] for row in self.admission.admitted[name]] for name in self.streams}
        return {name: self.tables[name].take(pa.array(rows[name], pa.int64())) for name in self.streams}

    def _numbered_steps(self) -> list[dict[str, pa.Table]]:
        count = dict.fromkeys(self.streams, 0)
        numbered = []
        for step in self.steps:
            tables = {}
            for name, table in step.items():
                numbers = pa.array(range(count[name], count[name] + len(table)), pa.int64())
                tables[name] = table.append_column("#", numbers)
                count[name] += len(table)
            numbered.append(tables)
        return numbered

    def expected(self) -> Counter[tuple[Any, ...]]:
        """The oracle's result for the bounded tables."""
        return multiset(oracle.result(self.join, tables_of(self.tables)))

    def expected_of_steps(self) -> Counter[tuple[Any, ...]]:
        """What the oracle says is decided when the steps have arrived one by one, and more may come."""
        final = oracle.final(self.join, self.admission)
        rows = {name: [{c: row[c] for c in row if c != "#"} for row in final[name]] for name in self.streams}
        return multiset(oracle.result(self.join, rows, self.admission.watermark))

    @property
    def words(self) -> dict[str, Any]:
        """What `hf.join` takes beside the inputs, as plain values."""
        windows = self.kwargs["window"]
        by_stream = dict(windows) if isinstance(windows, dict) else dict.fromkeys(self.streams, windows)
        return {**self.kwargs, "window": {n: str(w) if isinstance(w, CountWindow) else w for n, w in by_stream.items()}}

    def judged(self, tables: dict[str, pa.Table] | None = None, watermark: int | None = None) -> Counter[Any]:
        """DuckDB's result for the bounded tables, or for others of the same columns; at the end, or at a watermark."""
        given = tables if tables is not None else self.tables
        return multiset(by_duckdb({name: given[name] for name in self.streams}, watermark, **self.words))

    def judged_of_steps(self) -> Counter[tuple[Any, ...]]:
        """What DuckDB says is decided when the steps have arrived one by one, and more may come."""
        final = oracle.final(self.join, self.admission)
        rows = {name: pa.array([row["#"] for row in final[name]], pa.int64()) for name in self.streams}
        tables = {name: self.tables[name].take(rows[name]) for name in self.streams}
        watermark = max(self.admission.watermark, -(2.0**63))
        return self.judged(tables, int(watermark))

    def expected_at_close(self) -> Counter[tuple[Any, ...]]:
        """The oracle's result when the steps have arrived one by one, and no more will come."""
        if self.spec.order == "arrival":
            return multiset(oracle.result(self.join, self.admission.admitted))
        return multiset(oracle.result(self.join, tables_of(self.admitted)))

    def counted(self, rng: random.Random) -> Case:
        """The same case with count windows, for one stream or both, and a column that orders ties."""
        numbers = {name: rng.sample(range(len(table)), len(table)) for name, table in self.tables.items()}
        tables = {n: t.append_column("turn", pa.array(numbers[n], pa.int64())) for n, t in self.tables.items()}
        steps, start = [], dict.fromkeys(self.streams, 0)
        for step in self.steps:
            steps.append({name: tables[name].slice(start[name], len(table)) for name, table in step.items()})
            for name, table in step.items():
                start[name] += len(table)
        asked = self.kwargs["window"]
        windows = dict(asked) if isinstance(asked, dict) else dict.fromkeys(self.streams, asked)
        for name in rng.choice((self.streams, self.streams[:1], self.streams[1:], self.streams[1:2])):
            rows = rng.randint(1, 12)
            windows[name] = rng.choice((f"{rows} rows", CountWindow(rows)))
        sequence = rng.choice(("turn", dict.fromkeys(self.streams, "turn")))
        kwargs = {**self.kwargs, "window": windows, "sequence": sequence}
        return replace(self, kwargs=kwargs, tables=tables, steps=steps, origin=f"{self.origin}.counted(…)")

    def arriving(self, rng: random.Random) -> Case:
        """The same case with count windows for all streams, by the order of arrival."""
        case = self.counted(rng)
        windows = {name: f"{rng.randint(1, 12)} rows" for name in self.streams}
        return replace(
            case, kwargs={**case.kwargs, "window": windows, "order": "arrival"}, origin=f"{self.origin}.arriving(…)"
        )

    def idle(self, rng: random.Random) -> Case:
        """The same case with streams that the watermark does not wait for; now and then one falls silent for a step."""
        steps = [dict(step) for step in self.steps]
        for step, following in pairwise(steps):
            name = rng.choice(self.streams)
            if name in step and rng.random() < 0.6:
                held = step.pop(name)
                following[name] = pa.concat_tables([held, following[name]]) if name in following else held
        timeout = rng.choice(("2 seconds", dict.fromkeys(self.streams, "3 seconds"), "1 s"))
        clock = tuple(accumulate(rng.choice((0, 1_500_000, 5_000_000)) for _ in steps))
        kwargs = {**self.kwargs, "idle_timeout": timeout}
        lateness = rng.choice((self.lateness, "0 seconds"))
        origin = f"{self.origin}.idle(…)"
        return replace(self, kwargs=kwargs, lateness=lateness, steps=steps, clock=clock, origin=origin)

    def valid(self, rng: random.Random) -> Case:
        """The same case with bounds on the times of its rows: of one stream or both, below, above or both."""
        bounds: dict[str, Any] = {}
        for what, share in rng.sample((("valid_from", 0.2), ("valid_to", 0.8)), rng.randint(1, 2)):
            by_stream = {name: self._moment(name, share, rng) for name in self.streams}
            one = by_stream[self.streams[0]]
            bounds[what] = rng.choice((one, by_stream, {**by_stream, self.streams[0]: None}))
        if any(_after(bounds.get("valid_from"), bounds.get("valid_to"), name) for name in self.streams):
            del bounds["valid_from"]  # no row would be valid, and a join refuses that
        return replace(self, kwargs={**self.kwargs, **bounds}, origin=f"{self.origin}.valid(…)")

    def _moment(self, stream: str, share: float, rng: random.Random) -> int | datetime | None:
        """A time that about this share of a stream's rows lies below."""
        times = sorted(t for t in plain_values(self.tables[stream][self._time(stream)]) if t is not None)
        if not times:
            return None
        micros = times[min(int(len(times) * share), len(times) - 1)]
        return rng.choice((micros, EPOCH + timedelta(microseconds=micros)))

    def _time(self, stream: str) -> str:
        asked = self.kwargs["time"]
        return asked[stream] if isinstance(asked, dict) else asked

    def asked(self, **more: Any) -> Case:
        """The same case with more asked of it: `how`, `in_order`."""
        return replace(self, kwargs={**self.kwargs, **more}, origin=f"{self.origin}.asked({more})")

    def features(self) -> set[str]:
        """What this case covers, measured on its bounded tables (and, for lateness and steps, on its steps)."""
        return measure(self)


def _after(first: Any, last: Any, stream: str) -> bool:
    """Whether one bound of a stream lies after the other."""
    own = [bound[stream] if isinstance(bound, dict) else bound for bound in (first, last)]
    low, high = (m if m is None or isinstance(m, int) else (m - EPOCH) // timedelta(microseconds=1) for m in own)
    return low is not None and high is not None and low > high


def cases(*, for_spark: bool = False, shapes: tuple[Shape, ...] = SHAPES) -> st.SearchStrategy[Case]:
    """Random cases by seed and shape."""
    return st.builds(
        lambda seed, shape: Case.of(seed, for_spark=for_spark, shape=shape),
        st.integers(0, 2**32 - 1),
        st.sampled_from(shapes),
    )


def shrinking_cases(*, for_spark: bool = False, shapes: tuple[Shape, ...] = SHAPES) -> st.SearchStrategy[Case]:
    """Random cases of which Hypothesis makes every choice, so that it can shrink them."""
    return st.builds(
        lambda rng, shape: Case.random(rng, for_spark=for_spark, shape=shape),
        st.randoms(use_true_random=False),
        st.sampled_from(shapes),
    )


def smallest(case: Case, fails: Callable[[Case], bool]) -> Case:
    """A case with as few rows and steps as one can take away from it so that it still fails."""
    sizes = [len(table) for step in case.steps for table in step.values()]
    cut = max(sizes, default=0)
    while cut:
        for at, step in enumerate(case.steps):
            for name in step:
                start = 0
                while start < len(case.steps[at][name]):
                    shorter = _without(case, at, name, start, cut)
                    if fails(shorter):
                        case = shorter
                    else:
                        start += cut
        cut //= 2
    steps = [step for step in case.steps if any(len(table) for table in step.values())]
    fewer = replace(case, steps=steps)
    return fewer if fails(fewer) else case


def _without(case: Case, at: int, name: str, start: int, count: int) -> Case:
    """The case without some rows of one stream in one step."""
    steps = [dict(step) for step in case.steps]
    table = steps[at][name]
    steps[at][name] = pa.concat_tables([table.slice(0, start), table.slice(start + count)])
    arrived = {n: pa.concat_tables([case.tables[n].slice(0, 0), *(s[n] for s in steps if n in s)]) for n in case.tables}
    return replace(case, steps=steps, tables=arrived)
