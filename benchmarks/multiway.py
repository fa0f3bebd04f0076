"""What do three streams cost in this process: by probing, a ring, a stash, the one chosen, and two two-way joins?

Four sessions of one three-way join, one for each `algorithm=`, and a cascade: a session that joins r with s, whose
matches are fed to a second one that joins them with t. All of them get the same rows, with full windows, from which as
many rows expire as arrive, and take turns with every push. Before, what each of them finds is compared row by row with
what DuckDB finds; and in every push, by number and sum.

Stages work in threads: they can shorten the time on the clock, and never the CPU time of all threads. Both are given.
The algorithm is chosen by the time on the clock, so that is what its goal is about.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from statistics import median, quantiles
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa

import handfast as hf
from benchmarks import multiway_costs as costs
from benchmarks.trigger import setting
from handfast.cli.bench.measure import Ratio

RESULT = Path(__file__).parent / "results" / "multiway.json"
SEED = 17
STREAMS = ("r", "s", "t")
RATES = (0.1, 1.0, 4.0)  # partners that a row finds in each window it looks into
ALGORITHMS = {"plain": "plain", "circular": "circular", "stashed": "stashed", "automatic": None}
CASCADE = "cascade"
GOAL_CHOICE, GOAL_CASCADE = 1.15, 2.0
CHECKED = 1_500  # rows of a window while matches are compared

Rows = Mapping[str, pa.Table]


@dataclass(frozen=True)
class Shape:
    """A join whose windows hold so many rows of each of three streams.

    Attributes:
        by: The condition over two streams.
        pairs: The pairs of streams that it is asked of.
        domain: From a window and a match rate, what x and y are drawn below.
        push: Rows of each stream that come at a time.
    """

    by: str
    pairs: tuple[str, ...]
    domain: Callable[[int, float], float]
    window: int
    push: int

    def spec(self) -> hf.JoinSpec:
        on = " AND ".join(self.by.format(a=f"{a}.", b=f"{b}.") for a, b in self.pairs)
        return hf.JoinSpec(STREAMS, on, **self.asked, select="r.id, s.id, t.id")

    @property
    def columns(self) -> list[str]:
        """The columns that the condition reads."""
        return [own for own in ("k", "x", "y") if f"{{a}}{own}" in self.by]

    @property
    def asked(self) -> dict[str, Any]:
        return {"window": f"{self.window} us", "time": "ts", "lateness": "0 seconds"}

    def rows(self, rate: float, start: int, count: int) -> Rows:
        return {name: rows(start, count, self.domain(self.window, rate), SEED + k) for k, name in enumerate(STREAMS)}


def equality(window: int, push: int) -> Shape:
    """One key that all three share."""
    return Shape("{a}k = {b}k", ("rs", "st"), lambda window, rate: window / rate, window, push)


def theta(window: int, push: int) -> Shape:
    """Three points of a plane that are near each other; no index helps."""
    near = "({a}x - {b}x) * ({a}x - {b}x) + ({a}y - {b}y) * ({a}y - {b}y) <= 1.0"
    return Shape(near, ("rs", "st", "rt"), lambda window, rate: (np.pi * window / rate) ** 0.5, window, push)


SHAPES = {
    "equality, 60 k": equality(60_000, 10_000),
    "equality, 1 M": equality(1_000_000, 50_000),
    "theta, 4 k": theta(4_000, 1_000),
    "theta, 16 k": theta(16_000, 1_000),
}


def rows(start: int, count: int, domain: float, seed: int) -> pa.Table:
    """Rows of one stream, one in every microsecond."""
    rng = np.random.default_rng((seed, start))
    numbers = np.arange(start, start + count)
    return pa.table(
        {
            "id": numbers,
            "ts": pa.array(numbers).cast(pa.timestamp("us", "UTC")),
            "k": rng.integers(0, int(domain), count),
            "x": rng.uniform(0, domain, count),
            "y": rng.uniform(0, domain, count),
        }
    )


# -- who takes turns --------------------------------------------------------------------------------------------------


class ThreeWay:
    """One session that joins all three streams."""

    def __init__(self, shape: Shape, algorithm: str | None) -> None:
        schemas = {name: rows(0, 0, 1, 0).schema for name in STREAMS}
        self.session = hf.session(shape.spec(), schemas, options=hf.LocalOptions(algorithm=algorithm))

    def push(self, fed: Rows) -> list[pa.RecordBatch]:
        return self.session.push_together(fed)

    def close(self) -> list[pa.RecordBatch]:
        return self.session.close()


class Cascade:
    """Two sessions: r with s, and what they give with t.

    A pair has the time of its later row, so t finds it for a window after that, and it finds what is in the window of
    t then. What is left for a condition: the earlier row of the pair must still be in its window when t comes.
    """

    def __init__(self, shape: Shape) -> None:
        schema = rows(0, 0, 1, 0).schema
        kept = [f"{own}.{column} AS {own}_{column}" for own in "rs" for column in ("id", "ts", *shape.columns)]
        first = hf.JoinSpec(
            ("r", "s"),
            shape.by.format(a="r.", b="s."),
            **shape.asked,
            select=", ".join([*kept, "match_time AS ts"]),
        )
        self.first = hf.session(first, {"r": schema, "s": schema})
        window = f"INTERVAL '{shape.window / 1e6:f}' SECOND"
        conditions = [shape.by.format(a=f"pair.{a}_", b="t.") for a, b in shape.pairs if b == "t"]
        conditions += [f"t.ts < pair.{own}_ts + {window}" for own in "rs"]
        second = hf.JoinSpec(
            ("pair", "t"),
            " AND ".join(conditions),
            **shape.asked,
            select="pair.r_id AS r_id, pair.s_id AS s_id, t.id AS t_id",
        )
        self.second = hf.session(second, {"pair": self.first.schema, "t": schema})

    def push(self, fed: Rows) -> list[pa.RecordBatch]:
        pairs = self.first.push_together({"r": fed["r"], "s": fed["s"]})
        return self.second.push_together({"pair": pa.Table.from_batches(pairs, self.first.schema), "t": fed["t"]})

    def close(self) -> list[pa.RecordBatch]:
        pairs = self.first.close()
        rest = self.second.push("pair", pa.Table.from_batches(pairs, self.first.schema))
        return rest + self.second.close()


def everyone(shape: Shape) -> dict[str, ThreeWay | Cascade]:
    sessions: dict[str, ThreeWay | Cascade] = {name: ThreeWay(shape, own) for name, own in ALGORITHMS.items()}
    return sessions | {CASCADE: Cascade(shape)}


# -- what is right ----------------------------------------------------------------------------------------------------


def check(shape: Shape, rate: float) -> int:
    """How many matches there are in some pushes; anyone who does not find what DuckDB finds is refused."""
    shape = replace(shape, window=CHECKED, push=CHECKED // 5)
    fed = [shape.rows(rate, start, shape.push) for start in range(0, 4 * CHECKED, shape.push)]
    on = [shape.by.format(a=f"{a}.", b=f"{b}.") for a, b in shape.pairs]
    on += [f"abs(epoch_us({a}.ts) - epoch_us({b}.ts)) < {CHECKED}" for a, b in ("rs", "rt", "st")]
    by = [("r_id", "ascending"), ("s_id", "ascending"), ("t_id", "ascending")]
    with duckdb.connect(config={"threads": 1}) as connection:
        for name in STREAMS:
            connection.register(name, pa.concat_tables([own[name] for own in fed]))
        query = f"SELECT r.id AS r_id, s.id AS s_id, t.id AS t_id FROM r, s, t WHERE {' AND '.join(on)}"
        right = connection.sql(query).to_arrow_table().sort_by(by)
    for name, session in everyone(shape).items():
        given = [batch for own in fed for batch in session.push(own)] + session.close()
        found = pa.Table.from_batches(given).cast(right.schema).sort_by(by)
        assert found.equals(right) and len(right), f"{name} finds {len(found)} matches, not the {len(right)} of DuckDB"
    return len(right)


def summed(given: list[pa.RecordBatch]) -> tuple[int, int]:
    """How many matches there are, and the sum of a number made of each."""
    total = 0
    for batch in given:
        r, s, t = (batch.column(k).to_numpy() for k in range(3))
        total += int(((r * 1_000_003) ^ (s * 998_244_353) ^ (t * 1_610_612_741)).sum())
    return sum(map(len, given)), total % (1 << 64)


# -- what is timed ----------------------------------------------------------------------------------------------------


@dataclass
class Spent:
    """Nanoseconds for a row of any stream, push by push."""

    cpu: list[float] = field(default_factory=list)
    clock: list[float] = field(default_factory=list)


def timed(shape: Shape, rate: float, turns: int) -> tuple[dict[str, Spent], dict[str, ThreeWay | Cascade], float]:
    """What everyone spends; the sessions as they stand then; matches for each new row."""
    sessions = everyone(shape)
    start, matches = 0, 0
    step = max(shape.push, shape.window // 10)
    while start < shape.window + step:
        fed = shape.rows(rate, start, step)
        for session in sessions.values():
            session.push(fed)
        start += step
    spent = {name: Spent() for name in sessions}
    for turn in range(turns + 2):
        fed = shape.rows(rate, start, shape.push)
        start += shape.push
        order = list(sessions)[turn % len(sessions) :] + list(sessions)[: turn % len(sessions)]
        found = set()
        for name in order:
            gc.collect()
            cpu, clock = time.process_time(), time.perf_counter()
            given = sessions[name].push(fed)
            cpu, clock = time.process_time() - cpu, time.perf_counter() - clock
            found.add(summed(given))
            del given
            if turn > 1:  # what is new in the first ones does not count
                spent[name].cpu.append(1e9 * cpu / (3 * shape.push))
                spent[name].clock.append(1e9 * clock / (3 * shape.push))
        assert len(found) == 1, f"They do not find the same: {found}"
        matches += found.pop()[0]
    return spent, sessions, matches / (turns + 2) / (3 * shape.push)


def figures(shape: Shape, rate: float, turns: int) -> dict[str, Any]:
    """All that is said of one shape and one match rate."""
    checked = check(shape, rate)
    before = os.getloadavg()[0]
    spent, sessions, matches = timed(shape, rate, turns)
    automatic, rows = sessions["automatic"], {}
    for name, own in spent.items():
        rows[name] = {what: spread(getattr(own, what)) for what in ("cpu", "clock")}
    result = {
        "window": shape.window,
        "push": shape.push,
        "match rate": rate,
        "matches compared with DuckDB": checked,
        "matches a row": matches,
        "load of the machine": [before, os.getloadavg()[0]],
        "chosen": chosen(automatic),
        "ns a row": rows,
        "coefficients": {name: costs.of(own.session) for name, own in sessions.items() if isinstance(own, ThreeWay)},
    }
    for what in ("cpu", "clock"):
        of = {name: getattr(own, what) for name, own in spent.items()}
        best = min(ALGORITHMS, key=lambda name: median(of[name]) if name != "automatic" else float("inf"))
        result[f"best, {what}"] = best
        result[f"automatic over best, {what}"] = asdict(Ratio.of(of["automatic"], of[best]))
        result[f"cascade over automatic, {what}"] = asdict(Ratio.of(of[CASCADE], of["automatic"]))
        result[f"cascade over best, {what}"] = asdict(Ratio.of(of[CASCADE], of[best]))
    for session in sessions.values():
        session.close()
    return result


def spread(values: list[float]) -> dict[str, float]:
    low, middle, high = quantiles(values, n=4, method="inclusive")
    return {"median": middle, "low": low, "high": high}


def chosen(session: ThreeWay | Cascade) -> str:
    """What the session does by now, in its own words."""
    assert isinstance(session, ThreeWay)
    words = session.session.cores.algorithm()
    assert words is not None
    return words[0]


# -- the answer -------------------------------------------------------------------------------------------------------


def shown(name: str, result: dict[str, Any]) -> str:
    """One row of the table for each of those that took turns: nanoseconds a row, and what the cascade takes of them."""
    lines = [f"{name}, {result['match rate']} partners a probe, {result['matches a row']:.2f} matches a row"]
    own = result["ns a row"]
    for who, what in own.items():
        cells = []
        for clock in ("cpu", "clock"):
            cascade = own[CASCADE][clock]["median"] / what[clock]["median"]
            cells.append(
                f"{clock} {what[clock]['median']:>8,.0f} ({what[clock]['low']:,.0f}–{what[clock]['high']:,.0f}) "
                f"cascade ÷ it {cascade:5.2f}"
            )
        lines.append(f"  {who:<10} {'   '.join(cells)}")
    over = {what: Ratio(**result[f"automatic over best, {what}"]) for what in ("cpu", "clock")}
    lines.append(
        f"  chosen: {result['chosen']}; over the best: cpu {over['cpu']} ({result['best, cpu']}), "
        f"clock {over['clock']} ({result['best, clock']})"
    )
    return "\n".join(lines)


def goals(results: dict[str, Any]) -> dict[str, Any]:
    """The worst of what has a goal, each with the shape that it is of."""
    many = {name: own for name, own in results.items() if own["match rate"] == max(RATES)}
    found: dict[str, Any] = {}
    for what in ("cpu", "clock"):
        key = f"automatic over best, {what}"
        worst = max(results, key=lambda name: results[name][key]["median"])
        found[key] = results[worst][key] | {"goal": GOAL_CHOICE, "at": worst}
        key = f"cascade over automatic, {what}"
        if many:
            worst = min(many, key=lambda name: many[name][key]["median"])
            found[f"{key}, {max(RATES)} partners"] = many[worst][key] | {"goal": GOAL_CASCADE, "at": worst}
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--turns", type=int, default=9)
    parser.add_argument("--shapes", nargs="*", choices=SHAPES, default=list(SHAPES))
    parser.add_argument("--rates", nargs="*", type=float, default=RATES)
    parser.add_argument("--save", type=Path, nargs="?", const=RESULT, help=f"write {RESULT.name}, or another file")
    asked = parser.parse_args()
    begun = time.monotonic()
    results = {}
    for name in asked.shapes:
        for rate in asked.rates:
            title = f"{name}, {rate}"
            results[title] = figures(SHAPES[name], rate, asked.turns)
            print(shown(name, results[title]), flush=True)
    constants, present = costs.of_rows(results), costs.present()
    print("the constants of the choice, fitted to these CPU times, in nanoseconds:")
    for name, value in constants.items():
        print(f"  {name:<20} {value:>12,.2f}   in the code {present.get(name, 0.0):,.2f}")
    reached = goals(results)
    for name, own in reached.items():
        print(f"{name}: {Ratio(own['median'], own['low'], own['high'])}, goal {own['goal']}, worst at {own['at']}")
    print(f"took {time.monotonic() - begun:.0f} s")
    if asked.save:
        about = {"question": (__doc__ or "").splitlines()[0], "seed": SEED, "turns": asked.turns} | setting()
        fit = {"fitted": constants, "in the code": present}
        answer = about | {"goals": reached, "constants": fit, "results": results}
        asked.save.write_text(json.dumps(answer, indent=1, ensure_ascii=False) + "\n")
    met = all(
        own["median"] <= GOAL_CHOICE if "best" in name else own["median"] >= GOAL_CASCADE
        for name, own in reached.items()
        if name.startswith("automatic over best, clock") or name.startswith("cascade over automatic, cpu")
    )
    sys.exit(0 if met else 1)


if __name__ == "__main__":
    main()
