"""A stage of a ring in the fast model: it is visited in the cycles in which something happens to it, and in no others.

A scan compares a group of slots in every cycle until it comes to one with a match, or to the last one. So a stage that
scans is visited then, and one that has nothing to do, or nowhere to go, when a queue behind or before it has changed.
"""

from __future__ import annotations

from typing import NamedTuple

from handfast.engines.hardware.model.bits import Ints, kernel
from handfast.engines.hardware.model.fifos import Fifos
from handfast.engines.hardware.model.pipelined import Stages, offer_to_stages
from handfast.engines.hardware.model.ring_lists import Lists

NOTHING = -1
NEVER = 1 << 62
IDLE, START, SCAN, END = 0, 1, 2, 3  # the states of a stage
VALID, LAST = 1, 2  # the bits of an item


class Ring(NamedTuple):
    """Stages and their queues. A queue of a stage and a hop holds items of one stream, in the order of their tuples."""

    # queues
    level: Ints  # by stage and hop: items that wait, the one that is worked on among them
    highest: Ints  # likewise: the most there ever were
    head: Ints  # likewise: the slot of the oldest
    depth: Ints  # by hop: slots
    tuples: Ints  # by stage, hop and slot: the tuple, by the order in which it entered
    kinds: Ints  # likewise: VALID and LAST
    lists: Ints  # likewise: what it matches at this stage
    members: Ints  # likewise, and by hop: the places of what it has met
    # what a stage is at
    state: Ints  # by stage
    hop: Ints  # by stage: of the item that is worked on
    wake: Ints  # by stage: the next cycle in which something happens
    group: Ints  # by stage: which group of its range is compared then
    sent: Ints  # by stage: how many matches of the group have left
    # the oldest item of each queue
    begun: Ints  # by stage and hop: 1: its scan was left before its end,
    blocked: Ints  # 1: it waits for room,
    passed: Ints  # 1: an item of the same tuple has found a match;
    kept_group: Ints  # where its scan was left
    kept_sent: Ints
    next: Ints  # by stage and hop: the entry that matches next, and all before it that are in the range
    # what happens at the end of a cycle
    pushes: Ints  # by stage: the hop of the queue that takes an item in; -1: none
    pops: Ints  # by stage: the hop of the queue whose oldest item goes; -1: none
    # new tuples
    origins: Ints  # by tuple: its stream
    stops: Ints  # by tuple and stream: how many tuples of the stream came before it
    held: Ints  # by tuple and stream: how many of these its window holds
    done: Ints  # by tuple: the cycle from which on it is known to have ended
    # numbers of a run
    compared: Ints  # by stage: groups that were compared
    scans: Ints  # by stage: scans that have begun
    waited: Ints  # by stage: cycles in which what it had found had nowhere to go, and nothing else was to do
    since: Ints  # by stage: the cycle since which it waits; -1: it does not
    dropped: Ints  # by stage
    comparisons: int
    round_robin: bool  # how the next hop is chosen
    drops: bool


@kernel
def _free(ring: Ring, stage: int, hop: int) -> bool:
    """Whether the oldest item of a queue does not wait for room."""
    hops = ring.level.shape[1]
    following = stage + 1 if stage + 1 < ring.level.shape[0] else 0
    free: bool = (
        ring.blocked[stage, hop] == 0 or hop == hops - 1 or ring.level[following, hop + 1] < ring.depth[hop + 1]
    )
    return free


@kernel
def _choose(ring: Ring, stage: int, popped: bool, leaves: bool) -> bool:
    """Choose the item that is worked on from the next cycle on; say whether there is one."""
    hops = ring.level.shape[1]
    own = ring.hop[stage]
    for turn in range(hops):
        hop = hops - 1 - turn
        if ring.round_robin:
            hop = own + 1 + turn
            hop = hop if hop < hops else hop - hops
        waiting = ring.level[stage, hop]
        if hop == own:
            if leaves:
                continue
            waiting -= int(popped)
        if waiting > 0 and _free(ring, stage, hop):
            if leaves:
                ring.begun[stage, own] = ring.blocked[stage, own] = 1
                ring.kept_group[stage, own] = ring.group[stage]
                ring.kept_sent[stage, own] = ring.sent[stage]
            ring.blocked[stage, hop] = 0
            ring.hop[stage] = hop
            ring.state[stage] = START
            return True
    return False


