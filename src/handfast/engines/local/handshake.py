"""The handshake: R is forwarded right and S left, and every two tuples meet at exactly one core [HSJ §4.2, Fig. 9].

What a core can do is cut into single actions, so that threads can take them as they come, and a test in any order.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from math import inf
from time import perf_counter

import pyarrow as pa

from handfast.core.join_core import JoinCore
from handfast.engines.local.balance import Cost, relative_costs
from handfast.engines.local.channel import Bell, Channel
from handfast.engines.local.cores import Tally
from handfast.flow.block import Block
from handfast.flow.topology import STREAMS, ChainTopology, Policy, R, S, Side
from handfast.plan import Plan


class Signal(Enum):
    """Messages that are not tuples. Like tuples, they may not overtake anything that is in their channel.

    In the paper the driver sends acknowledgements to have tuples removed [HSJ §4.4]. They mean two things: a neighbour
    acknowledges what it has received, and the driver alone knows what has expired. So here they are two messages.
    """

    ACK = "acknowledgement"  # from the left neighbour: it has the oldest forwarded S block, so the copy can go
    EXPIRE = "expire"  # from the driver, at the exit of a stream: the window of its oldest block is over
    FLUSH = "flush"  # from the driver, and then from core to core: nothing follows, forward everything


Message = Block | Signal
Give = Callable[[pa.RecordBatch], None]


@dataclass(frozen=True, slots=True)
class Book:
    """What a core says of one stream between two actions: a new one for every change, so that its numbers fit together.

    Attributes:
        came: The number after that of the last block that came, in the channel it came by.
        went: Likewise of the last block that was forwarded, in the channel it left by.
        live: How many tuples the core stores, but for copies of those it has forwarded.
        expired: How many it has removed because their window is over.
    """

    came: int = 0
    went: int = 0
    live: int = 0
    expired: int = 0


class HandshakeCore:
    """One core of the chain: a segment of both windows, and what it does with a message [HSJ Fig. 9, Fig. 13].

    Attributes:
        windows: Of both streams, the blocks that are here, the oldest first.
        forwarded: How many of the oldest S blocks have been sent left and are kept until that is acknowledged.
        sizes: Of both streams, how many tuples are here that have not been forwarded: what the policy goes by.
        books: Of both streams, what can be read of them while the core works.
    """

    def __init__(self, plan: Plan, policy: Policy) -> None:
        self._join = JoinCore(plan)
        self._policy = policy
        self.left: HandshakeCore | None = None
        self.right: HandshakeCore | None = None
        self.bell = Bell()
        self.windows: tuple[deque[Block], deque[Block]] = (deque(), deque())
        self.forwarded = 0
        self.sizes = [0, 0]
        self.expired = [0, 0]
        self.books = [Book(), Book()]
        self._copied = 0  # tuples of S that have been sent left and are kept until that is acknowledged
        self.cost = Cost()
        self.weight = 1.0  # what a tuple costs here, as a multiple of what it costs the others
        self.arrived = [0, 0]  # of both streams, how many blocks have come here
        self.sent, self.received = [0, 0], [0, 0]  # of both streams, tuples to the next core, and to this one
        self.scanned = self.matched = self.joined = 0
        self.busy = 0.0
        self.flushed = [False, False]  # of both streams: nothing is to come, and nothing is left to forward
        self._flushing = [False, False]
        self._expired_early = [0, 0]  # of both streams, blocks that have expired on their way to this core

    def connect(self, side: Side, link: Link, neighbour: HandshakeCore | None) -> None:
        """Take the channels on one side, with the neighbour behind them, or the driver."""
        if side is Side.LEFT:
            self.left, self.from_left, self.to_left = neighbour, link.rightward, link.leftward
        else:
            self.right, self.from_right, self.to_right = neighbour, link.leftward, link.rightward

    def receives_from(self, side: Side) -> Channel[Message]:
        """The channel by which messages come from one side."""
        return self.from_left if side is Side.LEFT else self.from_right

    # -- actions ---------------------------------------------------------------------------------

    def actions(self, give: Give) -> Sequence[Callable[[], bool]]:
        """All that a core can do, each as a single action that says whether there was anything to do."""
        return (
            lambda: self.process_left(give),
            lambda: self.process_right(give),
            self.forward_s,
            self.forward_r,
        )

    def process_left(self, give: Give) -> bool:
        """Take a message from the left: R comes from there, and acknowledgements of S; at the left end, its expiry."""
        if not len(self.from_left):
            return False
        match self.from_left.first:
            case Block() as block:
                self._scan_and_insert(R, block, give)
                self._write(R, came=self.from_left.taken + 1)
            case Signal.ACK:
                self._acknowledge_s()
                self._write(S)
            case Signal.EXPIRE:
                self._expire(S)
                self._write(S)
            case Signal.FLUSH:
                self._flushing[R] = True
        self.from_left.drop_first()
        return True

    def process_right(self, give: Give) -> bool:
        """Take a message from the right: S comes from there, and is acknowledged; at the right end, the expiry of R."""
        if not len(self.from_right) or not self.to_right.room:
            return False  # without room for the acknowledgement the block has to wait
        match self.from_right.first:
            case Block() as block:
                self._scan_and_insert(S, block, give)
                self._write(S, came=self.from_right.taken + 1)
                if self.right is not None:
                    self.to_right.send(Signal.ACK)
            case Signal.EXPIRE:
                self._expire(R)
                self._write(R)
            case Signal.FLUSH:
                self._flushing[S] = True
            case Signal.ACK:
                raise AssertionError("R is removed when it is forwarded: nobody acknowledges it")
        self.from_right.drop_first()
        return True

    def forward_s(self) -> bool:
        """Send the oldest S block left, if the policy says so: phase one. A copy stays until it is acknowledged."""
        waiting = len(self.windows[S]) - self.forwarded
        if self.left is None:
            self.flushed[S] = self._flushing[S]
            return False
        if self._forwards(S, waiting, self.left) and self.to_left.room:
            block = self.windows[S][self.forwarded]
            self.forwarded += 1
            self._copied += len(block)
            self._count_sent(S, block)
            self.to_left.send(block)
            self._write(S, went=self.to_left.sent)
            return True
        return self._pass_flush(S, waiting, self.to_left)

    def forward_r(self) -> bool:
        """Send the oldest R block right, if the policy says so; it is removed at once."""
        waiting = len(self.windows[R])
        if self.right is None:
            self.flushed[R] = self._flushing[R]
            return False
        # one place is left free for acknowledgements: R must not keep S waiting
        if self._forwards(R, waiting, self.right) and self.to_right.room > 1:
            block = self.windows[R].popleft()
            self._remove(R, block)
            self._count_sent(R, block)
            self.to_right.send(block)
            self._write(R, went=self.to_right.sent)
            return True
        return self._pass_flush(R, waiting, self.to_right)

    # -- what a message brings about -------------------------------------------------------------

    def _scan_and_insert(self, stream: int, block: Block, give: Give) -> None:
        """Scan the other stream's window for partners of a block, then insert it into its own."""
        start, meetings = perf_counter(), len(block) * self._join.segments[1 - stream].live
        for batch in self._join.join_and_store(stream, block):
            self.matched += batch.num_rows
            give(batch)
        seconds = perf_counter() - start
        self.busy += seconds
        self.scanned += meetings
        self.joined += len(block)
        self.received[stream] += len(block)
        self.cost.measure(seconds, meetings)
        self.arrived[stream] += 1
        if self._expired_early[stream]:
            self._expired_early[stream] -= 1
            self.expired[stream] += self._remove(stream, block)
            self._tell_neighbours()
        else:
            self.windows[stream].append(block)
            self.sizes[stream] += len(block)

    def _acknowledge_s(self) -> None:
        """Remove the copy of the oldest forwarded S block: phase two of forwarding [HSJ §4.2, Fig. 8].

        The left neighbour has received it, so whatever R comes from there after this message has met it already.
        """
        assert self.forwarded, "only what has been forwarded is acknowledged"
        block = self.windows[S].popleft()
        self._remove(S, block)
        self.forwarded -= 1
        self._copied -= len(block)

    def _expire(self, stream: int) -> None:
        """Remove the oldest block, whose window is over: the driver says so, at the last core [HSJ §4.4, Fig. 13].

        A block that has not come this far is removed when it arrives.
        """
        assert self._is_last(stream), "tuples expire at the exit of their stream"
        if not self.windows[stream]:
            self._expired_early[stream] += 1
            return
        block = self.windows[stream].popleft()
        self.sizes[stream] -= len(block)
        self.expired[stream] += self._remove(stream, block)
        self._tell_neighbours()

    # -- pieces ----------------------------------------------------------------------------------

    def _forwards(self, stream: int, waiting: int, following: HandshakeCore) -> bool:
        if not waiting:
            return False
        # what is on its way counts as if it had arrived: else a slow channel would be mistaken for an empty core
        there = following.sizes[stream] + self.sent[stream] - following.received[stream]
        return self._flushing[stream] or self._policy(self.sizes[stream] * self.weight, there * following.weight)

    def _count_sent(self, stream: int, block: Block) -> None:
        self.sizes[stream] -= len(block)
        self.sent[stream] += len(block)
        self._tell_neighbours()

    def _pass_flush(self, stream: int, waiting: int, to: Channel[Message]) -> bool:
        if not self._flushing[stream] or waiting or self.flushed[stream] or not to.room:
            return False
        to.send(Signal.FLUSH)
        self.flushed[stream] = True
        return True

    def _is_last(self, stream: int) -> bool:
        return (self.right if stream == R else self.left) is None

    def _remove(self, stream: int, block: Block) -> int:
        """Remove a block from its segment; how many tuples fewer are stored."""
        start, stored = perf_counter(), self._join.segments[stream].live
        self._join.remove(stream, block)
        self.busy += perf_counter() - start
        return stored - self._join.segments[stream].live

    def _write(self, stream: int, *, came: int | None = None, went: int | None = None) -> None:
        """Write down what has become of a stream here: after a message was sent, and before one is dropped."""
        before, stored = self.books[stream], self._join.segments[stream].live
        self.books[stream] = Book(
            before.came if came is None else came,
            before.went if went is None else went,
            stored - self._copied if stream == S else stored,
            self.expired[stream],
        )

    def _tell_neighbours(self) -> None:
        """There is less here now: a neighbour may want to forward."""
        for neighbour in (self.left, self.right):
            if neighbour is not None:
                neighbour.bell.ring()


