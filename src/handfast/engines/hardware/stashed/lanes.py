"""The slots of a group that match, as they leave one after the other."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Array, Module, Signal


class Lanes:
    """Which slots of a group match and have not left yet, and which of them leaves next.

    Attributes:
        matches: By bank, what matches and has not left.
        first: The one of them that leaves next: of the lowest bank.
        sent: Those that have left.
        done: With `taken`, whether nothing of the group is left.
    """

    def __init__(self, m: Module, found: list[Any], *, scans: Any, taken: Any) -> None:
        banks = len(found)
        self.matches = Signal(banks, name="matches")
        self.first = Signal(banks, name="first")
        self.sent = Signal(banks, name="sent")
        self.done = Signal(name="group_done")
        m.d.comb += [
            *(self.matches[bank].eq(scans & found[bank] & ~self.sent[bank]) for bank in range(banks)),
            self.first.eq(self.matches & -self.matches),
            self.done.eq(scans & (~self.matches.any() | (taken & (self.matches == self.first)))),
        ]
        with m.If(taken):
            m.d.sync += self.sent.eq(self.sent | self.first)

    def pick(self, m: Module, slots: list[Any], to: Any) -> None:
        """Add the logic that gives the slot of the one that leaves."""
        for bank, slot in reversed(list(enumerate(slots))):
            with m.If(self.matches[bank]):
                m.d.comb += to.eq(slot)


def distances(bank: Any, banks: int) -> list[Any]:
    """By bank, how many places before a place of bank `bank` its slot is, from 1 on."""
    if banks == 1:
        return [1]
    return [Array((at - 1 - number) % banks + 1 for at in range(banks))[bank] for number in range(banks)]
