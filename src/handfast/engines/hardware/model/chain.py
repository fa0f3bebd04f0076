"""The join cores in the fast model: what matters of a core are the cycles in which it has a match to give.

All cores begin a step together and go through the same positions: one for each state, one for each group of slots that
is compared at a time. A core goes on by one position in every cycle in which it is not suspended, except where it has
matches: there it stays until they are taken. So the model counts the cycles that are not suspended, the chain's
*clock*, and knows of each core on which tick of it the next match comes. The positions between are not visited.

Slots are numbered as they are offered, and those of discarded steps never enter. A segment holds slots that have
entered one after the other, so the matches of a scan are the partners of the new tuple from the first of these to
the last.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from handfast.engines.hardware.model.bits import Ints, kernel
from handfast.engines.hardware.model.pairs import Partners
from handfast.engines.hardware.options import EAGER, NESTED_LOOP, THROTTLE
from handfast.engines.hardware.shape import CircuitShape
from handfast.flow.topology import R, S

NOBODY = -1
NEVER = 1 << 40  # a position behind all others
R_SCANS_AT = 4  # the position of the first comparison, behind STATE1 to STATE4
NESTED_SCANS_AT = 2  # that of the nested-loop join, behind WAIT and INSERT_R
EAGER_SCANS_AT = 1  # that of an eager core, behind WAIT


class Chain(NamedTuple):
    """Cores, or the two units of the nested-loop join; a new tuple of R makes scan 0, one of S makes scan 1."""

    partners: Ints  # by slot of R, then by slot of S: the slots of the other stream that match it, sorted
    following: Ints  # by slot: the place among the partners from which on it has not met them
    ends: Ints  # by slot: where its partners end
    entered: Ints  # the slots of R that have entered, in this order; then those of S
    orders: Ints  # by slot: the how-manieth of its stream it was to enter; NOBODY if it was discarded
    entering: Ints  # by core and scan: the new slot
    first: Ints  # by core and scan: where the partners begin that the segment holds,
    behind: Ints  # and where they end;
    at: Ints  # the one of them that matches next
    left: Ints  # and how many are left
    edge: Ints  # by core and scan: the order of the slot that is compared first
    offsets: Ints  # by scan: the position in which it begins
    ahead: Ints  # by core and scan: the position of its next match; NEVER if there is none
    scan: Ints  # by core: the scan that the next match is of
    length: Ints  # by core: how many positions the step has
    waiting: Ints  # the cores whose match was offered and not taken
    offering: Ints  # the cores that offer a match in this cycle
    refused: Ints  # by core: 1: what it offers is not taken
    calendar: Ints  # by tick, round and round: the first core that has a match then
    next_core: Ints  # by core: the next one on the same tick
    cores: int
    r_size: int
    s_size: int
    r_slots: int  # of the partners, those before are of R
    nested_loop: bool
    eager: bool  # both scans at the same time
    ram: bool
    comparisons: int  # slots that are compared at a time
    discards: bool  # whether steps may be discarded


def new_chain(shape: CircuitShape, partners: Partners) -> Chain:
    """The chain of a circuit, with empty segments."""
    n = shape.inputs
    longest = shape.cycles_per_step + 2
    by_scan = np.zeros((n, 2), np.int64)
    by_core = np.zeros(n, np.int64)
    return Chain(
        partners=partners.slots,
        following=partners.starts.copy(),
        ends=partners.ends,
        entered=np.zeros(len(partners.starts), np.int64),
        orders=np.full(len(partners.starts), NOBODY, np.int64),
        entering=by_scan.copy(),
        first=by_scan.copy(),
        behind=by_scan.copy(),
        at=by_scan.copy(),
        left=by_scan.copy(),
        edge=by_scan.copy(),
        offsets=np.zeros(2, np.int64),
        ahead=by_scan.copy(),
        scan=by_core.copy(),
        length=by_core.copy(),
        waiting=by_core.copy(),
        offering=by_core.copy(),
        refused=by_core.copy(),
        calendar=np.full(1 << longest.bit_length(), NOBODY, np.int64),
        next_core=by_core.copy(),
        cores=n,
        r_size=shape.sizes[R],
        s_size=shape.sizes[S],
        r_slots=partners.r_slots,
        nested_loop=shape.algorithm == NESTED_LOOP,
        eager=shape.scan == EAGER,
        ram=shape.ram,
        comparisons=shape.comparisons,
        discards=shape.admission == THROTTLE,
    )


@kernel
def _begin_scan(chain: Chain, core: int, scan: int, order: int, low: int, enters: bool) -> None:
    """Find the partners of a new slot in the segment that it scans.

    From core to core a slot meets later ones, so those that it has passed are not looked at again; only when it enters
    the chain those before all segments are passed over.

    Args:
        chain: The chain.
        core: The core.
        scan: 0 for a slot of R, 1 for one of S.
        order: The how-manieth of its stream it was to enter.
        low: The how-manieth of the other stream the oldest slot of the segment was.
        enters: Whether it enters the chain.
    """
    partners, orders = chain.partners, chain.orders
    own, others, size = (chain.r_slots, 0, chain.r_size) if scan else (0, chain.r_slots, chain.s_size)
    slot = chain.entered[own + order]
    begin, end = chain.following[own + slot], chain.ends[own + slot]
    if begin == end or low + size <= 0:  # no partners, or none has come so far
        return
    lowest, highest = low, low + size  # the first slot, and the one behind the last
    if chain.discards:
        lowest = chain.entered[others + low] if low > 0 else 0
        highest = chain.entered[others + low + size - 1] + 1
    if enters:
        top = end
        while begin < top:
            middle = (begin + top) >> 1
            if partners[middle] < lowest:
                begin = middle + 1
            else:
                top = middle
    while begin < end and partners[begin] < lowest:
        begin += 1
    stop = begin
    while stop < end and partners[stop] < highest:
        stop += 1
    chain.following[own + slot] = stop
    count = stop - begin
    if chain.discards:
        for place in range(begin, stop):
            count -= int(orders[others + partners[place]] == NOBODY)
    if count == 0:
        return
    chain.left[core, scan] = count
    chain.entering[core, scan] = slot
    chain.first[core, scan] = begin
    chain.behind[core, scan] = stop
    if chain.ram:  # slots take the places of the oldest in turn, and the scan begins with place 0
        wraps = low + (-low) % size
        chain.edge[core, scan] = wraps
        place = begin
        while place < stop and (orders[others + partners[place]] if chain.discards else partners[place]) < wraps:
            place += 1
        chain.at[core, scan] = place if place < stop else begin
    else:  # newest first
        chain.edge[core, scan] = low + size - 1
        chain.at[core, scan] = stop - 1


@kernel
def _find_match(chain: Chain, core: int, scan: int) -> None:
    """Find the position of the next match of a scan, which is at `at` or, if that was discarded, behind it."""
    if chain.left[core, scan] == 0:
        chain.ahead[core, scan] = NEVER
        return
    others, size = (0, chain.r_size) if scan else (chain.r_slots, chain.s_size)
    place = chain.at[core, scan]
    order = chain.partners[place]
    if chain.discards:
        order = chain.orders[others + order]
        while order == NOBODY:
            place += 1 if chain.ram else -1
            if place == chain.behind[core, scan]:
                place = chain.first[core, scan]
            order = chain.orders[others + chain.partners[place]]
        chain.at[core, scan] = place
    distance = order - chain.edge[core, scan]
    number = distance if chain.ram and distance >= 0 else distance + size if chain.ram else -distance
    if chain.comparisons > 1:
        number //= chain.comparisons
    chain.ahead[core, scan] = chain.offsets[scan] + number


@kernel
def _note(chain: Chain, core: int, tick: int) -> None:
    """Note in the calendar that a core has a match on this tick."""
    place = tick & (len(chain.calendar) - 1)
    chain.next_core[core] = chain.calendar[place]
    chain.calendar[place] = core


@kernel
def begin_step(chain: Chain, r_shifts: bool, s_shifts: bool, r_count: int, s_count: int, tick: int) -> tuple[int, int]:
    """Begin a step on this tick of the clock.

    Args:
        chain: The chain.
        r_shifts, s_shifts: Which streams bring a slot; it is written down as entered.
        r_count, s_count: How many slots of each have entered before.
        tick: The clock.

    Returns:
        How many cores have a match to give, and the tick on which the cores without one have finished.
    """
    nested_loop, offsets, r_size, s_size = chain.nested_loop, chain.offsets, chain.r_size, chain.s_size
    cores = 1 if nested_loop else chain.cores
    r_groups = -(-r_size // chain.comparisons) * int(s_shifts)  # those that are scanned
    s_groups = -(-s_size // chain.comparisons) * int(r_shifts)
    if nested_loop:
        offsets[0] = offsets[1] = NESTED_SCANS_AT
        length = NESTED_SCANS_AT  # and more: as many positions as the unit has groups
    elif chain.eager:
        offsets[0] = offsets[1] = EAGER_SCANS_AT
        length = EAGER_SCANS_AT + max(r_groups, s_groups, 1)
    else:
        offsets[0], offsets[1] = R_SCANS_AT, R_SCANS_AT + s_groups + 1
        length = offsets[1] + r_groups
    chain.left[:] = 0
    for core in range(cores):
        other = cores - 1 - core  # how many cores S has passed
        if r_shifts and r_count >= core * r_size:
            _begin_scan(chain, core, 0, r_count - core * r_size, s_count - (other + 1) * s_size, core == 0)
        if s_shifts and s_count >= other * s_size:
            low = r_count + int(r_shifts) - (core + 1) * r_size
            _begin_scan(chain, 1 if nested_loop else core, 1, s_count - other * s_size, low, other == 0)
    busy, finish = 0, tick + length
    for core in range(chain.cores):
        chain.length[core] = length
        if nested_loop:
            chain.length[core] += r_groups if core else s_groups
        if chain.left[core, 0] + chain.left[core, 1] == 0:
            finish = max(finish, tick + chain.length[core])
            continue
        busy += 1
        _find_match(chain, core, 0)
        _find_match(chain, core, 1)
        chain.scan[core] = int(chain.ahead[core, 1] < chain.ahead[core, 0])
        _note(chain, core, tick + chain.ahead[core, chain.scan[core]])
    return busy, finish


@kernel
def gather_offers(chain: Chain, goes: bool, tick: int, waiting: int) -> int:
    """Write down which cores offer a match in this cycle, and return how many do.

    Those that wait go on offering; on this tick others begin to, unless they are suspended.
    """
    count = waiting
    for i in range(waiting):
        chain.offering[i] = chain.waiting[i]
    if goes:
        place = tick & (len(chain.calendar) - 1)
        core = chain.calendar[place]
        chain.calendar[place] = NOBODY
        while core != NOBODY:
            chain.offering[count] = core
            count += 1
            core = chain.next_core[core]
    return count


@kernel
def match_of(chain: Chain, core: int) -> int:
    """The match that a core offers as a word: the slot of R in the upper half, that of S in the lower."""
    scan = chain.scan[core]
    partner, new = chain.partners[chain.at[core, scan]], chain.entering[core, scan]
    word: int = partner << 32 | new if scan else new << 32 | partner
    return word


@kernel
def go_on(chain: Chain, core: int, tick: int) -> int:
    """Let a core whose match was taken go on, from this tick.

    Returns:
        The tick on which it has finished, if that was its last match, else -1.
    """
    scan, left, at, ahead = chain.scan[core], chain.left, chain.at, chain.ahead
    passed = ahead[core, scan]
    left[core, scan] -= 1
    if left[core, 0] + left[core, 1] == 0:
        finish: int = tick + chain.length[core] - passed - 1
        return finish
    if not chain.ram:
        at[core, scan] -= 1
    else:
        at[core, scan] += 1
        if at[core, scan] == chain.behind[core, scan]:
            at[core, scan] = chain.first[core, scan]
    _find_match(chain, core, scan)
    following = int(ahead[core, 1] < ahead[core, 0])  # of two at the same time, that of R
    chain.scan[core] = following
    _note(chain, core, tick + max(ahead[core, following] - passed - 1, 0))
    return -1
