"""A stage of the line of Stashed-MJ in the fast model: visited only in the cycles in which something happens to it.

A stage works on one item at a time. When a scan begins, it is found out what matches, in the order in which it leaves.
"""

from __future__ import annotations

from typing import NamedTuple

from handfast.engines.hardware.model.bits import Ints, kernel
from handfast.engines.hardware.model.fifos import Fifos
from handfast.engines.hardware.model.pipelined import Stages, offer_to_stages
from handfast.engines.hardware.model.ring_lists import Lists
from handfast.engines.hardware.model.ring_stage import LAST, NEVER, NOTHING, VALID

START, SCAN, END = 0, 1, 2  # the states of a stage
PLAIN, PROBING, OUTER, INNER = 0, 1, 2, 3  # what the first stage scans
A, B = 0, 1  # the streams whose pairs are kept

# The numbers of the stash, by their places in `Line.stash`.
SIZE = 0  # pairs that it has room for
KEPT = 1  # pairs that were kept so far
LIVE = 2  # pairs, from the newest one backwards, of which some may be live
MISSING = 3  # 1: pairs are missing
OVERWRITTEN = 4  # pairs that were overwritten and could still match
COMPUTED = 5  # tuples for which pairs were computed
KNOWN = 6  # where the windows of the two streams begin, as far as is known: two places
LAST_MISSING = 8  # the last tuple of each of the two streams that is in a missing pair: two places


class Line(NamedTuple):
    """Stages and their queues; the first has two windows and the stash."""

    # queues
    level: Ints  # by stage: items that wait, the one that is worked on among them
    highest: Ints
    head: Ints  # by stage: the slot of the oldest
    depth: Ints
    tuples: Ints  # by stage and slot: the tuple, by the order in which it entered
    kinds: Ints  # likewise: VALID and LAST
    lists: Ints  # likewise: its list at the next window
    members: Ints  # by stage, slot and stream: the places of what it has met
    # what a stage is at
    state: Ints  # by stage
    wake: Ints  # by stage: the next cycle in which something happens
    passed: Ints  # by stage: 1: something of the tuple has gone on
    group: Ints  # by stage: which group is compared then
    groups: Ints  # by stage: how many there are
    hit: Ints  # by stage: the match that leaves next,
    hits: Ints  # and how many there are
    hit_group: Ints  # by stage and match: its group; the stage behind the last is the first one's scan of window 1
    hit_entry: Ints  # likewise: its entry in the lists
    hit_first: Ints  # by match of a probe: the tuple of stream 0
    scanning: Ints  # of the first stage: what it scans
    # what happens at the end of a cycle
    pushed: Ints  # by stage: 1: an item has come
    popped: Ints  # by stage: 1: the oldest item goes
    # new tuples
    origins: Ints
    stops: Ints  # by tuple and stream: how many tuples of the stream came before it
    held: Ints  # by tuple and stream: how many of these its window holds
    done: Ints  # by tuple: the cycle from which on it is known to have ended
    # the stash
    stash: Ints  # its numbers
    pair_a: Ints  # by slot: the place of the tuple of stream 0,
    pair_b: Ints  # and that of stream 1
    # numbers of a run
    compared: Ints  # by stage: groups that were compared
    scans: Ints  # by stage
    waited: Ints  # by stage: cycles in which what it had found had nowhere to go
    since: Ints  # by stage: the cycle since which it waits
    comparisons: int


# -- what matches ----------------------------------------------------------------------------------------------------


@kernel
def _bounds(lists: Lists, number: int, stream: int, low: int, high: int) -> tuple[int, int]:
    """The entries of a list at a stream's window from one place up to another."""
    begin, end = lists.starts[number + stream * lists.stride], lists.ends[number + stream * lists.stride]
    for turn in range(2):
        place = high if turn else low
        first, last = begin, end
        while first < last:
            middle = (first + last) >> 1
            if lists.places[middle] < place:
                first = middle + 1
            else:
                last = middle
        if turn:
            end = first
        else:
            begin = first
    return begin, end


