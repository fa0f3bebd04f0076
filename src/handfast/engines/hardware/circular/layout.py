"""How what goes round a ring lies in bits: new tuples, items with the ranges that they have yet to scan, results."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from amaranth.hdl import Cat, Module, unsigned
from amaranth.lib import data

from handfast.engines.hardware.circular.conditions import RingConditions
from handfast.engines.hardware.layout import TupleLayout, field_of
from handfast.engines.hardware.segment import groups_of, index_shape
from handfast.spec.expression import Column


@dataclass(frozen=True)
class WindowsLayout:
    """The bits of new tuples and of windows, whatever becomes of them.

    Attributes:
        rows: How many tuples each stream has.
        held: How many of them its window has room for.
        timed: The streams whose windows are of time: how many tuples such a window holds is said with each new tuple
            of another stream.
        in_flight: How many tuples may be under way at the same time: as many slots are there beyond a window.
        comparisons: How many slots are compared at a time: the banks of a window.
    """

    rows: tuple[int, ...]
    held: tuple[int, ...]
    timed: frozenset[int]
    in_flight: int
    comparisons: int

    @property
    def streams(self) -> int:
        """How many streams there are."""
        return len(self.rows)

    def groups(self, stream: int) -> int:
        """How many groups of slots a stream's window has, and those beyond it."""
        return groups_of(self.held[stream] + self.in_flight, self.comparisons)

    def columns(self, stream: int) -> tuple[Column, ...]:
        """The columns of a stream that are read anywhere."""
        raise NotImplementedError

    def slot(self, stream: int) -> TupleLayout:
        """A tuple as it enters, and as it is in its window: with all columns that are read anywhere."""
        return TupleLayout(self.columns(stream), seq=max(1, (self.rows[stream] - 1).bit_length()), flag=0)

    @cached_property
    def step(self) -> Any:
        """What enters at once: a tuple with its origin, and how many tuples its windows of time hold."""
        widest = max(self.slot(stream).shape.size for stream in range(self.streams))
        fields = {"origin": range(self.streams), "slot": unsigned(widest)}
        return data.StructLayout(fields | self._held())

    def pack_step(self, origin: int, slot: int, held: Sequence[int]) -> int:
        """A new tuple as one number; `held` says for each stream how many tuples its window holds at its arrival."""
        shape = self.step
        word: int = origin << shape["origin"].offset | slot << shape["slot"].offset
        for stream in self.timed - {origin}:
            word |= held[stream] << shape["held"].offset + shape["held"].shape[str(stream)].offset
        return word

    def _held(self) -> dict[str, Any]:
        """No field without bits: Verilog has no such wires."""
        held = {str(stream): range(self.held[stream] + 1) for stream in sorted(self.timed)}
        return {"held": data.StructLayout(held)} if held else {}

    def range(self, stream: int) -> Any:
        """The slots of a window that an item has yet to scan."""
        fields: dict[str, Any] = {"group": index_shape(self.groups(stream)), "held": range(self.held[stream] + 1)}
        if self.comparisons > 1:
            fields["bank"] = range(self.comparisons)
        return data.StructLayout(fields)

    @property
    def ranges(self) -> Any:
        """The slots that the windows of all streams hold, each as a range."""
        return data.StructLayout({str(stream): self.range(stream) for stream in range(self.streams)})

    @property
    def result_width(self) -> int:
        """How many bits a result takes."""
        return sum(self.slot(stream).seq for stream in range(self.streams))

    def places(self, result: int) -> tuple[int, ...]:
        """The places of the tuples that a result is made of, by stream."""
        found = []
        for stream in range(self.streams):
            width = self.slot(stream).seq
            found.append(result & (1 << width) - 1)
            result >>= width
        return tuple(found)

    def number(self, places: Sequence[int]) -> int:
        """The result that is made of these places."""
        word = shift = 0
        for stream, place in enumerate(places):
            word |= place << shift
            shift += self.slot(stream).seq
        return word


def copy(m: Module, layout: TupleLayout, source: Any, to: Any) -> None:
    """Copy what one member has of another, or of a slot."""
    m.d.comb += to.seq.eq(source.seq)
    for column in layout.columns:
        m.d.comb += to["columns"][field_of(column)].eq(source["columns"][field_of(column)])


@dataclass(frozen=True)
class RingLayout(WindowsLayout):
    """The bits of a ring of stages.

    An *item* is what goes round: a new tuple, or an intermediate of it. On its way to a stage it has a field for each
    stream. Of those that it has met, and of its own, that is the tuple (`member`); of all others the `range` of slots
    that it will scan: the place behind the newest one that counts, as group and bank, and how many count, backwards
    from there. An item without `valid` is a marker: all items of this tuple have come before it.

    Attributes:
        conditions: What is checked where, and so which columns travel.
    """

    conditions: RingConditions

    @property
    def hops(self) -> int:
        """How many stages a tuple comes to."""
        return self.streams - 1

    def columns(self, stream: int) -> tuple[Column, ...]:
        """The columns of a stream that any stage reads."""
        read = {*self.conditions.read_at(stream), *self.conditions.carried((stream + 1) % self.streams, stream)}
        return tuple(sorted(read, key=lambda column: column.name))

    def member(self, stage: int, stream: int) -> TupleLayout:
        """A tuple of an item on its way to a stage: with the columns that are read from there on."""
        return TupleLayout(self.conditions.carried(stage, stream), seq=self.slot(stream).seq, flag=0)

    def item(self, stage: int) -> Any:
        """An item on its way to a stage."""
        fields = {"number": index_shape(self.in_flight), "valid": 1, "last": 1}
        for stream in range(self.streams):
            forms = {}
            if stream != stage:
                forms["member"] = self.member(stage, stream).shape
            if stream != (stage - 1) % self.streams:
                forms["range"] = self.range(stream)
            fields[f"of_{stream}"] = data.UnionLayout(forms)
        return data.StructLayout(fields)

    def onward(self, m: Module, stage: int, hop: Any, item: Any, slot: Any, to: Any) -> None:
        """Add the logic that makes an item of an item and a slot of the stage that it matches."""
        following = (stage + 1) % self.streams
        m.d.comb += [to.number.eq(item.number), to.valid.eq(1), to.last.eq(0)]
        for stream in range(self.streams):
            new = to[f"of_{stream}"]
            if stream == stage:
                copy(m, self.member(following, stream), slot, new.member)
                continue
            old, hops = item[f"of_{stream}"], (stage - 1 - stream) % self.streams  # after which it has been met
            if hops == 0:
                copy(m, self.member(following, stream), old.member, new.member)
            elif stream == following:
                m.d.comb += new.range.eq(old.range)
            else:
                with m.If(hop >= hops):
                    copy(m, self.member(following, stream), old.member, new.member)
                with m.Else():
                    m.d.comb += new.range.eq(old.range)

    def result(self, stage: int, item: Any, slot: Any) -> Any:
        """The result of an item and a slot of the last stage: the places of its tuples."""
        return Cat(slot.seq if k == stage else item[f"of_{k}"].member.seq for k in range(self.streams))
