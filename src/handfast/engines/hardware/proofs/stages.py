"""What is proven of a ring of stages and of a stash: it never sticks, ranges are right, what is missing is known."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Assert, Assume, Cat, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from handfast.engines.hardware.circular.conditions import RingConditions
from handfast.engines.hardware.circular.distribution import DistributionChain
from handfast.engines.hardware.circular.in_flight import InFlight
from handfast.engines.hardware.circular.layout import RingLayout
from handfast.engines.hardware.circular.stage import RingStage
from handfast.engines.hardware.circular.window import StagePlace
from handfast.engines.hardware.options import ROUND_ROBIN
from handfast.engines.hardware.stashed.conditions import LineConditions
from handfast.engines.hardware.stashed.layout import LineLayout
from handfast.engines.hardware.stashed.stash import Stash
from handfast.spec.expression import Literal
from handfast.spec.types import BOOLEAN


def layout(streams: int, *, held: int, in_flight: int) -> RingLayout:
    """Tuples with nothing but a place of one bit: no part looks into them."""
    conditions = RingConditions.of(Literal(True, BOOLEAN), streams)
    return RingLayout((2,) * streams, (held,) * streams, frozenset(), in_flight, 1, conditions)


class StandstillProof(wiring.Component):
    """Stages in a ring, into which new tuples come at will, and in which anything may match.

    Args:
        streams: How many stages there are.
        buffer: How many intermediates there is room for at each hop.
        in_flight: How many new tuples may wait at a stage.
        turn: Which item of a stage is next.
    """

    def __init__(self, *, streams: int, buffer: int, in_flight: int = 1, turn: str = ROUND_ROBIN) -> None:
        self.own = layout(streams, held=1, in_flight=in_flight)
        self.stages = [
            RingStage(
                place=k,
                layout=self.own,
                matches=lambda m, stage, hop, item, slot: self.found[stage],
                buffer=buffer,
                turn=turn,
            )
            for k in range(streams)
        ]
        ports = {"new": In(streams), "found": In(streams), "ready": In(streams), "store": In(streams)}
        super().__init__({**ports, **{f"item_{k}": In(self.own.item(k)) for k in range(streams)}})

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        for k, stage in enumerate(self.stages):
            m.submodules[f"stage_{k}"] = stage
            following = self.stages[(k + 1) % len(self.stages)]
            item = getattr(self, f"item_{k}")
            m.d.comb += [
                Assume(~self.new[k] | stage.room[0]),
                stage.new.eq(self.new[k]),
                stage.new_item.eq(item),
                stage.new_item.valid.eq(1),
                stage.new_item.last.eq(1),
                stage.store.eq(self.store[k]),
                following.valid.eq(stage.onward_valid),
                following.hop.eq(stage.onward_hop),
                following.item.eq(stage.onward),
                stage.onward_room.eq(self._room(following)),
                stage.results.ready.eq(self.ready[k]),
            ]
            # a stage chooses for itself what it sends: it has to find room
            going = stage.onward_valid & ~(following.room >> stage.onward_hop)[0]
            m.d.comb += Assert(~going, "what goes on finds room")
            for hop, level in enumerate(stage.queues.levels):
                m.d.comb += Assert(level <= stage.queues.depths[hop], "a queue holds what it has room for")
        stands = Cat(stage.waits | stage.idle for stage in self.stages)
        waits = Cat(stage.waits for stage in self.stages)
        m.d.comb += Assert(
            ~(self.ready.all() & waits.any() & stands.all()), "while results are taken, a stage moves if any waits"
        )
        return m

    def _room(self, stage: RingStage) -> Any:
        """What the stage before is told of the room here."""
        return stage.room


class RangeProof(wiring.Component):
    """The distribution chain and what numbers tuples: any tuples come, and end in any order.

    Two of them are followed, any two: one that is looked for, of one stream, and one that looks, of another stream. By
    the order in which they came it is clear whether the window holds the one at the arrival of the other.

    Args:
        streams: How many there are.
        rows: How many rows each window holds.
        in_flight: How many tuples may be under way.
        stream: The stream that is looked into.
    """

    def __init__(self, *, streams: int, rows: int, in_flight: int, stream: int) -> None:
        self.own = layout(streams, held=rows, in_flight=in_flight)
        self.rows = rows
        self.stream = stream
        self.chain = DistributionChain(layout=self.own, counted=(rows,) * streams)
        self.in_flight = InFlight(limit=in_flight, stages=1)
        super().__init__(
            {
                "valid": In(1),
                "step": In(self.own.step),
                "seek": In(1),  # the tuple that enters is the one that is looked for
                "looks": In(1),  # it is the one that looks
                "ends": In(1),
                "number": In(self.in_flight.number.shape()),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        own, streams, groups = self.stream, self.own.streams, self.own.groups(self.stream)
        m.submodules.chain = chain = self.chain
        m.submodules.in_flight = under_way = self.in_flight
        m.submodules.place = place = StagePlace(groups=groups, banks=1)  # where the window stores
        enters = self.valid & under_way.room
        running = Signal(self.own.in_flight)  # by number, the tuples that have been brought to a stage and not ended
        m.d.comb += [
            Assume(self.step.origin < streams),
            under_way.enters.eq(enters),
            chain.valid.eq(enters),
            chain.step.eq(self.step),
            chain.number.eq(under_way.number),
            place.move.eq(chain.store[own]),
            Assume(~self.ends | (running >> self.number)[0]),  # what ends has begun
            under_way.ended[0].eq(self.ends),
            under_way.ended_number[0].eq(self.number),
        ]
        brought = Signal.like(running)
        for k in range(streams):
            item = getattr(chain, f"item_{k}")
            with m.If(chain.new[k]):
                m.d.comb += brought.bit_select(item.number, 1).eq(1)
        ended = Mux(self.ends, 1 << self.number, 0)[: self.own.in_flight]
        m.d.sync += running.eq((running | brought) & ~ended)

        # the one that is looked for
        sought = Signal()  # it has entered
        picks = enters & self.seek & ~sought & (self.step.origin == own)
        later = Signal(range(self.rows + 2))  # how many of its stream have entered since, up to more than count
        stored, gone = Signal(), Signal()  # it has been stored; it has been overwritten
        at = Signal(range(groups))  # its place
        comes = self._after(m, picks, own)  # it is stored in this cycle
        with m.If(picks):
            m.d.sync += sought.eq(1)
        with m.If(sought & enters & (self.step.origin == own) & (later <= self.rows)):
            m.d.sync += later.eq(later + 1)
        with m.If(comes):
            m.d.sync += [stored.eq(1), at.eq(place.group)]
        with m.If(stored & chain.store[own] & (place.group == at)):
            m.d.sync += gone.eq(1)

        # the one that looks
        looking = Signal()  # it has entered
        starts = enters & self.looks & ~looking & (self.step.origin != own)
        holds = Signal()  # its window holds the one that is looked for
        number = Signal.like(under_way.number)
        begun, done = Signal(), Signal()  # it has been brought to its stage; it has ended
        range_ = Signal(self.own.range(own))
        with m.If(starts):
            m.d.sync += [looking.eq(1), number.eq(under_way.number), holds.eq(sought & (later < self.rows))]
        for k in [k for k in range(streams) if k != (own + 1) % streams]:
            item = getattr(chain, f"item_{k}")
            with m.If(chain.new[k] & looking & ~begun & (item.number == number)):
                m.d.sync += [begun.eq(1), range_.eq(item[f"of_{own}"].range)]
        with m.If(begun & self.ends & (self.number == number)):
            m.d.sync += done.eq(1)
        away = Signal(range(groups + 1))  # how many places before the range's end the one that is looked for is
        m.d.comb += away.eq(Mux(at < range_.group, range_.group - at, range_.group + groups - at))
        in_range = away <= range_.held
        works = begun & ~done
        m.d.comb += [
            Assert(~(works & holds) | (stored & ~gone), "a tuple that is looked for is stored and not overwritten"),
            Assert(~(works & holds) | in_range, "a range has every tuple that the window holds"),
            Assert(
                ~(works & ~holds & stored & ~gone) | ~in_range, "a range has no tuple that came later or has expired"
            ),
        ]
        return m

    @staticmethod
    def _after(m: Module, event: Any, cycles: int) -> Any:
        """The event, so many cycles and one later."""
        for number in range(cycles + 1):
            then = Signal(name=f"stored_in_{cycles - number}")
            m.d.sync += then.eq(event)
            event = then
        return event


def stash_layout() -> LineLayout:
    """Tuples of three streams with nothing but their places, three of each of the first two."""
    conditions = LineConditions.of(Literal(True, BOOLEAN), 3)
    return LineLayout((3, 3, 2), (2, 2, 1), frozenset(), 1, 1, conditions)


class StashProof(wiring.Component):
    """A stash that keeps any pairs, of which one is followed, any one; windows move on at will.

    Args:
        stash: It.
    """

    def __init__(self, stash: Stash) -> None:
        self.stash = stash
        own = stash.layout
        super().__init__(
            {
                "keep": In(1),
                "pair": In(own.pair),
                "pick": In(1),  # follow the pair that is kept
                "knows": In(2),
                "low_0": In(own.low(0)),
                "low_1": In(own.low(1)),
                "trim": In(1),
                "reach": In(stash.reach.shape()),
                "is_there": Out(1),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        m.submodules.stash = stash = self.stash
        followed = Signal()  # there is a pair that is followed
        places = [Signal.like(self.pair[f"of_{k}"].seq, name=f"place_{k}") for k in range(2)]  # those of its tuples
        away = Signal(range(stash.size + 2))  # how many pairs before the place of the next one it is
        lows = [Signal.like(getattr(self, f"low_{k}"), name=f"known_{k}") for k in range(2)]
        given = [getattr(self, f"low_{k}") for k in range(2)]
        live = (places[0] >= given[0]) & (places[1] >= given[1])
        picks = self.keep & self.pick & ~followed
        with m.If(picks):
            m.d.sync += [followed.eq(1), away.eq(1)]
            m.d.sync += [places[k].eq(self.pair[f"of_{k}"].seq) for k in range(2)]
        with m.Elif(self.keep & (away <= stash.size)):
            m.d.sync += away.eq(away + 1)
        for k in range(2):
            m.d.comb += Assume(given[k] >= lows[k])  # a window does not go back
            with m.If(self.knows[k]):
                m.d.sync += lows[k].eq(given[k])
        m.d.comb += [
            stash.keep.eq(self.keep),
            stash.pair.eq(self.pair),
            stash.knows.eq(self.knows),
            stash.low_0.eq(self.low_0),
            stash.low_1.eq(self.low_1),
            stash.trim.eq(self.trim),
            stash.reach.eq(self.reach),
            # a probe lets go only of pairs that are not live, by what it knows of both windows
            Assume(~self.trim | (self.reach <= stash.count)),
            Assume(~self.trim | (self.knows.all() & (~followed | ~live | (away > stash.count) | (away <= self.reach)))),
            self.is_there.eq(away <= stash.count),
            Assert(
                ~(followed & self.knows.all() & stash.whole & live) | self.is_there,
                "a whole stash has every pair that is in both windows",
            ),
            Assert(stash.count <= stash.size, "it holds what it has room for"),
        ]
        return m