@kernel
def _seek(line: Line, row: int, stage: int, stream: int, number: int, lists: Lists) -> None:
    """Find what matches in a window, into row `row`, in the order in which it leaves: group by group, by banks."""
    head = line.head[stage]
    tuple_, banks = line.tuples[stage, head], line.comparisons
    stop, held = line.stops[tuple_, stream], line.held[tuple_, stream]
    begin, end = _bounds(lists, number, stream, stop - held, stop)
    count = 0
    while end > begin:
        group = (stop - 1 - lists.places[end - 1]) // banks
        low = stop - (group + 1) * banks
        first = end
        while first > begin and lists.places[first - 1] >= low:
            first -= 1
        bank_0 = low + banks - (low + banks) % banks  # places from here on are in the banks from 0 on
        for before in range(2):
            for entry in range(first, end):
                if (lists.places[entry] < bank_0) == (before == 1):
                    line.hit_group[row, count] = group
                    line.hit_entry[row, count] = entry
                    count += 1
        end = first
    line.scans[stage] += 1
    line.hit[row] = 0
    line.hits[row] = count
    line.group[row] = 0
    line.groups[row] = (held + banks - 1) // banks


@kernel
def _probe(line: Line, lists: Lists) -> int:
    """Find the pairs of the stash that match; return how far back the oldest live one is."""
    stash, banks = line.stash, line.comparisons
    head = line.head[0]
    tuple_, number = line.tuples[0, head], line.lists[0, head]
    low_a = line.stops[tuple_, A] - line.held[tuple_, A]
    low_b = line.stops[tuple_, B] - line.held[tuple_, B]
    reach = count = 0
    groups = (stash[LIVE] + banks - 1) // banks
    for group in range(groups):
        first_bank = (stash[KEPT] - (group + 1) * banks) % banks  # of the oldest place of the group
        for bank in range(banks):
            away = (group + 1) * banks - (bank - first_bank) % banks
            if away > stash[LIVE]:
                continue
            slot = (stash[KEPT] - away) % stash[SIZE]
            a, b = line.pair_a[slot], line.pair_b[slot]
            if a < low_a or b < low_b:
                continue
            reach = max(reach, away)
            of_a, behind = _bounds(lists, number, A, a, a + 1)
            if of_a == behind:
                continue
            of_b, behind = _bounds(lists, lists.further[of_a], B, b, b + 1)
            if of_b == behind:
                continue
            line.hit_group[0, count] = group
            line.hit_entry[0, count] = of_b
            line.hit_first[count] = a
            count += 1
    line.scans[0] += 1
    line.hit[0] = 0
    line.hits[0] = count
    line.group[0] = 0
    line.groups[0] = groups
    return reach


# -- the stash -------------------------------------------------------------------------------------------------------


@kernel
def _is_whole(line: Line, tuple_: int) -> bool:
    """Note where the windows begin when a tuple comes, and say whether no pair is missing."""
    stash = line.stash
    for stream in range(2):
        if line.origins[tuple_] != stream:
            stash[KNOWN + stream] = line.stops[tuple_, stream] - line.held[tuple_, stream]
        if stash[KNOWN + stream] > stash[LAST_MISSING + stream]:
            stash[MISSING] = 0
    whole: bool = stash[SIZE] > 0 and stash[MISSING] == 0
    return whole


@kernel
def _keep(line: Line, a: int, b: int) -> None:
    """Keep a pair."""
    stash = line.stash
    if stash[SIZE] == 0:
        return
    slot = stash[KEPT] % stash[SIZE]
    old_a, old_b = line.pair_a[slot], line.pair_b[slot]
    if stash[LIVE] == stash[SIZE] and old_a >= stash[KNOWN + A] and old_b >= stash[KNOWN + B]:
        still = stash[MISSING]
        stash[LAST_MISSING + A] = max(stash[LAST_MISSING + A], old_a) if still else old_a
        stash[LAST_MISSING + B] = max(stash[LAST_MISSING + B], old_b) if still else old_b
        stash[MISSING] = 1
        stash[OVERWRITTEN] += 1
    line.pair_a[slot], line.pair_b[slot] = a, b
    stash[KEPT] += 1
    stash[LIVE] = min(stash[LIVE] + 1, stash[SIZE])


