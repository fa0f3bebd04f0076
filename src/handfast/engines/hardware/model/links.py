"""Who reads whom in a tree of mergers, as `connect_levels` connects them."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from handfast.engines.hardware.model.bits import Ints
from handfast.engines.hardware.tree import level_sizes


def tree_children(n: int, fan_in: int) -> Ints:
    """By merger and port what it reads: mergers are numbered from the root on, the inputs behind them.

    The number after the last input is what a port reads that is left out.
    """
    sizes = [*level_sizes(n, fan_in), n]
    children = np.full((sum(sizes) - n, fan_in), sum(sizes), np.int64)
    start = 0
    for own, below in pairwise(sizes):
        for child in range(below):
            children[start + child // fan_in, child % fan_in] = start + own + child
        start += own
    return children


def parents_and_ports(children: Ints, size: int) -> tuple[Ints, Ints]:
    """By merger and input the merger that reads it, and at which port; -1 for the root."""
    parent, port = np.full(size, -1, np.int64), np.zeros(size, np.int64)
    for (merger, place), child in np.ndenumerate(children):
        if child < size:
            parent[child], port[child] = merger, place
    return parent, port
