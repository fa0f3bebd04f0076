"""Where the cores run: one on each CPU where they fill the machine, and in the order of its NUMA nodes [HSJ §5.1]."""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

_NODES = Path("/sys/devices/system/node")


@dataclass(frozen=True, slots=True)
class Layout:
    """The CPU of each core, or none where cores run wherever the system puts them; and why it is so."""

    places: tuple[int | None, ...]
    reason: str


def layout(cores: int, nodes: Path = _NODES) -> Layout:
    """Where so many cores run.

    They are pinned where they fill the machine, for otherwise the system often wakes two of them on the same CPU while
    another is idle; and where it has several NUMA nodes, with a CPU left to the driver, which also collects.
    """
    if not hasattr(os, "sched_setaffinity"):
        return Layout((None,) * cores, "not pinned: this system does not let threads choose their CPU")
    return plan_layout(cores, numa_nodes(nodes), sorted(os.sched_getaffinity(0)))


def plan_layout(cores: int, nodes: Sequence[Sequence[int]], usable: Sequence[int]) -> Layout:
    """Where so many cores run on a machine with these nodes."""
    in_order = [cpu for node in nodes for cpu in node if cpu in usable]
    if len(in_order) < len(usable):  # not all are listed
        in_order = list(usable)
    if cores == 1:
        return Layout((None,), "not pinned: it is one alone")
    if cores == len(in_order):
        return Layout(tuple(in_order), "pinned, one to each CPU")
    if cores > len(in_order):
        return Layout((None,) * cores, f"not pinned: {cores} cores share {len(in_order)} CPUs")
    if len(nodes) < 2:
        return Layout((None,) * cores, "not pinned: the machine has one NUMA node, and CPUs to spare")
    return Layout(tuple(in_order[:cores]), f"pinned along {len(nodes)} NUMA nodes, the driver on the others")


def numa_nodes(folder: Path = _NODES) -> list[list[int]]:
    """The CPUs of each NUMA node, as Linux lists them; none where it does not."""
    found = sorted(folder.glob("node[0-9]*"), key=lambda node: int(node.name.removeprefix("node")))
    lists = [(node / "cpulist").read_text().strip() for node in found if (node / "cpulist").exists()]
    return [_cpus(text) for text in lists if text]


def _cpus(text: str) -> list[int]:
    """`0-2,8` as numbers."""
    cpus: list[int] = []
    for part in text.split(","):
        first, _, last = part.partition("-")
        cpus += range(int(first), int(last or first) + 1)
    return cpus


def threads(cores: int) -> ThreadPoolExecutor:
    """A thread for each core, each kept where it runs."""
    places = iter(layout(cores).places)
    return ThreadPoolExecutor(cores, "handfast core", lambda: pin(next(places)))


def pin(place: int | None) -> None:
    """Keep the thread that calls on one CPU."""
    if place is not None:
        with suppress(OSError):  # the CPU may have been taken from this process meanwhile: then it runs anywhere
            os.sched_setaffinity(0, {place})