# -- what a stage does -----------------------------------------------------------------------------------------------


@kernel
def _has_room(line: Line, stage: int) -> bool:
    """Whether the next stage has room for an item."""
    room: bool = line.level[stage + 1] < line.depth[stage + 1]
    return room


@kernel
def _waits(line: Line, stage: int, cycle: int, wake: int) -> None:
    if line.since[stage] < 0:
        line.since[stage] = cycle
    line.wake[stage] = wake


@kernel
def _waits_no_more(line: Line, stage: int, cycle: int) -> None:
    if line.since[stage] >= 0:
        line.waited[stage] += cycle - line.since[stage]
        line.since[stage] = -1


@kernel
def _hand_on(line: Line, stage: int, kind: int, list_: int) -> None:
    """Put an item into the queue of the next stage; it is there from the next cycle on."""
    after = stage + 1
    slot = line.head[after] + line.level[after]
    slot = slot if slot < line.depth[after] else slot - line.depth[after]
    head = line.head[stage]
    line.tuples[after, slot] = line.tuples[stage, head]
    line.kinds[after, slot] = kind
    line.lists[after, slot] = list_
    for stream in range(line.members.shape[2]):
        line.members[after, slot, stream] = line.members[stage, head, stream]
    line.pushed[after] = 1


@kernel
def _goes(line: Line, stage: int, cycle: int) -> None:
    """The item is done with."""
    line.popped[stage] = 1
    line.state[stage] = START
    line.wake[stage] = cycle + 1


@kernel
def _go_to(line: Line, row: int, stage: int, group: int, cycle: int) -> None:
    """Go on with a group that is compared in `cycle` or a later one: the first with a match, else the last."""
    to = line.groups[row] - 1
    if line.hit[row] < line.hits[row]:
        to = line.hit_group[row, line.hit[row]]
    line.group[row] = to
    line.wake[stage] = cycle + to - group


@kernel
def is_last(line: Line, stage: int, tuple_: int) -> bool:
    """Whether an item is complete when the stage has added its tuple."""
    stages = len(line.level)
    return stage == stages - 1 or (stage == stages - 2 and line.origins[tuple_] == stages)


@kernel
def _start(line: Line, stage: int, cycle: int, lists: Lists) -> None:
    """A stage without an item: it waits for one, or begins."""
    if line.level[stage] == 0:
        line.wake[stage] = NEVER
        return
    head = line.head[stage]
    tuple_, number = line.tuples[stage, head], line.lists[stage, head]
    origin = line.origins[tuple_]
    if stage == 0:
        whole = _is_whole(line, tuple_)
        line.scanning[0] = PLAIN
        to_scan = 0
        if origin <= B:
            to_scan = line.held[tuple_, 1 - origin]
            if to_scan:
                _seek(line, 0, 0, 1 - origin, number, lists)
        elif whole:
            line.scanning[0] = PROBING
            to_scan = line.stash[LIVE]
            if to_scan:
                line.stash[LIVE] = _probe(line, lists)  # the others are not live any more; none is kept meanwhile
        else:
            line.scanning[0] = OUTER
            line.stash[COMPUTED] += 1
            if line.held[tuple_, B]:
                to_scan = line.held[tuple_, A]
            if to_scan:
                _seek(line, 0, 0, A, number, lists)
        if to_scan == 0:
            line.state[0] = END
            line.wake[0] = cycle + 1
            return
    else:
        own = stage + 1
        if line.kinds[stage, head] & VALID == 0:
            line.state[stage] = END
            line.wake[stage] = cycle + 1
            return
        if origin == own:
            line.passed[stage] = 1
            if _has_room(line, stage):
                _waits_no_more(line, stage, cycle)
                _hand_on(line, stage, line.kinds[stage, head], number)
                _goes(line, stage, cycle)
            else:
                _waits(line, stage, cycle, NEVER)
            return
        if line.held[tuple_, own] == 0:
            _goes(line, stage, cycle)
            return
        _seek(line, stage, stage, own, number, lists)
    line.state[stage] = SCAN
    _go_to(line, stage, stage, 0, cycle + 1)


