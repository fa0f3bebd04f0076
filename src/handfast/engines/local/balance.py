"""Balance: what a tuple costs each core, and how new tuples are shared among cores that all see them.

Where tuples are stored does not change the result, so this is a matter of speed alone. When a core of a chain forwards
is its topology's policy (`flow/topology.py`); it goes by the costs that are measured here.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

_SLOW = 4.0  # a core counts as slow when a tuple costs it so many times what it costs the median one
_SAMPLES = 16
_WORTH_MEASURING = 1 << 20  # meetings; fewer cost much the same whether they are few or many


def shares(sizes: Sequence[int], costs: Sequence[float], count: int) -> list[int]:
    """How many of `count` new tuples each core stores, by how many it has and what a stored tuple costs it.

    The cores with the least load are filled up first, until all that are filled stand at one level.
    """
    loads = [size * cost for size, cost in zip(sizes, costs, strict=True)]
    order = sorted(range(len(sizes)), key=loads.__getitem__)
    # the level at which the lowest cores together take exactly `count`
    level, speed, filled = 0.0, 0.0, 0.0
    for filling, core in enumerate(order, 1):
        speed += 1 / costs[core]
        filled += loads[core] / costs[core]
        level = (count + filled) / speed
        if filling == len(order) or level <= loads[order[filling]]:
            break
    wanted = [max(0.0, (level - load) / cost) for load, cost in zip(loads, costs, strict=True)]
    return _whole(wanted, count)


def _whole(wanted: Sequence[float], count: int) -> list[int]:
    """The shares as whole numbers that add up."""
    whole = [int(share) for share in wanted]
    rest = sorted(range(len(whole)), key=lambda core: (whole[core] - wanted[core], core))
    left_over = count - sum(whole)
    for extra in range(left_over):
        whole[rest[extra % len(rest)]] += 1
    return whole


class Cost:
    """What a stored tuple costs one core, as measured: seconds for each new tuple that meets it.

    The least of the last few measurements: a core is not slow because something else used its CPU for a while.
    """

    def __init__(self) -> None:
        self._measured: deque[float] = deque(maxlen=_SAMPLES)

    @property
    def value(self) -> float | None:
        """Seconds; None as long as there are too few measurements to tell."""
        return min(self._measured) if len(self._measured) == _SAMPLES else None

    def measure(self, seconds: float, meetings: int) -> None:
        """Take in a measurement: so many meetings of two tuples took so many seconds."""
        if meetings >= _WORTH_MEASURING:
            self._measured.append(seconds / meetings)


def relative_costs(costs: Sequence[Cost]) -> list[float]:
    """The costs as multiples of the median: 1 for every core that is not slow.

    The small differences between like cores are noise, and following them would only unbalance the windows.
    """
    known = sorted(cost.value for cost in costs if cost.value)
    if not known:
        return [1.0] * len(costs)
    median = known[(len(known) - 1) // 2]
    multiples = [(cost.value or median) / median for cost in costs]
    return [multiple if multiple >= _SLOW else 1.0 for multiple in multiples]
