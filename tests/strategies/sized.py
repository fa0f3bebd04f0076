"""Random joins of thousands of rows: the shapes, types and options of the small cases, over many blocks and expiries.

`sized(seed)` names one. Columns are drawn from a pool of values each, by arrays instead of row by row; the windows are
made as long as it takes for a result of a wanted size, by what a sample says of the predicate. Every table has a column
`id`, the row's number in the order of arrival, by which results of that size are compared.
"""

from __future__ import annotations

import random
from dataclasses import replace
from math import prod
from typing import Any

import numpy as np
import pyarrow as pa

from tests.judges import duckdb_judge
from tests.strategies.cases import Case
from tests.strategies.maker import Maker
from tests.strategies.multi import MULTI
from tests.strategies.shapes import EQUALITIES, SHAPES, Shape
from tests.strategies.values import TICKS

ROWS = {2: (5_000, 50_000), 3: (5_000, 12_000), 4: (5_000, 8_000)}  # of a stream, by the number of streams
MATCHES = (10_000, 200_000)
TRIED = {
    2: 4e6,
    3: 2e6,
    4: 1e6,
}  # pairs, triples, … in the windows, at most; where keys are equal DuckDB tries far fewer
TRIED_BY_KEY = 1e8
SAMPLE = {2: 256, 3: 36, 4: 14}  # rows of each stream that tell how often the predicate holds
POOL = 400  # values of a column
HOW = ("inner", "inner", "inner", "left", "right", "full", "semi", "anti")
WINDOWS = ("time", "time", "count", "mixed")
WORDS = tuple(f"{letter}{number:x}" for letter in ("", "a", "B", "é", "日") for number in range(60))


def sized(seed: int, *, for_spark: bool = False, steps: int = 30) -> Case:
    """The large case with this number; its rows come in about so many steps at most."""
    rng = random.Random(seed)
    shape = rng.choice(MULTI if seed % 5 == 4 else SHAPES)
    maker = _SizedMaker(rng, np.random.default_rng(seed), for_spark, shape, steps)
    return replace(Case(**maker.parts()), origin=f"sized({seed}, for_spark={for_spark}, steps={steps})")