@kernel
def _goes(ring: Ring, stage: int, cycle: int) -> None:
    """The item is done with: it goes, and another one is chosen."""
    hop = ring.hop[stage]
    ring.pops[stage] = hop
    ring.begun[stage, hop] = 0
    if _choose(ring, stage, True, False):
        ring.wake[stage] = cycle + 1
    else:
        ring.state[stage] = IDLE
        ring.wake[stage] = NEVER


@kernel
def _stays(ring: Ring, stage: int, cycle: int) -> None:
    """There is no room: the scan is left for another one, or waits."""
    if _choose(ring, stage, False, True):
        ring.wake[stage] = cycle + 1
        _waits_no_more(ring, stage, cycle)
    else:
        ring.wake[stage] = NEVER
        if ring.since[stage] < 0:
            ring.since[stage] = cycle


@kernel
def _waits_no_more(ring: Ring, stage: int, cycle: int) -> None:
    """What was found has a place to go to."""
    if ring.since[stage] >= 0:
        ring.waited[stage] += cycle - ring.since[stage]
        ring.since[stage] = -1


@kernel
def _hand_on(ring: Ring, stage: int, kind: int, entry: int, lists: Lists) -> None:
    """Put an intermediate, or a marker, into the queue of the next stage; it is there from the next cycle on."""
    hop = ring.hop[stage]
    following = stage + 1 if stage + 1 < ring.level.shape[0] else 0
    depth = ring.depth[hop + 1]
    slot = ring.head[following, hop + 1] + ring.level[following, hop + 1]
    slot = slot if slot < depth else slot - depth
    head = ring.head[stage, hop]
    ring.tuples[following, hop + 1, slot] = ring.tuples[stage, hop, head]
    ring.kinds[following, hop + 1, slot] = kind
    if kind & VALID:
        ring.lists[following, hop + 1, slot] = lists.further[entry]
        for met in range(hop):
            ring.members[following, hop + 1, slot, met] = ring.members[stage, hop, head, met]
        ring.members[following, hop + 1, slot, hop] = lists.places[entry]
    ring.pushes[following] = hop + 1


@kernel
def _matches(ring: Ring, stage: int, entry: int, number: int, lists: Lists) -> bool:
    """Whether an entry of the list is a match: at the last hop, it may have to agree with the tuple itself."""
    last_hop = ring.hop[stage] == ring.level.shape[1] - 1
    return not last_hop or len(lists.closing) == 0 or lists.closing[entry] == lists.opening[number]


@kernel
def _match_of(ring: Ring, stage: int, number: int, sent: int, lists: Lists) -> int:
    """The entry of the match that leaves after `sent` others of the group; -1 if there is none.

    Those of a group leave by the number of their bank, which is that of their place modulo the banks.
    """
    hop, banks = ring.hop[stage], ring.comparisons
    stop = ring.stops[number, stage]
    top = stop - ring.group[stage] * banks  # the place behind the group
    low = max(top - banks, stop - ring.held[number, stage])
    bank_0 = top - top % banks  # places from here on are in the banks from 0 on
    begin = lists.starts[ring.lists[stage, hop, ring.head[stage, hop]] + stage * lists.stride]
    last = ring.next[stage, hop]
    first = last + 1
    while first > begin and lists.places[first - 1] >= low:
        first -= 1
    for before in range(2):
        for entry in range(first, last + 1):
            if (lists.places[entry] < bank_0) == (before == 1) and _matches(ring, stage, entry, number, lists):
                if sent == 0:
                    return entry
                sent -= 1
    return NOTHING


@kernel
def _scan_on(ring: Ring, stage: int, group: int, cycle: int, lists: Lists) -> None:
    """Go on with a group that is compared in `cycle` or a later one: the first with a match, else the last."""
    hop = ring.hop[stage]
    head = ring.head[stage, hop]
    number = ring.tuples[stage, hop, head]
    stop, held = ring.stops[number, stage], ring.held[number, stage]
    begin = lists.starts[ring.lists[stage, hop, head] + stage * lists.stride]
    to = (held - 1) // ring.comparisons
    entry = ring.next[stage, hop]
    while entry >= begin and lists.places[entry] >= stop - held:
        if _matches(ring, stage, entry, number, lists):
            to = (stop - 1 - lists.places[entry]) // ring.comparisons
            break
        entry -= 1
    ring.next[stage, hop] = entry
    ring.group[stage] = to
    ring.wake[stage] = cycle + to - group


