"""The stage: one window of the ring, a scanner, and a queue and a resumable scan for each hop [CMJ §II-C]."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from amaranth.hdl import Array, Cat, Module, Mux, Signal, unsigned
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from handfast.engines.hardware.circular.layout import RingLayout
from handfast.engines.hardware.circular.stage_buffer import StageBuffer
from handfast.engines.hardware.circular.window import StageWindow
from handfast.engines.hardware.options import HIGHEST, ROUND_ROBIN
from handfast.engines.hardware.segment import index_shape

StageMatches = Callable[[Module, int, Any, Any, Any], Any]
"""Adds the logic of a stage's conditions, for a hop, an item and a slot; whether they are all true."""


class RingStage(wiring.Component):
    """A stage of the ring.

    Cycle by cycle:

    - IDLE: an item that can go on is chosen, and START follows; none that came in this cycle.
    - START: the scan of the item begins, or goes on where it was left. SCAN follows if there are slots to scan;
      if not, END for the last item of a tuple, and else the next item is chosen.
    - SCAN: the next `comparisons` slots of the range are compared. Each of those that match takes a cycle in which it
      leaves: as a result from the last hop, else as an item for the next stage. A cycle more is taken only by a group
      without a match. If the next stage has no room, the scan is left for an item of another hop, if any can go on; it
      can when there is room again. After the last group END follows for the last item of a tuple, and else the next
      item is chosen.
    - END: the tuple ends here if it is at its last hop, or if none of its items has found a match. Else a marker goes
      on, which waits for room in the same way. Then the next item is chosen.

    Chosen is the oldest item of a hop. With "round_robin" that is the first hop that can go on of those that follow the
    last one; the last one itself comes last. With "highest" it is the highest [CMJ §II-C]: then bursts of intermediates
    are worked off one behind the other, and stages behind them fill the one buffer that waits.

    With `drops`, an intermediate that finds no room is gone and counted, as in the paper.

    Args:
        place: The number of the stage, which is that of its stream.
        layout: The bits of items, slots and results.
        matches: The logic of the conditions.
        buffer: How many intermediates there is room for at each hop.
        turn: Which item is next, "round_robin" or "highest".
        drops: Whether intermediates without room are dropped.

    Ports:
        store, slot: A tuple for the window.
        new, new_item: A tuple that begins here.
        valid, hop, item: What comes from the stage before, only where there is `room`.
        room: By hop, whether there is room here.
        onward_valid, onward_hop, onward: What goes to the next stage.
        onward_room: Its `room`.
        results: The matches of all streams.
        ended, ended_number: A tuple ends.
        dropped: An intermediate is dropped.
        waits: What was found has nowhere to go, and there is nothing else to do.
        idle: There is nothing to do.
    """

    def __init__(
        self,
        *,
        place: int,
        layout: RingLayout,
        matches: StageMatches,
        buffer: int,
        turn: str = ROUND_ROBIN,
        drops: bool = False,
    ) -> None:
        self.place = place
        self.layout = layout
        self.matches = matches
        self.buffer = buffer
        self.turn = turn
        self.drops = drops
        self.queues = StageBuffer(item=layout.item(place), hops=layout.hops, new=layout.in_flight, depth=buffer)
        item, onward = layout.item(place), layout.item((place + 1) % layout.streams)
        super().__init__(
            {
                "store": In(1),
                "slot": In(layout.slot(place).shape),
                "new": In(1),
                "new_item": In(item),
                "valid": In(1),
                "hop": In(index_shape(layout.hops)),
                "item": In(item),
                "room": Out(layout.hops),
                "onward_valid": Out(1),
                "onward_hop": Out(index_shape(layout.hops)),
                "onward": Out(onward),
                "onward_room": In(layout.hops),
                "results": Out(stream.Signature(unsigned(layout.result_width))),
                "ended": Out(1),
                "ended_number": Out(index_shape(layout.in_flight)),
                "dropped": Out(1),
                "waits": Out(1),
                "idle": Out(1),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        layout, hops, banks = self.layout, self.layout.hops, self.layout.comparisons
        groups = layout.groups(self.place)
        m.submodules.window = window = StageWindow(slot=layout.slot(self.place).shape, groups=groups, banks=banks)
        m.submodules.buffer = queues = self.queues
        item = queues.oldest
        range_ = item[f"of_{self.place}"].range
        bank = range_.bank if banks > 1 else 0
        hop = Signal(index_shape(hops))  # of the item that is worked on
        group = Signal(index_shape(groups))  # the place before which slots are compared
        left = Signal(range_.held.shape())  # how many slots are left to scan
        sent = Signal(banks)  # those of the group whose matches have left

        # by hop: the scan of the oldest item
        begun = Signal(hops)  # it was left before its end
        blocked = Signal(hops)  # it waits for room in the next stage
        passed = Signal(hops)  # an item of the same tuple has found a match
        kept_group = [Signal.like(group, name=f"kept_group_{h}") for h in range(hops)]
        kept_left = [Signal.like(left, name=f"kept_left_{h}") for h in range(hops)]
        kept_sent = [Signal.like(sent, name=f"kept_sent_{h}") for h in range(hops)]

        pop, leave = Signal(), Signal()  # the item is done with; it is left for another one
        last_hop, room = Signal(), Signal()  # room: what is found or ends has a place to go to
        m.d.comb += [
            last_hop.eq(hop == hops - 1),
            # a queue at the next stage has one hop more
            room.eq(last_hop | Array([*self.onward_room[1:], 1])[hop]),
            queues.new_valid.eq(self.new),
            queues.new.eq(self.new_item),
            queues.valid.eq(self.valid),
            queues.hop.eq(self.hop),
            queues.item.eq(self.item),
            queues.pop.eq(pop),
            self.room.eq(queues.room),
            window.store.eq(self.store),
            window.entering.eq(self.slot),
            window.bank.eq(bank),
            self.onward_hop.eq(hop + 1),
            self.ended_number.eq(item.number),
        ]

        # --- what comes next
        free = Signal(hops)  # by hop, whether its scan does not wait for room
        m.d.comb += free.eq(~blocked | Cat(self.onward_room[1:], 1))
        others = Signal(hops)  # items of other hops that can go on
        after = Signal(hops)  # what can go on when the present item is done with
        own = (1 << hop)[:hops]
        m.d.comb += [
            others.eq(queues.waiting & free & ~own),
            after.eq(Mux(pop, others | (queues.more & own), queues.waiting & free)),
        ]
        choices = Signal(hops)
        chosen = Signal(index_shape(hops))
        chooses, found_one = Signal(), Signal()
        m.d.comb += [choices.eq(Mux(leave, others, after)), found_one.eq(choices.any())]
        self._choose(m, choices, hop, chosen)
        moves = Signal()  # another item is worked on in the next cycle
        m.d.comb += [moves.eq(chooses & found_one), queues.look.eq(Mux(moves, chosen, hop))]
        with m.If(moves):
            m.d.sync += [hop.eq(chosen), blocked.eq(blocked & ~(1 << chosen)[:hops])]
        with m.If(pop):
            m.d.sync += begun.eq(begun & ~own)

        # --- what a scan finds
        scans = Signal()
        matches = Signal(banks)  # of the group, what matches and has not left
        first = Signal(banks)
        leaves, group_done = Signal(), Signal()
        slot = Signal(layout.slot(self.place).shape)  # the one that leaves
        counts = self._counting(bank, left, banks)
        for number in range(banks):
            found = self.matches(m, self.place, hop, item, window.read[number])
            m.d.comb += matches[number].eq(scans & counts[number] & found & ~sent[number])
        for number in reversed(range(banks)):
            with m.If(matches[number]):
                m.d.comb += slot.eq(window.read[number])
        to_next = Signal(layout.item((self.place + 1) % layout.streams))
        layout.onward(m, self.place, hop, item, slot, to_next)
        goes = Signal()  # an intermediate goes on
        marks = Signal()  # a marker goes on
        m.d.comb += [
            first.eq(matches & -matches),
            self.results.valid.eq(last_hop & matches.any()),
            self.results.payload.eq(layout.result(self.place, item, slot)),
            goes.eq(~last_hop & matches.any() & room),
            leaves.eq(matches.any() & Mux(last_hop, self.results.ready, room)),
            self.onward_valid.eq(goes | marks),
            self.onward.eq(to_next),
        ]
        with m.If(marks):
            m.d.comb += [self.onward.valid.eq(0), self.onward.last.eq(1)]
        if self.drops:
            m.d.comb += [leaves.eq(matches.any() & (~last_hop | self.results.ready)), self.dropped.eq(leaves & ~room)]
        m.d.comb += group_done.eq(scans & (~matches.any() | (leaves & (matches == first))))
        with m.If(leaves):
            m.d.sync += [sent.eq(sent | first), passed.eq(passed | own)]

        goes_on = Signal()  # the scan was left before its end
        begins_at = Signal.like(group)  # where it begins, or goes on
        to_scan = Signal.like(left)
        before = Signal.like(group)  # the next group to scan
        m.d.comb += [
            goes_on.eq(Array(begun)[hop]),
            begins_at.eq(Mux(goes_on, Array(kept_group)[hop], range_.group)),
            to_scan.eq(Mux(goes_on, Array(kept_left)[hop], Mux(item.valid, range_.held, 0))),
            before.eq(Mux(group == 0, groups - 1, group - 1)),
            window.group.eq(group),
        ]

        def go_on() -> None:
            m.d.comb += chooses.eq(1)
            with m.If(moves):
                m.next = "START"

        def done() -> None:
            m.d.comb += pop.eq(1)
            m.next = "IDLE"
            go_on()

        def leave_it() -> None:
            m.d.comb += leave.eq(1)
            go_on()

        with m.FSM():
            with m.State("IDLE"):
                m.d.comb += self.idle.eq(~moves)
                go_on()
            with m.State("START"):
                m.d.comb += window.group.eq(begins_at)
                m.d.sync += [group.eq(begins_at), left.eq(to_scan), sent.eq(Mux(goes_on, Array(kept_sent)[hop], 0))]
                with m.If(to_scan != 0):
                    m.next = "SCAN"
                with m.Elif(item.last):
                    m.next = "END"
                with m.Else():
                    done()
            with m.State("SCAN"):
                m.d.comb += scans.eq(1)
                with m.If(group_done & (left > banks)):
                    m.d.comb += window.group.eq(before)
                    m.d.sync += [group.eq(before), left.eq(left - banks), sent.eq(0)]
                with m.Elif(group_done & item.last):
                    m.d.sync += left.eq(0)
                    m.next = "END"
                with m.Elif(group_done):
                    done()
                with m.Elif(~leaves & ~last_hop):
                    leave_it()
            with m.State("END"):
                with m.If(last_hop | ~Array(passed)[hop]):
                    m.d.comb += self.ended.eq(1)
                    done()
                with m.Elif(room):
                    m.d.comb += marks.eq(1)
                    done()
                with m.Else():
                    leave_it()
                with m.If(pop):
                    m.d.sync += passed.eq(passed & ~own)
        with m.If(leave & moves):
            m.d.sync += [begun.eq(begun | own), blocked.eq((blocked & ~(1 << chosen)[:hops]) | own)]
            for h in range(hops):
                with m.If(hop == h):
                    m.d.sync += [kept_group[h].eq(group), kept_left[h].eq(left), kept_sent[h].eq(sent)]
        m.d.comb += self.waits.eq((leave & ~moves) | (scans & last_hop & matches.any() & ~self.results.ready))
        return m

    def _choose(self, m: Module, choices: Signal, hop: Signal, chosen: Signal) -> None:
        """Choose one of the hops that can go on."""
        hops = self.layout.hops
        if self.turn == HIGHEST:
            for h in range(hops):  # where several apply, the last assignment counts
                with m.If(choices[h]):
                    m.d.comb += chosen.eq(h)
            return
        with m.Switch(hop):
            for last in range(hops):
                with m.Case(last):
                    for h in [(last - step) % hops for step in range(hops)]:
                        with m.If(choices[h]):
                            m.d.comb += chosen.eq(h)

    @staticmethod
    def _counting(bank: Any, left: Any, banks: int) -> list[Any]:
        """By bank, whether its slot is one of those that are left to scan, of the `banks` before the place."""
        if banks == 1:
            return [1]
        # the slot in bank b is (bank - 1 - b) mod banks + 1 before the place
        return [Array((at - 1 - number) % banks < left for at in range(banks))[bank] for number in range(banks)]
