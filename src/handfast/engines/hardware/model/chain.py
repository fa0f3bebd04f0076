"""The join cores in the fast model: what matters of a core are the cycles in which it has a match to give.

All cores begin a step together and go through the same positions: one for each state, one for each group of slots that
is compared at a time. A core goes on by one position in every cycle in which it is not suspended, except where it has
matches: there it stays until they are taken. So the model counts the cycles that are not suspended, the chain's
*clock*, and knows of each core on which tick of it the next match comes. The positions between are not visited.

Slots are numbered as they are offered, and those of discarded steps never enter. A segment holds slots that have
entered one after the other, so the matches of a scan are the partners of the new tuple from the first of these to the last.
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
def begin_scan(
    core: int,
    scan: int,
    slot: int,
    low: int,
    size: int,
    others: int,
    enters: bool,
    partners: Ints,
    following: Ints,
    ends: Ints,
    entered: Ints,
    orders: Ints,
    first: Ints,
    behind: Ints,
    at: Ints,
    left: Ints,
    edge: Ints,
    ram: bool,
    discards: bool,
) -> None:
    """Find the partners of a new slot in the segment of so many slots, the first of which was the `low`-th to enter.

    From core to core a slot meets later ones, so those that it has passed are not looked at again; only when it enters
    the chain those before all segments are passed over. `others` is where the slots of the other stream begin.
    """
    begin, end = following[slot], ends[slot]
    if begin == end or low + size <= 0:
        return
    lowest, highest = low, low + size  # the first slot, and the one behind the last
    if discards:
        lowest = entered[others + low] if low > 0 else 0
        highest = entered[others + low + size - 1] + 1
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
    following[slot] = stop
    count = stop - begin
    if discards:
        for place in range(begin, stop):
            count -= int(orders[others + partners[place]] == NOBODY)
    left[core, scan] = count
    if count == 0:
        return
    first[core, scan] = begin
    behind[core, scan] = stop
    if ram:  # slots take the places of the oldest in turn, and the scan begins with place 0
        wraps = low + (-low) % size
        edge[core, scan] = wraps
        place = begin
        while place < stop and (orders[others + partners[place]] if discards else partners[place]) < wraps:
            place += 1
        at[core, scan] = place if place < stop else begin
    else:  # newest first
        edge[core, scan] = low + size - 1
        at[core, scan] = stop - 1


@kernel
def matching_position(
    core: int,
    scan: int,
    offsets: Ints,
    size: int,
    others: int,
    partners: Ints,
    orders: Ints,
    first: Ints,
    behind: Ints,
    at: Ints,
    edge: Ints,
    ram: bool,
    comparisons: int,
    discards: bool,
) -> int:
    """The position of the next match of a scan, which is at `at` or, if that was discarded, behind it."""
    place = at[core, scan]
    order = partners[place]
    if discards:
        order = orders[others + order]
        while order == NOBODY:
            place += 1 if ram else -1
            if place == behind[core, scan]:
                place = first[core, scan]
            order = orders[others + partners[place]]
        at[core, scan] = place
    distance = order - edge[core, scan]
    number = distance if ram and distance >= 0 else distance + size if ram else -distance
    return offsets[scan] + (number if comparisons == 1 else number // comparisons)


@kernel
def begin_step(chain: Chain, r_shifts: bool, s_shifts: bool, r_count: int, s_count: int, tick: int) -> tuple[int, int]:
    """Begin a step on this tick of the clock.

    Args:
        chain: The chain.
        r_shifts, s_shifts: Which streams bring a slot.
        r_count, s_count: How many slots of each have entered before; the new ones are written down as entered.
        tick: The clock.

    Returns:
        How many cores have a match to give, and the tick on which the cores without one have finished.
    """
    partners, following, ends, ram = chain.partners, chain.following, chain.ends, chain.ram
    first, behind, at, left, edge = chain.first, chain.behind, chain.at, chain.left, chain.edge
    entering, offsets, ahead = chain.entering, chain.offsets, chain.ahead
    entered, orders, r_slots, discards = chain.entered, chain.orders, chain.r_slots, chain.discards
    calendar, next_core, nested_loop = chain.calendar, chain.next_core, chain.nested_loop
    r_size, s_size, comparisons, units = chain.r_size, chain.s_size, chain.comparisons, chain.cores
    cores = 1 if nested_loop else units
    r_groups = -(-r_size // comparisons) * int(s_shifts)  # those that are scanned
    s_groups = -(-s_size // comparisons) * int(r_shifts)
    if nested_loop:
        offsets[0] = offsets[1] = NESTED_SCANS_AT
        length = NESTED_SCANS_AT  # and more: as many positions as the unit has groups
    elif chain.eager:
        offsets[0] = offsets[1] = EAGER_SCANS_AT
        length = EAGER_SCANS_AT + max(r_groups, s_groups, 1)
    else:
        offsets[0], offsets[1] = R_SCANS_AT, R_SCANS_AT + s_groups + 1
        length = offsets[1] + r_groups
    busy, finish = 0, tick + length
    left[:] = 0
    for core in range(cores):
        other = cores - 1 - core  # how many cores S has passed
        order = r_count - core * r_size
        if r_shifts and order >= 0:
            slot = entered[order]
            entering[core, 0] = slot
            begin_scan(
                core, 0, slot, s_count - (other + 1) * s_size, s_size, r_slots, core == 0, partners, following, ends,
                entered, orders, first, behind, at, left, edge, ram, discards,
            )  # fmt: skip
        order = s_count - other * s_size
        if s_shifts and order >= 0:
            slot = entered[r_slots + order]
            unit = 1 if nested_loop else core
            entering[unit, 1] = slot
            begin_scan(
                unit, 1, r_slots + slot, r_count + int(r_shifts) - (core + 1) * r_size, r_size, 0, other == 0, partners,
                following, ends, entered, orders, first, behind, at, left, edge, ram, discards,
            )  # fmt: skip
    for unit in range(units):
        chain.length[unit] = length
        if nested_loop:
            chain.length[unit] += r_groups if unit else s_groups
        if left[unit, 0] + left[unit, 1] == 0:
            finish = max(finish, tick + chain.length[unit])
            continue
        busy += 1
        for scan in range(2):
            size = r_size if scan else s_size
            ahead[unit, scan] = (
                matching_position(
                    unit,
                    scan,
                    offsets,
                    size,
                    0 if scan else r_slots,
                    partners,
                    orders,
                    first,
                    behind,
                    at,
                    edge,
                    ram,
                    comparisons,
                    discards,
                )  # fmt: skip
                if left[unit, scan]
                else NEVER
            )
        chain.scan[unit] = int(ahead[unit, 1] < ahead[unit, 0])
        place = (tick + ahead[unit, chain.scan[unit]]) & (len(calendar) - 1)
        next_core[unit] = calendar[place]
        calendar[place] = unit
    return busy, finish


@kernel
def gather_offers(
    goes: bool,
    tick: int,
    waiting_count: int,
    waiting: Ints,
    offering: Ints,
    calendar: Ints,
    next_core: Ints,
) -> int:
    """Write down which cores offer a match in this cycle, and return how many do."""
    count = waiting_count
    for i in range(waiting_count):
        offering[i] = waiting[i]
    if goes:
        place = tick & (len(calendar) - 1)
        core = calendar[place]
        calendar[place] = NOBODY
        while core != NOBODY:
            offering[count] = core
            count += 1
            core = next_core[core]
    return count


@kernel
def match_of(core: int, scan: Ints, entering: Ints, partners: Ints, at: Ints) -> int:
    """The match that a core offers as a word: the slot of R in the upper half, that of S in the lower."""
    own = scan[core]
    partner = partners[at[core, own]]
    new = entering[core, own]
    word: int = new << 32 | partner if own == 0 else partner << 32 | new
    return word


@kernel
def go_on(
    core: int,
    tick: int,
    r_size: int,
    s_size: int,
    r_slots: int,
    partners: Ints,
    orders: Ints,
    first: Ints,
    behind: Ints,
    at: Ints,
    left: Ints,
    edge: Ints,
    offsets: Ints,
    ahead: Ints,
    scan: Ints,
    length: Ints,
    calendar: Ints,
    next_core: Ints,
    ram: bool,
    comparisons: int,
    discards: bool,
) -> int:
    """Let a core whose match was taken go on, from this tick.

    Returns:
        The tick on which it has finished, if that was its last match, else -1.
    """
    own = scan[core]
    passed = ahead[core, own]
    left[core, own] -= 1
    if left[core, own]:
        if ram:
            at[core, own] += 1
            if at[core, own] == behind[core, own]:
                at[core, own] = first[core, own]
        else:
            at[core, own] -= 1
        size = r_size if own else s_size
        ahead[core, own] = matching_position(
            core, own, offsets, size, 0 if own else r_slots, partners, orders, first, behind, at, edge, ram, comparisons,
            discards,
        )  # fmt: skip
    else:
        ahead[core, own] = NEVER
        if left[core, 1 - own] == 0:
            return tick + length[core] - passed - 1
    own = scan[core] = int(ahead[core, 1] < ahead[core, 0])
    place = (tick + max(ahead[core, own] - passed - 1, 0)) & (len(calendar) - 1)
    next_core[core] = calendar[place]
    calendar[place] = core
    return -1