class Link:
    """The two channels between neighbours."""

    def __init__(self, capacity: int, *, left: Bell, right: Bell) -> None:
        self.rightward: Channel[Message] = Channel(capacity, reader=right, writer=left)
        self.leftward: Channel[Message] = Channel(capacity, reader=left, writer=right)


class HandshakeChain:
    """The cores of a topology with the channels between them, and those of the driver at both ends [HSJ Fig. 12]."""

    def __init__(self, plan: Plan, topology: ChainTopology, *, capacity: int, driver: Bell) -> None:
        self.topology = topology
        self.cores = [HandshakeCore(plan, topology.policy) for _ in range(topology.cores)]
        for number_left, number_right in topology.links:
            left = self.cores[number_left] if number_left is not None else None
            right = self.cores[number_right] if number_right is not None else None
            link = Link(capacity, left=left.bell if left else driver, right=right.bell if right else driver)
            if left is not None:
                left.connect(Side.RIGHT, link, right)
            if right is not None:
                right.connect(Side.LEFT, link, left)

    def entrance(self, end: Side) -> Channel[Message]:
        """The channel by which the driver's messages enter at one end."""
        return self.cores[self.topology.core_at(end)].receives_from(end)

    def last(self, stream: int) -> HandshakeCore:
        """The core that a stream's tuples come to last."""
        return self.cores[self.topology.last(stream)]

    @property
    def is_flushed(self) -> bool:
        """Whether every tuple has passed all cores."""
        return all(self.last(stream).flushed[stream] for stream in STREAMS)

    def tally(self, stream: int) -> Tally:
        """Where the tuples of a stream are in the chain at one moment, though its cores may be at work."""
        cores = [self.cores[number] for number in self.topology.path(stream)]
        channels = [core.receives_from(self.topology.entry(stream)) for core in cores]
        while True:
            books = [core.books[stream] for core in cores]
            messages = [channel.messages() for channel in channels]
            sent = [inf, *(book.went for book in books)]
            # as long as nothing is fed the cores come to rest, so this cannot go on for ever
            is_whole = all(book.came <= went for book, went in zip(books, sent, strict=False))
            if is_whole and all(core.books[stream] is book for core, book in zip(cores, books, strict=True)):
                break
        on_the_way = [
            len(message)
            for own, book, went in zip(messages, books, sent, strict=False)
            for number, message in own
            if isinstance(message, Block) and book.came <= number < went
        ]
        return Tally(sum(on_the_way), sum(book.live for book in books), sum(book.expired for book in books))

    def weigh(self) -> None:
        """Let the policy take slow cores into account: what they hold weighs more."""
        for core, weight in zip(self.cores, relative_costs([core.cost for core in self.cores]), strict=True):
            core.weight = weight
