"""A model of the handshake chain, for more cores than a machine has, and for what a burst does to it.

Nothing is measured here. What a pair and a message cost was measured before, and comes in with `Machine`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from heapq import heapify, heappop, heapreplace

import numpy as np
from numpy.typing import NDArray

from handfast.errors import SpecError
from handfast.flow.topology import STREAMS, ChainTopology, R

_BLOCKS = 64  # of either stream, that come to a core in a simulation at least; `_keeps_up` says why these suffice
_MESSAGES = 4096  # of either stream, to all cores: a short chain is simulated for longer, as that costs no more
_NOISE = 1e-6  # of the time in which a block is served: a longer wait than this is no matter of rounding
_HALVINGS = 10  # of the rates that are left: the answer is good to two thousandths


@dataclass(frozen=True, slots=True)
class Machine:
    """What a core needs for its work, as measured on the machine that the model extrapolates.

    Attributes:
        pair_seconds: What trying one pair costs a core.
        message_seconds: What a block costs a core beside the scan: to take it in, to forward it, and to remove it, when
            that is acknowledged or it expires.
        block: Tuples in a block.
        hit_rate: Matches by pair.
        collect_seconds: What a match costs the collector, of which there is one for all cores.
    """

    pair_seconds: float
    message_seconds: float
    block: int
    hit_rate: float = 0.0
    collect_seconds: float = 0.0

    def __post_init__(self) -> None:
        if not 0 < self.pair_seconds < math.inf:
            raise SpecError(f"A pair must cost a positive number of seconds, not {self.pair_seconds!r}")
        if not 0 <= self.message_seconds < math.inf:
            raise SpecError(f"A message must cost zero seconds or more, not {self.message_seconds!r}")
        _at_least(1, self.block, "A block's number of tuples")
        if not 0 <= self.hit_rate <= 1 or not 0 <= self.collect_seconds < math.inf:
            raise SpecError(
                f"The matches by pair must be 0 to 1, and a match cost the collector 0 seconds or more, not "
                f"{self.hit_rate!r} and {self.collect_seconds!r}"
            )


# -- rates ---------------------------------------------------------------------------------------


def square_root_law(machine: Machine, cores: int, window_seconds: float) -> float:
    """The rate, in tuples a second and stream, that the scans alone allow: it grows with the root of the cores.

    At that rate 2 · rate · (rate · window / cores) pairs a second take a core all of its time [000 §5, Fig. 8].
    """
    _at_least(1, cores, "The number of cores")
    if not 0 < window_seconds < math.inf:
        raise SpecError(f"The window must last a positive number of seconds, not {window_seconds!r}")
    return math.sqrt(cores / (2 * window_seconds * machine.pair_seconds))


def sustained(machine: Machine, topology: ChainTopology, window_seconds: float) -> float:
    """The highest rate, in tuples a second and stream, at which the simulated chain keeps up [HSJ §5.4, Fig. 16].

    Both streams have that rate, and both windows are `window_seconds` long.
    """
    rate = _of_cores(machine, topology, window_seconds)
    collecting = 2 * window_seconds * machine.hit_rate * machine.collect_seconds
    # the collector is one thread, however many cores there are
    return min(rate, math.sqrt(1 / collecting)) if collecting else rate


def _of_cores(machine: Machine, topology: ChainTopology, window_seconds: float) -> float:
    """The highest rate at which the simulated cores keep up."""
    # Neither the scans nor the messages alone may take all the time. The bisection begins above that, so that it is
    # the simulation that finds the limit.
    limit = square_root_law(machine, topology.cores, window_seconds)
    if machine.message_seconds:
        limit = min(limit, machine.block / (2 * machine.message_seconds))
    low, high = 0.0, 1.1 * limit
    for _ in range(_HALVINGS):
        rate = (low + high) / 2
        if _keeps_up(machine, topology, window_seconds, rate):
            low = rate
        else:
            high = rate
    return low


def _keeps_up(machine: Machine, topology: ChainTopology, window_seconds: float, rate: float) -> bool:
    """Whether the queues before the cores do not grow: whether no block ever waits for more than one other.

    In every period one block of R and one of S come to a core. At a load of up to 1 both are served within it, so
    one waits for the other at most. At a load of 1 + x the wait grows by x periods with every period, and after 64 of
    them it has grown past that, wherever it began, if x is a hundredth: which is half a hundredth of the rate.

    So few suffice because the simulation begins in the middle of a long run, with filled windows: every core has its
    full load from the first moment on, and no block needs to be followed from one end to the other.
    """
    cores, period = topology.cores, machine.block / rate
    segment = rate * window_seconds / cores
    service = machine.message_seconds + machine.block * segment * machine.pair_seconds
    # A block stays at every core for the same share of its window, but at least until the next block comes.
    stay = max(window_seconds / cores, period)
    span = max(_BLOCKS, _MESSAGES // cores) * period
    events = _arrivals(topology, period, stay, span)
    heapify(events)
    following = [[topology.following(core, stream) for core in range(cores)] for stream in STREAMS]
    free = [0.0] * cores  # when a core has served all that has come to it
    while events:
        now, core, stream = events[0]
        start = max(now, free[core])
        if start - now > (1 + _NOISE) * service:
            return False
        end = free[core] = start + service
        then, receiver = max(now + stay, end), following[stream][core]
        if receiver is not None and then < span:
            heapreplace(events, (then, receiver, stream))
        else:
            heappop(events)
    return True


def _arrivals(topology: ChainTopology, period: float, stay: float, span: float) -> list[tuple[float, int, int]]:
    """The blocks that no core of the simulation has served before: when each comes, to which core, of which stream.

    These are all that enter the chain, and those that stood at another core when the simulation began.
    """
    # Counted in blocks, not in seconds: block b comes to the core behind so many others at b · period + passed · stay,
    # and rounding must not let one be counted twice, or not at all.
    first = [-math.floor(passed * stay / period) for passed in range(topology.cores)]
    most = math.ceil(span / period) + 1  # in the span; of long windows, most blocks stay at one core beyond it
    after = [most, *first]
    return [
        (now, core, stream)
        for stream in STREAMS
        for passed, core in enumerate(topology.path(stream))
        for block in range(first[passed], min(after[passed], first[passed] + most))
        if (now := max(0.0, block * period + passed * stay)) < span
    ]


# -- bursts --------------------------------------------------------------------------------------

Counts = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Bubble:
    """One stream's segments while a burst is in a time-based window, with two ways of forwarding [000 §3.6].

    Attributes:
        times: The time axis, in steps; the burst enters at 0.
        by_age: Tuples stored, by time and core, if a tuple stands where its age says: the bubble travels.
        by_size: The same, if the sizes of neighbours decide: the bubble spreads.
        entered: By time, how many tuples have come in.
        gone_by_age: By time, how many have been removed; `gone_by_size` likewise.
    """

    times: Counts
    by_age: Counts
    by_size: Counts
    entered: Counts
    gone_by_age: Counts
    gone_by_size: Counts


def bubble(topology: ChainTopology, window: int, burst: int, *, calm: int = 4, pace: int = 8) -> Bubble:
    """Follow a burst of R that enters all at once, from a quarter of a window before it until a quarter after it left.

    Args:
        topology: The chain; with its policy the sizes of neighbours decide.
        window: The length of the window, in steps.
        burst: Tuples that come in one step, beside those that always come.
        calm: Tuples that come in every step.
        pace: How many times faster than the calm stream comes a core can forward tuples.
    """
    _at_least(1, window, "The window's number of steps")
    _at_least(0, burst, "The burst's number of tuples")
    _at_least(1, calm, "The number of tuples in a calm step")
    _at_least(1, pace, "The pace")
    before, after = window + window // 4, window + window // 4  # one window fills it, and is not shown
    arriving = np.full(before + after + 1, calm, dtype=np.int64)
    arriving[before] += burst
    by_age = _by_age(topology, window, arriving)
    by_size, gone_by_size = _by_size(topology, window, arriving, rounds=calm * pace)
    entered = np.cumsum(arriving)
    shown = slice(window, None)
    return Bubble(
        times=np.arange(-before, after + 1)[shown],
        by_age=by_age[shown],
        by_size=by_size[shown],
        entered=entered[shown],
        gone_by_age=_gone(window, arriving)[shown],
        gone_by_size=gone_by_size[shown],
    )


def _gone(window: int, arriving: Counts) -> Counts:
    """How many tuples have left the window by every step."""
    return np.concatenate([np.zeros(window, dtype=np.int64), np.cumsum(arriving)[:-window]])


def _by_age(topology: ChainTopology, window: int, arriving: Counts) -> Counts:
    """The segments if a tuple of age a is at the core with the number ⌊a / window · cores⌋ on its path."""
    path = list(topology.path(R))
    sizes = np.zeros((len(arriving), topology.cores), dtype=np.int64)
    for age in range(window):
        sizes[age:, path[age * topology.cores // window]] += arriving[: len(arriving) - age]
    return sizes


def _by_size(topology: ChainTopology, window: int, arriving: Counts, *, rounds: int) -> tuple[Counts, Counts]:
    """The segments if a core forwards its oldest tuple whenever the policy says so, and how many are gone.

    In a step there are so many rounds, and in a round every core may forward one tuple. As in the chain, tuples expire
    at the last core only: one that has not come so far is removed when it arrives there.
    """
    first, last = topology.first(R), topology.last(R)
    links = [(core, to) for core in topology.path(R) if (to := topology.following(core, R)) is not None]
    sizes, history, removed = [0] * topology.cores, [], []
    gone = 0
    for entering, over in zip(arriving.tolist(), _gone(window, arriving).tolist(), strict=True):
        sizes[first] += entering
        for _ in range(rounds):
            leaving = min(over - gone, sizes[last])
            sizes[last] -= leaving
            gone += leaving
            # all cores look at once, then all forward
            forwarding = [(core, to) for core, to in links if topology.policy(sizes[core], sizes[to])]
            if not forwarding:
                break
            for core, to in forwarding:
                sizes[core] -= 1
                sizes[to] += 1
        history.append(list(sizes))
        removed.append(gone)
    return np.array(history, dtype=np.int64), np.array(removed, dtype=np.int64)


# -- checks --------------------------------------------------------------------------------------


def _at_least(least: int, value: int, thing: str) -> None:
    if value < least:
        raise SpecError(f"{thing} must be at least {least}, not {value!r}")
