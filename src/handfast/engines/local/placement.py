"""Placement: which CPU each core runs on. One each where they fill the machine, in order of NUMA nodes [HSJ §5.1]."""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

_NODES = Path("/sys/devices/system/node")


@dataclass(frozen=True, slots=True)
class Placement:
    """The CPU of each core, None where it runs wherever the system puts it; and why."""

    cpus: tuple[int | None, ...]
    reason: str


def placement(cores: int, nodes: Path = _NODES) -> Placement:
    """Where so many cores run.

    They are pinned where they fill the machine, since otherwise the system often wakes two of them on the same CPU
    while another is idle. They are also pinned where there are several NUMA nodes and a CPU is left for the driver.
    """
    if not hasattr(os, "sched_setaffinity"):
        return Placement((None,) * cores, "not pinned: this system does not let a thread choose its CPU")
    return place(cores, numa_nodes(nodes), sorted(os.sched_getaffinity(0)))


def place(cores: int, nodes: Sequence[Sequence[int]], usable: Sequence[int]) -> Placement:
    """Where so many cores run on a machine with these nodes."""
    listed = [cpu for node in nodes for cpu in node if cpu in usable]
    if len(listed) < len(usable):  # not all are listed
        listed = list(usable)
    if cores == 1:
        return Placement((None,), "not pinned: there is only one core")
    if cores == len(listed):
        return Placement(tuple(listed), "pinned, one to each CPU")
    if cores > len(listed):
        return Placement((None,) * cores, f"not pinned: {cores} cores share {len(listed)} CPUs")
    if len(nodes) < 2:
        return Placement((None,) * cores, "not pinned: the machine has one NUMA node, and CPUs to spare")
    return Placement(tuple(listed[:cores]), f"pinned along {len(nodes)} NUMA nodes, the driver on the other CPUs")


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


def pinned_threads(cores: int) -> ThreadPoolExecutor:
    """A thread for each core, on the CPU where it is placed."""
    cpus = iter(placement(cores).cpus)
    return ThreadPoolExecutor(cores, "handfast core", lambda: pin(next(cpus)))


def pin(cpu: int | None) -> None:
    """Keep the calling thread on one CPU."""
    if cpu is not None:
        with suppress(OSError):  # the CPU may have been taken from this process meanwhile: then it runs anywhere
            os.sched_setaffinity(0, {cpu})