@kernel
def _end(line: Line, stage: int, cycle: int) -> None:
    """Nothing more comes of the tuple at this stage: it ends here, or a marker goes on."""
    tuple_ = line.tuples[stage, line.head[stage]]
    if is_last(line, stage, tuple_) or line.passed[stage] == 0:
        line.done[tuple_] = cycle + 1
    elif _has_room(line, stage):
        _hand_on(line, stage, LAST, NOTHING)
    else:
        _waits(line, stage, cycle, NEVER)
        return
    _waits_no_more(line, stage, cycle)
    line.passed[stage] = 0
    _goes(line, stage, cycle)


@kernel
def _group_done(line: Line, row: int, stage: int, cycle: int) -> None:
    """A group has no more matches."""
    group = line.group[row]
    if group + 1 < line.groups[row]:
        _go_to(line, row, stage, group + 1, cycle + 1)
        return
    line.compared[stage] += line.groups[row]
    if row != stage:  # window 1 was scanned; back to the match in window 0
        line.scanning[0] = OUTER
        line.wake[stage] = cycle + 1
    elif stage:
        _goes(line, stage, cycle)
    else:
        line.state[0] = END
        line.wake[0] = cycle + 1


@kernel
def visit_line(
    line: Line, stage: int, cycle: int, lists: Lists, now: int, network: Stages, fifos: Fifos, word: int
) -> bool:
    """A cycle of a stage in which something may happen; whether it has given a result: what its item has met."""
    state = line.state[stage]
    if state == START:
        _start(line, stage, cycle, lists)
        return False
    if state == END:
        _end(line, stage, cycle)
        return False
    inner = len(line.level)  # the row of the scan of window 1
    scanning = line.scanning[0] if stage == 0 else PLAIN
    row = inner if scanning == INNER else stage
    hit = line.hit[row]
    if hit == line.hits[row] or line.hit_group[row, hit] != line.group[row]:
        _group_done(line, row, stage, cycle)
        return False
    entry = line.hit_entry[row, hit]
    if scanning == OUTER:
        line.hit[0] += 1
        _seek(line, inner, 0, B, lists.further[entry], lists)
        line.scanning[0] = INNER
        _go_to(line, inner, 0, 0, cycle + 1)
        return False

    head = line.head[stage]
    tuple_ = line.tuples[stage, head]
    origin = line.origins[tuple_]
    last = is_last(line, stage, tuple_)
    own = stage + 1
    if stage == 0:
        own = 1 - origin if scanning == PLAIN else B
        if scanning == PROBING:
            line.members[0, head, A] = line.hit_first[hit]
        elif scanning == INNER:
            line.members[0, head, A] = lists.places[line.hit_entry[0, line.hit[0] - 1]]
    line.members[stage, head, own] = lists.places[entry]
    if last:
        if not offer_to_stages(now, stage, word, network, fifos):
            _waits(line, stage, cycle, cycle + 1)
            return False
    else:
        if not _has_room(line, stage):
            _waits(line, stage, cycle, NEVER)
            return False
        _hand_on(line, stage, VALID, lists.further[entry])
        if stage == 0 and (origin <= B):
            _keep(line, line.members[0, head, A], line.members[0, head, B])
    _waits_no_more(line, stage, cycle)
    line.passed[stage] = 1
    line.hit[row] += 1
    if line.hit[row] < line.hits[row] and line.hit_group[row, line.hit[row]] == line.group[row]:
        line.wake[stage] = cycle + 1
    else:
        _group_done(line, row, stage, cycle)
    return last