class _SizedMaker(Maker):
    """Draws one large case."""

    def __init__(
        self, rng: random.Random, arrays: np.random.Generator, for_spark: bool, shape: Shape, steps: int
    ) -> None:
        super().__init__(rng, for_spark, shape)
        self.arrays = arrays
        self.steps = steps
        low, high = ROWS[shape.streams]
        self.sizes = [int(low * (high / low) ** rng.random()) for _ in self.streams]
        if shape.streams == 2:
            small = any(kind == "tinyint" for _, kind in shape.roles.values())
            self.draw.reach = rng.choice((5, 50, 100, 100) if small else (5, 50, 500, 5_000))
            self.draw.words = tuple(rng.sample(WORDS, rng.choice((5, 50, 200))))
        self.draw.span = int(max(self.sizes) * rng.choice((0.1, 1, 1, 10)))

    def parts(self) -> dict[str, Any]:
        """What `Case` is made of."""
        rng = self.rng
        streams = ("r", "s", "t", "Ufer")[: self.shape.streams]
        columns = [self._columns(stream) for stream in self.streams]
        tables = [self._table(own, size) for own, size in zip(columns, self.sizes, strict=True)]
        times = [own["time"][0] for own in columns]
        jitters = [rng.choice((0, 0, 1, self.draw.span // 200, self.draw.span // 50)) for _ in self.streams]
        numbered, cuts = self._arrived(tables, times, jitters)
        named = dict(zip(streams, numbered, strict=True))
        asked: dict[str, Any] = {
            "on": self._predicate(streams, columns),
            "time": dict(zip(streams, times, strict=True)),
        }
        asked |= self._order_and_windows(named, asked)
        if len(streams) == 2:
            asked["how"] = rng.choice(HOW)
        if asked.get("how", "inner") in ("inner", "semi") and rng.random() < 0.25:
            asked["in_order"] = True
        late = rng.random() < 0.2
        lags = {name: jitter // 4 if late else jitter for name, jitter in zip(streams, jitters, strict=True)}
        return {
            "shape": self.shape,
            "streams": streams,
            "kwargs": asked,
            "lateness": {name: f"{lag} {TICKS[self.draw.tick]}" for name, lag in lags.items()},
            "tables": named,
            "steps": self._cut(named, cuts),
            "cores": rng.randint(1, 4),
        }

    def _table(self, columns: dict[str, tuple[str, str, pa.DataType]], size: int) -> pa.Table:
        made = {}
        for role, (name, kind, type_) in columns.items():
            if role == "time":
                made[name] = self._times(type_, size)
            else:
                pool = self._array([self.draw.value(kind) for _ in range(POOL)], kind, type_)
                skew = self.rng.choice((1, 1, 3))  # the first values more often than the others
                made[name] = pool.take(pa.array((POOL * self.arrays.random(size) ** skew).astype(np.int64)))
        return pa.table(made)

    def _times(self, type_: pa.TimestampType, size: int) -> pa.Array:
        micros = self.draw.base + self.draw.tick * self.arrays.integers(0, self.draw.span, size)
        number = {"ns": micros * 1_000 + self.arrays.integers(0, 1_000, size), "us": micros}
        number |= {"ms": micros // 1_000, "s": micros // 1_000_000}
        lost = self.arrays.random(size) < self.rng.choice((0, 0, 0.002))
        return pa.array(number[type_.unit], pa.int64(), mask=lost).cast(type_)

    def _arrived(
        self, tables: list[pa.Table], times: list[str], jitters: list[int]
    ) -> tuple[list[pa.Table], list[list[int]]]:
        """The tables in the order of arrival, by time plus a jitter, numbered; and of each, where its steps end."""
        arrivals, numbered = [], []
        for table, time, jitter in zip(tables, times, jitters, strict=True):
            micros = table[time].cast(pa.timestamp("us"), safe=False).cast(pa.int64()).fill_null(self.draw.base)
            arrival = micros.to_numpy() + self.arrays.integers(0, jitter + 1, len(table)) * self.draw.tick
            order = np.argsort(arrival, kind="stable")
            arrivals.append(arrival[order])
            numbered.append(table.take(pa.array(order)).append_column("id", pa.array(np.arange(len(table)))))
        moments = np.sort(np.concatenate(arrivals))
        cuts = np.sort(self.arrays.choice(moments, self.rng.randint(0, self.steps - 1)))
        return numbered, [[*np.searchsorted(own, cuts).tolist(), len(own)] for own in arrivals]

    def _cut(self, tables: dict[str, pa.Table], cuts: list[list[int]]) -> list[dict[str, pa.Table]]:
        steps: list[dict[str, pa.Table]] = []
        for number in range(len(cuts[0])):
            step = {}
            for (name, table), ends in zip(tables.items(), cuts, strict=True):
                start = ends[number - 1] if number else 0
                step[name] = table.slice(start, ends[number] - start)
            alone = self.rng.random() < 0.1
            steps += [{name: step[name]} for name in self.rng.sample(list(step), len(step))] if alone else [step]
        return steps

    def _order_and_windows(self, tables: dict[str, pa.Table], asked: dict[str, Any]) -> dict[str, Any]:
        """Windows in which a result of the wanted size is found, by time, by count, or by both."""
        rng, sizes, count = self.rng, self.sizes, len(self.sizes)
        truth = self._truth(tables, asked)
        wanted = MATCHES[0] * (MATCHES[1] / MATCHES[0]) ** rng.random()
        tried = min(wanted / truth, TRIED_BY_KEY if self.shape in EQUALITIES else TRIED[count])
        share = (tried / (count * prod(sizes))) ** (1 / (count - 1))  # of all times, in which a window lies
        kind = rng.choice(WINDOWS)
        windows = {}
        for name, size in zip(tables, sizes, strict=True):
            own = min(1.0, share * rng.choice((0.3, 1, 1, 1.7)))
            if kind == "count" or (kind == "mixed" and name == list(tables)[-1]):
                windows[name] = f"{max(1, round(own * size))} rows"
            else:
                windows[name] = f"{max(1, round(own * self.draw.span))} {TICKS[self.draw.tick]}"
        nested = any(pa.types.is_nested(field.type) for table in tables.values() for field in table.schema)
        # DuckDB and Spark sort lists and structs differently, so ties are not left to those
        more = {"sequence": "id"} if nested or (kind != "time" and rng.random() < 0.5) else {}
        return {"window": windows, **more}

    def _truth(self, tables: dict[str, pa.Table], asked: dict[str, Any]) -> float:
        """How often the predicate holds of rows picked at random."""
        rows = SAMPLE[len(tables)]
        picked = {n: t.take(pa.array(self.arrays.integers(0, len(t), rows))) for n, t in tables.items()}
        found = duckdb_judge.matches(picked, window="1000000000 days", **asked).num_rows
        return max(found, 0.5) / float(rows) ** len(tables)
