"""docs/performance.md: its tables are what benchmarks have written down. `python -m benchmarks.page` writes them in.

Between `<!-- NAME -->` and `<!-- end -->` stands the table of that name; all else on the page is its own.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SLOWEST, MEMORY = 3, 2  # a push over the median one, what a window holds over its raw columns: at the most
HOME = Path(__file__).parent
PAGE = HOME.parent / "docs" / "performance.md"
Result = dict[str, Any]


@dataclass(frozen=True)
class Row:
    """What was measured, what came out, and what was wanted: at least or at most so much."""

    what: str
    seen: str
    wanted: str = ""
    met: bool = True

    def __str__(self) -> str:
        verdict = "" if not self.wanted else "yes" if self.met else "**no**"
        return f"| {self.what} | {self.seen} | {self.wanted} | {verdict} |"


def ratio(what: str, own: Result, *, least: float | None = None, most: float | None = None) -> Row:
    """A ratio with its quartiles."""
    seen = f"{own['median']:.2f}"
    if "low" in own and "high" in own:
        seen += f" ({own['low']:.2f}–{own['high']:.2f})"
    return bounded(what, own["median"], seen, least=least, most=most)


def bounded(what: str, figure: float, seen: str, *, least: float | None = None, most: float | None = None) -> Row:
    """A figure beside what was wanted of it."""
    if least is not None:
        return Row(what, seen, f"≥ {least:,g}", figure >= least)
    if most is not None:
        return Row(what, seen, f"≤ {most:,g}", figure <= most)
    return Row(what, seen)


# -- a table for each result ------------------------------------------------------------------------------------------


def scan(result: Result) -> Iterator[Row]:
    for name, own in result["figures"].items():
        yield ratio(name.partition(", ")[2], own, least=own["goal"])


def indexes(result: Result) -> Iterator[Row]:
    for name, own in result["sliding"].items():
        speed = own["tuples/s/stream"]
        yield bounded(f"{name}: tuples/s of each stream", speed, f"{speed:,}", least=own["goal"])
        for what, most in (("slowest push over median", SLOWEST), ("resident over raw", MEMORY)):
            yield bounded(f"{name}: {what}", own[what], f"{own[what]:.2f}", most=most)
    for name, own in result["beside"].items():
        yield bounded(f"{name}: tuples/s", own["ratio"], f"{own['ratio']:.2f}", least=own["goal"])
    for own in result["bounded"]:
        kind = "equality" if "k" in own["on"] else "band"
        yield ratio(f"{kind}, {own['rows']:,} rows each: CPU over {own['against']}", own, most=own["goal"])
        if own["best peer"] != own["against"]:
            yield ratio(f"the same over the fastest peer, {own['best peer']}", own["over the best"])


def windows(result: Result) -> Iterator[Row]:
    polars, growth, key = (result[name] for name in ("CPU over Polars", "growth", "one hot key over many"))
    yield ratio("200,000 rows each, 20 keys, 100 ms: CPU over Polars with buckets", polars, most=polars["goal"])
    for name, own in growth.items():
        if own:
            yield ratio(f"CPU of a match among 200,000 rows over among 20,000, {name}", own, most=own["goal"])
    yield ratio("a streaming batch of one hot key over one of many", key, most=key["goal"])


def multiway(result: Result) -> Iterator[Row]:
    for name, own in result["goals"].items():
        at_most = name.startswith("automatic")
        limits = {"most": own["goal"]} if at_most else {"least": own["goal"]}
        yield ratio(f"{name}, at {own['at']}", own, **limits)
    for shape, own in result["results"].items():
        for clock in ("cpu", "clock"):
            yield ratio(f"{shape}: cascade over the one chosen, {clock}", own[f"cascade over automatic, {clock}"])


def spark_multiway(result: Result) -> Iterator[Row]:
    for rows, own in result["streaming"].items():
        for peer, times in own["times as fast as"].items():
            least = result["goal"] if peer == "native" and rows == "100,000 rows" else None
            yield ratio(f"by a key, {rows} of each stream a trigger: times as fast as {peer}", times, least=least)


def spark_streaming(result: Result) -> Iterator[Row]:
    for name, own in result["goals"].items():
        yield ratio(name, own, least=own.get("least"), most=own.get("most"))


def spark_batch(result: Result) -> Iterator[Row]:
    for title, own in result["joins"].items():
        for peer, times in own["times as fast as"].items():
            least = own["goal"] if peer == own["against"] else None
            yield ratio(f"{title}: times as fast as {peer}", times, least=least)


def spark_hot_keys(result: Result) -> Iterator[Row]:
    for kind in ("batch", "streaming"):
        what = f"{kind}, {result['share of the hot key']:.0%} of the rows with one key, over {result['cores']} cores"
        yield ratio(f"{what}: times as fast when it is split", result[kind]["times as fast when split"])


def streaming_peers(result: Result) -> Iterator[Row]:
    for own in result["runs"]:
        least = None if own["form"] == "band" else result["goal"]
        yield ratio(f"{own['peer']}, {own['form']}, {own['rows']:,} tuples each: times our CPU", own, least=least)
    for name in result["missing"]:
        yield Row(name, "not installed")


def scaling(result: Result) -> Iterator[Row]:
    for name, least in (("scan 2/1", 1.8), ("index 2/1", 1.7)):
        yield ratio(f"{name.split()[0]}, two cores over one", result["figures"][name], least=least)
    yield ratio("latency at half load, p99 over a block's scan", result["figures"]["latency"], most=3)


def chain(result: Result) -> Iterator[Row]:
    hop, sliding = result["hops"]["hop"], result["sliding"]
    micros = hop["median"] * 1e6
    yield bounded("a hop of 256 tuples, empty neighbour, µs", micros, f"{micros:.2f}", most=hop["goal"] * 1e6)
    yield ratio("the same in Python over machine code", result["hops"]["Python over machine code"])
    yield ratio("two cores over one, both windows slide", sliding["2/1"], least=sliding["2/1"]["goal"])
    yield ratio("the same by CPU time of the busiest core", sliding["2/1 by CPU time of the busiest core"])
    for name, own in result.get("by the clock", {}).items():
        kept = "keeps up" if own["kept up"] else "falls behind"
        yield Row(f"{name}, fed by the clock, nothing dropped", f"{own['rate']:,.0f} tuples/s/stream: {kept}")


def cores(result: Result) -> Iterator[Row]:
    for name, own in result["figures"].items():
        yield ratio(f"{name}: two cores over one, by the clock", own, least=own["goal"])
        yield ratio("— the CPU of two over one", own["CPU of two over one"])


def pushes(result: Result) -> Iterator[Row]:
    for name, own in result["push"].items():
        yield ratio(f"{name}: µs of CPU for a push of 256 tuples that finds next to nothing", own, most=own["goal"])
    for name, own in result["latency"].items():
        yield ratio(f"latency at half load, {name}: ms, p99", own, most=own["goal"])


def answer(result: Result) -> Iterator[Row]:
    yield Row(result["question"], result["answer"])


TABLES: dict[str, tuple[str, Callable[[Result], Iterator[Row]]]] = {
    "scan": ("scan.json", scan),
    "indexes": ("indexes.json", indexes),
    "windows": ("windows.json", windows),
    "multiway": ("multiway.json", multiway),
    "spark multiway": ("spark_multiway.json", spark_multiway),
    "spark streaming": ("spark_streaming.json", spark_streaming),
    "spark batch": ("spark_batch.json", spark_batch),
    "spark hot keys": ("spark_hot_keys.json", spark_hot_keys),
    "trigger": ("trigger.json", answer),
    "sequencer": ("sequencer.json", answer),
    "streaming peers": ("streaming_peers.json", streaming_peers),
    "chain": ("chain.json", chain),
    "scaling": ("scaling/scaling.json", scaling),
    "cores": ("cores.json", cores),
    "pushes": ("pushes.json", pushes),
}


def table(name: str) -> str:
    """A table of the page, below it the machine and the commit that the figures come from."""
    file, rows = TABLES[name]
    path = HOME / "results" / file
    if not path.exists():
        return f"Not measured yet: `python -m benchmarks {path.stem}` does."
    result = json.loads(path.read_text(encoding="utf-8"))
    about = result.get("setting", result)
    machine = about.get("machine", about)
    commit = f", commit {about['commit'][:7]}{about['commit'][40:]}" if "commit" in about else ""
    load = f", load {machine['load'][0]:.1f}" if "load" in machine else ""
    source = f"[{file}](../benchmarks/results/{file}): {machine['cpu']}, {machine['cpus']} CPUs{load}{commit}"
    head = ["| | median (quartiles) | goal | met |", "|---|---|---|---|"]
    return "\n".join([*head, *map(str, rows(result)), "", source])


def page() -> str:
    """The page as it should be."""

    def shown(mark: re.Match[str]) -> str:
        return f"<!-- {mark[1]} -->\n{table(mark[1])}\n<!-- end -->"

    return re.sub(r"<!-- ([a-z ]+) -->\n.*?<!-- end -->", shown, PAGE.read_text(encoding="utf-8"), flags=re.S)


def write() -> None:
    """Write the tables into the page."""
    PAGE.write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    write()
