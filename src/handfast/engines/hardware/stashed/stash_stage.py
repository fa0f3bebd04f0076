"""The first stage of Stashed-MJ: two windows, the stash of their pairs, and one scanner for all three [CMJ §III]."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Module, Mux, Signal, unsigned
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from handfast.engines.hardware.circular.window import StageWindow
from handfast.engines.hardware.fifo import Fifo
from handfast.engines.hardware.segment import index_shape
from handfast.engines.hardware.stashed.conditions import PAIR, A, B, Step, inner, outer, probing
from handfast.engines.hardware.stashed.lanes import Lanes, distances
from handfast.engines.hardware.stashed.layout import LineLayout
from handfast.engines.hardware.stashed.line_stage import LineMatches
from handfast.engines.hardware.stashed.stash import Stash


class StashStage(wiring.Component):
    """All new tuples come here first, in the order of their rank, and one after the other.

    - START: waits for a tuple. One of stream 0 or 1 scans the window of the other. Any other probes the stash if it is
      whole; if not, it scans the window of 0.
    - SCAN: what matches is kept in the stash and goes on; or goes on; or, of a tuple that scans the window of 0 because
      pairs are missing, it scans the window of 1 itself, and then the first scan goes on where it was left.
    - END: the tuple ends here if it has found nothing, or is complete; else a marker goes on.

    So a tuple that probes the stash finds the pairs of all tuples that came before it, and of no others.

    Args:
        layout: The bits of items, slots and results.
        matches: The logic of the conditions.
        size: How many pairs the stash has room for.

    Ports:
        store, slot_0, slot_1: By stream, a tuple for the window.
        new, item: A new tuple; there is room for it.
        onward: What goes to the next stage.
        results: The matches of all streams.
        ended, ended_number: A tuple ends.
        waits: What was found has nowhere to go.
        overwritten: A pair that could still match is overwritten.
        computes: A tuple begins to compute pairs that are missing.
    """

    def __init__(self, *, layout: LineLayout, matches: LineMatches, size: int) -> None:
        self.layout = layout
        self.matches = matches
        self.stash = Stash(layout=layout, size=size)
        self.queue = Fifo(width=layout.item(0).size, depth=layout.in_flight, margin=0, latency=1)
        super().__init__(
            {
                "store": In(len(PAIR)),
                **{f"slot_{stream}": In(layout.slot(stream).shape) for stream in PAIR},
                "new": In(1),
                "item": In(layout.item(0)),
                "onward": Out(stream.Signature(unsigned(layout.item(1).size))),
                "results": Out(stream.Signature(unsigned(layout.result_width))),
                "ended": Out(1),
                "ended_number": Out(index_shape(layout.in_flight)),
                "waits": Out(1),
                "overwritten": Out(1),
                "computes": Out(1),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        layout, banks = self.layout, self.layout.comparisons
        m.submodules.queue = queue = self.queue
        m.submodules.stash = stash = self.stash
        windows = [
            StageWindow(slot=layout.slot(stream).shape, groups=layout.groups(stream), banks=banks) for stream in PAIR
        ]
        item = Signal(layout.item(0))
        ranges = [item[f"of_{stream}"].range for stream in PAIR]
        most = max(stash.groups, *(window.groups for window in windows))
        group = Signal(index_shape(most))  # the place before which slots are compared
        left = Signal(range(max(stash.size, *layout.held[:2]) + 1))  # how many slots are left to scan
        asked = Signal.like(group)  # the place before which slots are read
        # what is done: none of them, a tuple of stream 0 or 1 scans the window of the other
        probes, outers, inners = Signal(), Signal(), Signal()
        begins_probing, begins_outer = Signal(), Signal()
        passed = Signal()  # something of the tuple has gone on
        kept_group, kept_left = Signal.like(group), Signal.like(left)  # the scan of window 0, where it was left
        kept_sent = Signal(banks)
        found_first = Signal(layout.slot(A).shape)  # the match in window 0 for which window 1 is scanned
        scans, taken, marks, last = Signal(), Signal(), Signal(), Signal()
        of_one = Signal()  # window 1 is scanned, and not window 0
        # the bank of the place before which slots are compared, and before which they are read
        bank, asked_bank = Signal(index_shape(banks)), Signal(index_shape(banks))
        banks_of = [range_.bank if banks > 1 else 0 for range_ in ranges]
        m.d.comb += bank.eq(Mux(probes, stash.bank, Mux(of_one, banks_of[B], banks_of[A])))
        m.d.comb += [
            item.eq(queue.read.payload),
            queue.write.valid.eq(self.new),
            queue.write.payload.eq(self.item),
            of_one.eq(inners | (item.origin == A)),
            asked.eq(group),
            asked_bank.eq(bank),
            stash.at_group.eq(asked),
            stash.at_bank.eq(asked_bank),
            last.eq(layout.is_last(0, item)),
            self.ended_number.eq(item.number),
            self.overwritten.eq(stash.overwritten),
            self.computes.eq(begins_outer),
        ]
        for own, window in enumerate(windows):
            m.submodules[f"window_{own}"] = window
            m.d.comb += [
                window.store.eq(self.store[own]),
                window.entering.eq(getattr(self, f"slot_{own}")),
                window.group.eq(asked),
                window.bank.eq(asked_bank),
                getattr(stash, f"low_{own}").eq(item[f"low_{own}"]),
            ]

        # --- the pairs of tuples that are compared
        away = distances(bank, banks)
        pairs = [Signal(layout.pair, name=f"pair_{number}") for number in range(banks)]
        live = Signal(banks)  # by bank, whether both tuples of a kept pair are in their windows
        found = []
        for number, pair in enumerate(pairs):
            m.d.comb += [pair.of_0.eq(windows[A].read[number]), pair.of_1.eq(windows[B].read[number])]
            with m.If(probes):
                m.d.comb += pair.eq(stash.read[number])
            with m.Elif(inners):
                m.d.comb += pair.of_0.eq(found_first)
            with m.Elif(item.origin == A):
                m.d.comb += pair.of_0.eq(item.of_0.member)
            with m.Elif(item.origin == B):
                m.d.comb += pair.of_1.eq(item.of_1.member)
            m.d.comb += live[number].eq((pair.of_0.seq >= item.low_0) & (pair.of_1.seq >= item.low_1))
            members = {A: pair.of_0, B: pair.of_1} | {k: item[f"of_{k}"].member for k in range(2, layout.streams)}

            def is_taken(step: Step) -> Any:
                if step.origin in PAIR:
                    return item.origin == step.origin
                kind = {probing(step.origin): probes, outer(step.origin): outers, inner(step.origin): inners}[step]
                return (item.origin == step.origin) & kind

            holds = self.matches(m, 0, members, is_taken)
            found.append((away[number] <= left) & (~probes | live[number]) & holds)
        lanes = Lanes(m, found, scans=scans, taken=taken)
        pair = Signal(layout.pair)  # the one that leaves
        lanes.pick(m, pairs, pair)

        # --- where it goes
        goes = lanes.matches.any() & ~outers
        of_pair = Signal()  # it is a pair of the stash's streams
        onward = Signal(layout.item(1))
        members = {A: pair.of_0, B: pair.of_1}
        layout.onward(m, 0, item, members, onward)
        with m.If(marks):
            m.d.comb += [onward.valid.eq(0), onward.last.eq(1)]
        m.d.comb += [
            of_pair.eq((item.origin == A) | (item.origin == B)),
            self.results.valid.eq(goes & last),
            self.results.payload.eq(layout.result(item, members)),
            self.onward.valid.eq((goes & ~last) | marks),
            self.onward.payload.eq(onward),
            taken.eq(lanes.matches.any() & (outers | Mux(last, self.results.ready, self.onward.ready))),
            stash.keep.eq(taken & of_pair),
            stash.pair.eq(pair),
            self.waits.eq((goes & ~taken) | (marks & ~self.onward.ready)),
        ]
        with m.If(taken & ~outers):
            m.d.sync += passed.eq(1)
        self._trim(m, probes & scans, live, away, left, lanes)

        # --- what comes next
        size = Signal.like(group)  # how many groups there are of what is scanned, less one
        m.d.comb += size.eq(Mux(probes, stash.groups - 1, Mux(of_one, windows[B].groups - 1, windows[A].groups - 1)))
        before = Signal.like(group)
        to_scan = Signal.like(left)
        m.d.comb += before.eq(Mux(group == 0, size, group - 1))
        with m.FSM():
            with m.State("START"), m.If(queue.read.valid):
                m.d.comb += stash.knows.eq(~((item.origin == A) | ((item.origin == B) << 1)))
                with m.If(of_pair):
                    m.d.comb += [
                        asked.eq(Mux(of_one, ranges[B].group, ranges[A].group)),
                        to_scan.eq(Mux(of_one, ranges[B].held, ranges[A].held)),
                    ]
                with m.Elif(stash.whole):
                    m.d.comb += [begins_probing.eq(1), to_scan.eq(stash.count)]
                    m.d.comb += [asked.eq(stash.group), asked_bank.eq(stash.bank)]
                with m.Else():
                    m.d.comb += [
                        begins_outer.eq(1),
                        asked.eq(ranges[A].group),
                        to_scan.eq(Mux(ranges[B].held == 0, 0, ranges[A].held)),
                    ]
                m.d.sync += [
                    group.eq(asked),
                    left.eq(to_scan),
                    lanes.sent.eq(0),
                    probes.eq(begins_probing),
                    outers.eq(begins_outer),
                ]
                with m.If(to_scan != 0):
                    m.next = "SCAN"
                with m.Else():
                    m.next = "END"
            with m.State("SCAN"):
                m.d.comb += scans.eq(1)
                with m.If(outers & lanes.matches.any()):
                    m.d.sync += [
                        kept_group.eq(group),
                        kept_left.eq(left),
                        kept_sent.eq(lanes.sent | lanes.first),
                        found_first.eq(pair.of_0),
                        outers.eq(0),
                        inners.eq(1),
                        group.eq(ranges[B].group),
                        left.eq(ranges[B].held),
                        lanes.sent.eq(0),
                    ]
                    m.d.comb += [asked.eq(ranges[B].group), asked_bank.eq(banks_of[B])]
                with m.Elif(lanes.done & (left > banks)):
                    m.d.comb += asked.eq(before)
                    m.d.sync += [group.eq(before), left.eq(left - banks), lanes.sent.eq(0)]
                with m.Elif(lanes.done & inners):
                    m.d.sync += [
                        outers.eq(1),
                        inners.eq(0),
                        group.eq(kept_group),
                        left.eq(kept_left),
                        lanes.sent.eq(kept_sent),
                    ]
                    m.d.comb += [asked.eq(kept_group), asked_bank.eq(banks_of[A])]
                with m.Elif(lanes.done):
                    m.next = "END"
            with m.State("END"):
                with m.If(last | ~passed):
                    m.d.comb += [self.ended.eq(1), queue.read.ready.eq(1)]
                with m.Else():
                    m.d.comb += [marks.eq(1), queue.read.ready.eq(self.onward.ready)]
                with m.If(queue.read.ready):
                    m.d.sync += [passed.eq(0), probes.eq(0), outers.eq(0)]
                    m.next = "START"
        return m

    def _trim(self, m: Module, probes: Any, live: Signal, away: list[Any], left: Signal, lanes: Lanes) -> None:
        """Let the oldest pairs of the stash go of which a tuple that has probed all of them has found none alive."""
        banks = self.layout.comparisons
        stash = self.stash
        oldest = Signal.like(stash.reach)  # how far back the oldest one is that was found alive
        reach = oldest
        for number in range(banks):
            place = Signal.like(stash.reach, name=f"place_{number}")
            m.d.comb += place.eq(stash.count - left + away[number])
            further = live[number] & (away[number] <= left) & (place > reach)
            reach = Mux(further, place, reach)
        m.d.comb += [stash.reach.eq(reach), stash.trim.eq(probes & lanes.done & (left <= banks))]
        m.d.sync += oldest.eq(Mux(probes, Mux(stash.trim, 0, reach), 0))
