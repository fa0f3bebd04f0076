"""Balance: which core takes the next tuples. The one place where this is decided [HSJ §4.3].

Where the tuples are does not change the result, so this is a matter of speed alone.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Protocol

_SLOW = 4.0  # a core counts as slow when a tuple costs it so many times what it costs the median one
_SAMPLES = 16
_WORTH_MEASURING = 1 << 20  # meetings; fewer cost much the same whether they are few or many


class Balance(Protocol):
    """How cores of different sizes, and of different speeds, share the tuples of a window."""

    def forwards(self, own: float, neighbour: float) -> bool:
        """Whether a core with a load of `own` forwards its oldest tuples to a neighbour with a load of its own."""
        ...

    def shares(self, sizes: Sequence[int], costs: Sequence[float], count: int) -> list[int]:
        """How many of so many new tuples each core stores; `costs` is what a stored tuple costs there."""
        ...


class LocalSizes:
    """By the sizes of the neighbours' windows, as water finds its level [HSJ Fig. 11]."""

    def forwards(self, own: float, neighbour: float) -> bool:
        return own > neighbour

    def shares(self, sizes: Sequence[int], costs: Sequence[float], count: int) -> list[int]:
        """Fill up the cores with the least load first, until all that is filled stands at one level."""
        loads = [size * cost for size, cost in zip(sizes, costs, strict=True)]
        order = sorted(range(len(sizes)), key=loads.__getitem__)
        # the level at which the lowest cores together take exactly `count`
        level, speed, filled = 0.0, 0.0, 0.0
        for place, core in enumerate(order):
            speed += 1 / costs[core]
            filled += loads[core] / costs[core]
            level = (count + filled) / speed
            if place + 1 == len(order) or level <= loads[order[place + 1]]:
                break
        wanted = [max(0.0, (level - load) / cost) for load, cost in zip(loads, costs, strict=True)]
        return _whole(wanted, count)


def _whole(wanted: Sequence[float], count: int) -> list[int]:
    """The shares as whole numbers that add up."""
    shares = [int(share) for share in wanted]
    rest = sorted(range(len(shares)), key=lambda core: (shares[core] - wanted[core], core))
    left = count - sum(shares)
    for turn in range(left):
        shares[rest[turn % len(rest)]] += 1
    return shares


class Cost:
    """What a stored tuple costs one core, as measured: seconds for each new tuple that meets it.

    The least of the last few measurements: whoever else used the CPU for a while does not make a core a slow one.
    """

    def __init__(self) -> None:
        self._measured: deque[float] = deque(maxlen=_SAMPLES)

    @property
    def value(self) -> float | None:
        """Seconds; None as long as there are too few measurements to tell."""
        return min(self._measured) if len(self._measured) == _SAMPLES else None

    def measure(self, seconds: float, meetings: int) -> None:
        """Take in how long so many meetings of two tuples took."""
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