@kernel
def _begin(ring: Ring, stage: int, lists: Lists) -> None:
    """Begin the scan of the item that is worked on: with the newest tuple that its list and its range have."""
    hop = ring.hop[stage]
    head = ring.head[stage, hop]
    own = ring.lists[stage, hop, head] + stage * lists.stride
    stop = ring.stops[ring.tuples[stage, hop, head], stage]
    low, high = lists.starts[own], lists.ends[own]
    while low < high:
        middle = (low + high) >> 1
        if lists.places[middle] < stop:
            low = middle + 1
        else:
            high = middle
    ring.next[stage, hop] = low - 1
    ring.scans[stage] += 1


@kernel
def _ends(ring: Ring, stage: int, cycle: int) -> None:
    """There is nothing more to scan for the item."""
    hop = ring.hop[stage]
    if ring.kinds[stage, hop, ring.head[stage, hop]] & LAST:
        ring.state[stage] = END
        ring.wake[stage] = cycle + 1
    else:
        _goes(ring, stage, cycle)


@kernel
def visit(ring: Ring, stage: int, cycle: int, lists: Lists, now: int, network: Stages, fifos: Fifos, word: int) -> int:
    """A cycle of a stage in which something may happen.

    Args:
        ring: The stages.
        stage: The one.
        cycle: The cycle.
        lists: What matches.
        now: The phase of the network.
        network, fifos: The network.
        word: The word of a result, if one leaves.

    Returns:
        The entry of the result that the network took, which belongs to the oldest item of the last hop; -1 if none.
    """
    hops = ring.level.shape[1]
    state, hop = ring.state[stage], ring.hop[stage]
    if state == IDLE:
        ring.wake[stage] = cycle + 1 if _choose(ring, stage, False, False) else NEVER
        return NOTHING
    head = ring.head[stage, hop]
    number, kind = ring.tuples[stage, hop, head], ring.kinds[stage, hop, head]
    held = ring.held[number, stage]
    if state == START:
        ring.group[stage] = ring.kept_group[stage, hop] if ring.begun[stage, hop] else 0
        ring.sent[stage] = ring.kept_sent[stage, hop] if ring.begun[stage, hop] else 0
        if kind & VALID and not ring.begun[stage, hop]:
            _begin(ring, stage, lists)
        if kind & VALID and ring.group[stage] * ring.comparisons < held:
            ring.state[stage] = SCAN
            _scan_on(ring, stage, ring.group[stage], cycle + 1, lists)
        else:
            _ends(ring, stage, cycle)
        return NOTHING
    following = stage + 1 if stage + 1 < ring.level.shape[0] else 0
    last_hop = hop == hops - 1
    room = last_hop or ring.level[following, hop + 1] < ring.depth[hop + 1]
    if state == END:
        if last_hop or ring.passed[stage, hop] == 0:
            ring.done[number] = cycle + 1
        elif room:
            _hand_on(ring, stage, LAST, -1, lists)
        else:
            ring.group[stage] = held  # nothing is left to scan when it is taken up again
            _stays(ring, stage, cycle)
            return NOTHING
        _waits_no_more(ring, stage, cycle)
        ring.passed[stage, hop] = 0
        _goes(ring, stage, cycle)
        return NOTHING

    result = NOTHING
    entry = _match_of(ring, stage, number, ring.sent[stage], lists)
    if entry >= 0:
        if not room and not ring.drops:
            _stays(ring, stage, cycle)
            return NOTHING
        if last_hop:
            if not offer_to_stages(now, stage, word, network, fifos):
                ring.wake[stage] = cycle + 1
                if ring.since[stage] < 0:
                    ring.since[stage] = cycle
                return NOTHING
            result = entry
        elif room:
            _hand_on(ring, stage, VALID, entry, lists)
        else:
            ring.dropped[stage] += 1
        _waits_no_more(ring, stage, cycle)
        ring.passed[stage, hop] = 1
        ring.sent[stage] += 1
        if _match_of(ring, stage, number, ring.sent[stage], lists) >= 0:
            ring.wake[stage] = cycle + 1
            return result
        # the group is done with: what matches next is of a later one
        low = ring.stops[number, stage] - (ring.group[stage] + 1) * ring.comparisons
        begin = lists.starts[ring.lists[stage, hop, head] + stage * lists.stride]
        while ring.next[stage, hop] >= begin and lists.places[ring.next[stage, hop]] >= low:
            ring.next[stage, hop] -= 1
    ring.sent[stage] = 0
    group = ring.group[stage] + 1
    if group * ring.comparisons < held:
        _scan_on(ring, stage, group, cycle + 1, lists)
    else:
        ring.compared[stage] += group
        ring.group[stage] = group
        _ends(ring, stage, cycle)
    return result
