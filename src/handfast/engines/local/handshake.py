"""The handshake chain: R walks right, S walks left, and every two tuples meet at exactly one core [HSJ §4.2, Fig. 9].

A core's turns are single steps, so that threads can take them as they come, and a test in any order it likes.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import pairwise
from math import inf
from time import perf_counter

import pyarrow as pa

from handfast.core.join_core import JoinCore
from handfast.engines.local.balance import Balance, Cost, relative_costs
from handfast.engines.local.channel import Bell, Channel
from handfast.engines.local.cores import Tally
from handfast.flow.block import Block
from handfast.plan import Plan

R, S = 0, 1


class Signal(Enum):
    """Messages that are no tuples."""

    ACK = "acknowledgement"  # the oldest forwarded block has arrived, or has left its window: remove it
    FLUSH = "flush"  # nothing follows: forward all there is


Message = Block | Signal
Give = Callable[[pa.RecordBatch], None]


@dataclass(frozen=True, slots=True)
class Book:
    """What a core says of one stream between two turns: a new one for every change, so that its numbers fit together.

    Attributes:
        came: The number after that of the last block that came, in the channel it came by.
        went: Likewise of the last block that was passed on, in the channel it left by.
        live: How many tuples the core stores, but for copies of those it has passed on.
        expired: How many it has let go because their window is over.
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
        sizes: Of both streams, how many tuples are here that have not been forwarded: what the balance goes by.
        books: Of both streams, what can be read of them while the core works.
    """

    def __init__(self, plan: Plan, balance: Balance) -> None:
        self._join = JoinCore(plan)
        self._balance = balance
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
        self.scanned = self.matched = self.met = 0
        self.busy = 0.0
        self.flushed = [False, False]  # of both streams: nothing is to come, and nothing is left to forward
        self._flushing = [False, False]
        self._early = [0, 0]  # removals that came before the blocks they are for

    def connect(self, *, left: Link, right: Link) -> None:
        """Join the channels to both neighbours."""
        self.from_left, self.to_left = left.rightward, left.leftward
        self.from_right, self.to_right = right.leftward, right.rightward

    # -- turns -----------------------------------------------------------------------------------

    def process_left(self, give: Give) -> bool:
        """Take a message from the left: a block of R, or the acknowledgement of one of S."""
        if not len(self.from_left):
            return False
        message = self.from_left.first
        if isinstance(message, Block):
            self._meet(R, message, give)
            self._write(R, came=self.from_left.taken + 1)
        elif message is Signal.ACK:
            self._remove(S)
            self._write(S)
        else:
            self._flushing[R] = True
        self.from_left.drop_first()
        return True

    def process_right(self, give: Give) -> bool:
        """Take a message from the right: a block of S, which is acknowledged; or, of the driver, a removal of R."""
        if not len(self.from_right) or not self.to_right.room:
            return False  # without room for the acknowledgement the block has to wait
        message = self.from_right.first
        if isinstance(message, Block):
            self._meet(S, message, give)
            self._write(S, came=self.from_right.taken + 1)
            if self.right is not None:
                self.to_right.send(Signal.ACK)
        elif message is Signal.ACK:
            self._remove(R)
            self._write(R)
        else:
            self._flushing[S] = True
        self.from_right.drop_first()
        return True

    def forward_s(self) -> bool:
        """Send the oldest block of S left, if the balance wants it; a copy stays until it is acknowledged."""
        waiting = len(self.windows[S]) - self.forwarded
        if self.left is None:
            self.flushed[S] = self._flushing[S]
            return False
        if self._forwards(S, waiting, self.left) and self.to_left.room:
            block = self.windows[S][self.forwarded]
            self.forwarded += 1
            self._copied += len(block)
            self._sent(S, block)
            self.to_left.send(block)
            self._write(S, went=self.to_left.sent)
            return True
        return self._pass_flush(S, waiting, self.to_left)

    def forward_r(self) -> bool:
        """Send the oldest block of R right, if the balance wants it; it is removed at once."""
        waiting = len(self.windows[R])
        if self.right is None:
            self.flushed[R] = self._flushing[R]
            return False
        # one place is left free for acknowledgements: R must not keep S waiting
        if self._forwards(R, waiting, self.right) and self.to_right.room > 1:
            block = self.windows[R].popleft()
            self._let_go(R, block)
            self._sent(R, block)
            self.to_right.send(block)
            self._write(R, went=self.to_right.sent)
            return True
        return self._pass_flush(R, waiting, self.to_right)

    # -- pieces ----------------------------------------------------------------------------------

    def _forwards(self, stream: int, waiting: int, neighbour: HandshakeCore) -> bool:
        if not waiting:
            return False
        # what is on its way counts as if it had arrived: else a slow channel would be mistaken for an empty core
        there = neighbour.sizes[stream] + self.sent[stream] - neighbour.received[stream]
        return self._flushing[stream] or self._balance.forwards(
            self.sizes[stream] * self.weight, there * neighbour.weight
        )

    def _sent(self, stream: int, block: Block) -> None:
        self.sizes[stream] -= len(block)
        self.sent[stream] += len(block)
        self._tell_neighbours()

    def _pass_flush(self, stream: int, waiting: int, to: Channel[Message]) -> bool:
        if not self._flushing[stream] or waiting or self.flushed[stream] or not to.room:
            return False
        to.send(Signal.FLUSH)
        self.flushed[stream] = True
        return True

    def _meet(self, stream: int, block: Block, give: Give) -> None:
        """Scan the other window for partners of a block, then insert it."""
        start, meetings = perf_counter(), len(block) * self._join.segments[1 - stream].live
        for batch in self._join.join_and_store(stream, block):
            self.matched += batch.num_rows
            give(batch)
        seconds = perf_counter() - start
        self.busy += seconds
        self.scanned += meetings
        self.met += len(block)
        self.received[stream] += len(block)
        self.cost.measure(seconds, meetings)
        self.arrived[stream] += 1
        if self._early[stream] and self._is_last(stream):
            self._early[stream] -= 1
            self.expired[stream] += self._let_go(stream, block)
            self._tell_neighbours()
        else:
            self.windows[stream].append(block)
            self.sizes[stream] += len(block)

    def _is_last(self, stream: int) -> bool:
        return (self.right if stream == R else self.left) is None

    def _remove(self, stream: int) -> None:
        """Remove the oldest block: the left neighbour has it now, or the driver says that its window is over."""
        if not self.windows[stream]:
            assert self._is_last(stream), "only the driver removes what has not come yet"
            self._early[stream] += 1
            return
        block = self.windows[stream].popleft()
        gone = self._let_go(stream, block)
        if stream == S and self.left is not None:
            self.forwarded -= 1  # it was sent, and no longer counts
            self._copied -= len(block)
        else:
            self.sizes[stream] -= len(block)
            self.expired[stream] += gone
        self._tell_neighbours()

    def _let_go(self, stream: int, block: Block) -> int:
        """Let a block go; how many tuples fewer are stored."""
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
    """The cores in a row, and the two links of their driver at the ends [HSJ Fig. 12]."""

    def __init__(self, plan: Plan, cores: int, balance: Balance, *, capacity: int, driver: Bell) -> None:
        self.cores = [HandshakeCore(plan, balance) for _ in range(cores)]
        bells = [driver, *(core.bell for core in self.cores), driver]
        self.links = [Link(capacity, left=left, right=right) for left, right in pairwise(bells)]
        for number, core in enumerate(self.cores):
            core.left = self.cores[number - 1] if number else None
            core.right = self.cores[number + 1] if number + 1 < cores else None
            core.connect(left=self.links[number], right=self.links[number + 1])

    @property
    def entries(self) -> tuple[Channel[Message], Channel[Message]]:
        """Where R and S enter: the left end and the right end."""
        return self.links[0].rightward, self.links[-1].leftward

    @property
    def is_flushed(self) -> bool:
        """Whether every tuple has walked past all cores."""
        return self.cores[-1].flushed[R] and self.cores[0].flushed[S]

    def tally(self, stream: int) -> Tally:
        """Where the tuples of a stream are in the chain at one moment, though its cores may be at work."""
        cores = self.cores if stream == R else self.cores[::-1]
        channels = [core.from_left if stream == R else core.from_right for core in cores]
        while True:
            books = [core.books[stream] for core in cores]
            held = [channel.held() for channel in channels]
            sent = [inf, *(book.went for book in books)]
            # as long as nothing is fed the cores come to rest, so this cannot go on for ever
            is_whole = all(book.came <= went for book, went in zip(books, sent, strict=False))
            if is_whole and all(core.books[stream] is book for core, book in zip(cores, books, strict=True)):
                break
        walking = [
            len(message)
            for own, book, went in zip(held, books, sent, strict=False)
            for number, message in own
            if isinstance(message, Block) and book.came <= number < went
        ]
        return Tally(sum(walking), sum(book.live for book in books), sum(book.expired for book in books))

    def weigh(self) -> None:
        """Let the balance know which cores are slow."""
        for core, weight in zip(self.cores, relative_costs([core.cost for core in self.cores]), strict=True):
            core.weight = weight


def turns(core: HandshakeCore, give: Give) -> Sequence[Callable[[], bool]]:
    """All that a core can do, each as a step that says whether there was anything to do."""
    return (
        lambda: core.process_left(give),
        lambda: core.process_right(give),
        core.forward_s,
        core.forward_r,
    )
