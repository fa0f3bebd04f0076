"""How what goes along the line of Stashed-MJ lies in bits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from amaranth.hdl import Cat, Module, unsigned
from amaranth.lib import data

from handfast.engines.hardware.circular.layout import WindowsLayout, copy
from handfast.engines.hardware.layout import TupleLayout
from handfast.engines.hardware.segment import index_shape
from handfast.engines.hardware.stashed.conditions import PAIR, LineConditions
from handfast.spec.expression import Column


@dataclass(frozen=True)
class LineLayout(WindowsLayout):
    """The bits of a line of stages; the first has the windows of two streams, and each other that of one.

    An item is what it is in a ring, and says its origin as well. New tuples of other streams than the first two say the
    first places of these that their windows hold, `low_0` and `low_1`: by these they know which pairs they may match.

    Attributes:
        conditions: What is checked where, and so which columns travel.
    """

    conditions: LineConditions

    @property
    def stages(self) -> int:
        """How many stages there are."""
        return self.streams - 1

    def columns(self, stream: int) -> tuple[Column, ...]:
        """The columns of a stream that any stage reads."""
        return self.conditions.read(0, stream)

    def low(self, stream: int) -> Any:
        """The first place of a stream that a window holds; it may be behind the last."""
        return unsigned(max(1, self.rows[stream].bit_length()))

    @property
    def pair(self) -> Any:
        """Two tuples that match, as they are kept."""
        return data.StructLayout({f"of_{stream}": self.slot(stream).shape for stream in PAIR})

    def member(self, stage: int, stream: int) -> TupleLayout:
        """A tuple of an item on its way to a stage: with the columns that are read from there on."""
        if stage == 0:
            return self.slot(stream)
        return TupleLayout(self.conditions.carried(stage, stream), seq=self.slot(stream).seq, flag=0)

    def item(self, stage: int) -> Any:
        """An item on its way to a stage."""
        fields: dict[str, Any] = {
            "number": index_shape(self.in_flight),
            "origin": range(self.streams),
            "valid": 1,
            "last": 1,
        }
        if stage == 0:
            fields |= {f"low_{stream}": self.low(stream) for stream in PAIR}
        for stream in range(self.streams):
            forms = {"member": self.member(stage, stream).shape}
            if stream > stage or stage == 0:
                forms["range"] = self.range(stream)
            fields[f"of_{stream}"] = data.UnionLayout(forms)
        return data.StructLayout(fields)

    def onward(self, m: Module, stage: int, item: Any, members: dict[int, Any], to: Any) -> None:
        """Add the logic that makes an item for the next stage of an item and the tuples that it has met here."""
        m.d.comb += [to.number.eq(item.number), to.origin.eq(item.origin), to.valid.eq(1), to.last.eq(0)]
        for stream in range(self.streams):
            new, old, layout = to[f"of_{stream}"], item[f"of_{stream}"], self.member(stage + 1, stream)
            if stream in members:
                copy(m, layout, members[stream], new.member)
            elif stream <= stage:
                copy(m, layout, old.member, new.member)
            else:
                with m.If(item.origin == stream):
                    copy(m, layout, old.member, new.member)
                with m.Else():
                    m.d.comb += new.range.eq(old.range)

    def result(self, item: Any, members: dict[int, Any]) -> Any:
        """The result of an item and the tuples that complete it: the places of its tuples."""
        return Cat(members[k].seq if k in members else item[f"of_{k}"].member.seq for k in range(self.streams))

    def is_last(self, stage: int, item: Any) -> Any:
        """Whether an item is complete when the stage has added its tuple: the last stage is not for its own stream."""
        if stage == self.stages - 1:
            return 1
        return item.origin == self.streams - 1 if stage == self.stages - 2 else 0
