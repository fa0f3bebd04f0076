"""Draws the parts of a case: tables, predicate, windows, and the steps in which the rows arrive."""

from __future__ import annotations

import random
import string
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pyarrow as pa

from tests.strategies.shapes import R, S, Shape
from tests.strategies.values import PAYLOADS, TICKS, Draw

MAX_ROWS = {2: 60, 3: 24, 4: 12}  # by the number of streams: the oracle tries every combination
NAMES = ("t", "Ufer", *(f"v{number}" for number in range(3, 15)))  # of the third stream and others


class Maker:
    """Draws one case."""

    def __init__(self, rng: random.Random, for_spark: bool, shape: Shape) -> None:
        self.rng = rng
        self.shape = shape
        self.streams = range(shape.streams)
        self.draw = Draw.random(rng, for_spark)
        if shape.streams > 2:  # few values, so that three and four meet
            self.draw.reach = rng.choice((1, 2))
            self.draw.words = self.draw.words[:2]

    def parts(self) -> dict[str, Any]:
        """What `Case` is made of."""
        rng, draw = self.rng, self.draw
        streams = rng.choice((("r", "s"), ("r", "s"), ("trades", "quotes"), ("Left", "b_2")))
        streams += NAMES[: len(self.streams) - 2]
        columns = [self._columns(stream) for stream in self.streams]
        tables = [self._table(columns[stream], self._size()) for stream in self.streams]
        times = [columns[stream]["time"][0] for stream in self.streams]
        one_time = len(set(times)) == 1
        kwargs = {
            "on": self._predicate(streams, columns),
            "window": self._windows(streams),
            "time": times[0] if one_time else dict(zip(streams, times, strict=True)),
        }
        lags, jitters = self._lags()
        steps, tables = self._arrive(tables, times, jitters)
        lateness: str | dict[str, str] = {
            name: f"{lag} {TICKS[draw.tick]}" for name, lag in zip(streams, lags, strict=True)
        }
        if len(set(lags)) == 1 and rng.random() < 0.5:
            lateness = lateness[streams[0]]
        named = [{streams[i]: table for i, table in step.items()} for step in steps]
        return {
            "shape": self.shape,
            "streams": streams,
            "kwargs": kwargs,
            "lateness": lateness,
            "tables": dict(zip(streams, tables, strict=True)),
            "steps": named,
            "cores": rng.randint(1, 5),
        }

    def _columns(self, stream: int) -> dict[str, tuple[str, str, pa.DataType]]:
        """Role → name, kind, Arrow type, in the order of the schema."""
        rng = self.rng
        kinds = {role: kind for role, (owner, kind) in self.shape.roles.items() if owner == stream}
        kinds |= {"time": "moment"}
        kinds |= {f"payload{i}": rng.choice(PAYLOADS) for i in range(rng.choice((0, 0, 1, 2, 3)))}
        roles = list(kinds)
        if rng.random() < 0.5:
            rng.shuffle(roles)
        plain = rng.random() < 0.6
        names: dict[str, str] = {}
        for role in roles:
            name = ("ts" if role == "time" else role) if plain else self._name(names)
            names[role] = name
        return {role: (names[role], kinds[role], self.draw.arrow_type(kinds[role])) for role in roles}

    def _name(self, taken: dict[str, str]) -> str:
        while True:
            name = self.rng.choice(("price", "Volume", "k_1", "zone", "x9", "select", "my col")) + self.rng.choice(
                ("", "", *string.digits)
            )
            if name.lower() not in [other.lower() for other in taken.values()]:
                return name

    def _size(self) -> int:
        rng, most = self.rng, MAX_ROWS[len(self.streams)]
        if len(self.streams) > 2 and rng.random() < 0.9:
            return rng.randrange(most // 2, most + 1)
        return rng.choice((rng.randrange(1, 5), *(rng.randrange(most // 4, most + 1) for _ in range(12)), 0))

    def _table(self, columns: dict[str, tuple[str, str, pa.DataType]], size: int) -> pa.Table:
        lost_times = 0.05 if self.rng.random() < 0.15 else 0.0
        arrays = {}
        for role, (name, kind, type_) in columns.items():
            if role == "time":
                values: list[Any] = [
                    None if self.rng.random() < lost_times else self.draw.moment() for _ in range(size)
                ]
            else:
                values = [self.draw.value(kind) for _ in range(size)]
            arrays[name] = self._array(values, kind, type_)
        return pa.table(arrays)

    def _array(self, values: list[Any], kind: str, type_: pa.DataType) -> pa.Array:
        if kind == "moment":
            scale: Callable[[int], int] = {
                "ns": lambda t: t * 1_000 + self.rng.randrange(1_000),
                "us": lambda t: t,
                "ms": lambda t: t // 1_000,
                "s": lambda t: t // 1_000_000,
            }[type_.unit]
            return pa.array([None if t is None else scale(t) for t in values], pa.int64()).cast(type_)
        if kind == "decimal":
            return pa.array(values, pa.string()).cast(type_)
        if pa.types.is_dictionary(type_):
            return pa.array(values, pa.string()).cast(type_)
        return pa.array(values, type_)

    def _predicate(self, streams: tuple[str, ...], columns: list[dict[str, tuple[str, str, pa.DataType]]]) -> str:
        rng = self.rng
        texts: dict[str, str] = {}
        every = [name.lower() for by_role in columns for name, _, _ in by_role.values()]

        def write(stream: int, role: str) -> str:
            name = columns[stream][role][0]
            text = name if name.isidentifier() and name != "select" else f"`{name}`"
            if every.count(name.lower()) == 1 and rng.random() < 0.1:
                return text
            if rng.random() < 0.1:
                return f"{streams[stream].upper()}.{text.upper()}"
            return f"{streams[stream]}.{text}"

        for role, (stream, _) in self.shape.roles.items():
            texts[role] = write(stream, role)
        texts |= {"rt": write(R, "time"), "st": write(S, "time")}
        texts |= {hole: self.draw.constant(kind) for hole, kind in self.shape.constants.items()}
        return self.shape.on.format(**texts)

    def _windows(self, streams: tuple[str, ...]) -> Any:
        rng, draw = self.rng, self.draw

        def window() -> Any:
            ticks = rng.choice((rng.randrange(1, draw.span // 2 + 1), rng.randrange(1, draw.span // 2 + 1), draw.span))
            if rng.random() < 0.2:
                return timedelta(microseconds=ticks * draw.tick)
            return f"{ticks} {TICKS[draw.tick]}"

        return window() if rng.random() < 0.4 else {name: window() for name in streams}

    def _lags(self) -> tuple[list[int], list[int]]:
        """Each stream's lateness in ticks, and how far its rows really are out of order."""
        rng, span = self.rng, self.draw.span
        lags = [rng.choice((0, rng.randrange(1, span // 2 + 1), rng.randrange(1, span // 2 + 1))) for _ in self.streams]
        if rng.random() < 0.2:
            return [lag // 4 for lag in lags], [max(2, span // 2)] * len(lags)
        return lags, [lag if rng.random() < 0.8 else 0 for lag in lags]

    def _arrive(
        self, tables: list[pa.Table], times: list[str], jitters: list[int]
    ) -> tuple[list[dict[int, pa.Table]], list[pa.Table]]:
        """The steps in which the rows arrive: in the order of time plus a jitter, so none lags by more than that."""
        rng, tick = self.rng, self.draw.tick
        arrivals = []
        for stream, table in enumerate(tables):
            for row, time in enumerate(
                table[times[stream]].cast(pa.timestamp("us"), safe=False).cast(pa.int64()).to_pylist()
            ):
                moment = self.draw.moment() if time is None else time
                arrivals.append((moment + rng.randint(0, jitters[stream]) * tick, rng.random(), stream, row))
        arrivals.sort()
        order: list[list[int]] = [
            [row for _, _, origin, row in arrivals if origin == stream] for stream in self.streams
        ]
        arrived = [table.take(pa.array(rows, pa.int64())) for table, rows in zip(tables, order, strict=True)]
        cuts = sorted(rng.randrange(len(arrivals) + 1) for _ in range(rng.choice((0, 1, 2, 3, 5))))
        steps: list[dict[int, pa.Table]] = []
        done = [0] * len(self.streams)
        for low, high in zip([0, *cuts], [*cuts, len(arrivals)], strict=True):
            step: dict[int, pa.Table] = {}
            for stream in self.streams:
                count = sum(1 for arrival in arrivals[low:high] if arrival[2] == stream)
                if count or rng.random() < 0.5:
                    step[stream] = arrived[stream].slice(done[stream], count)
                done[stream] += count
            if len(step) == len(self.streams) and rng.random() < 0.2:
                steps += [{stream: step[stream]} for stream in rng.sample(self.streams, len(self.streams))]
            else:
                steps.append(step)
        return steps, arrived
