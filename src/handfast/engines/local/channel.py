"""Channels between neighbours: bounded FIFOs with one writer and one reader each, and the bells that wake them."""

from __future__ import annotations

from collections import deque
from queue import SimpleQueue
from typing import Generic, TypeVar

T = TypeVar("T")


class Bell:
    """Wakes one thread. No ring is lost: a thread that is awake hears it before it sleeps again."""

    def __init__(self) -> None:
        self._rung: SimpleQueue[bool] = SimpleQueue()

    def ring(self) -> None:
        """Wake the sleeper, or keep it from falling asleep."""
        # a token that is still there was put before the change and will be taken after it: then the change is seen
        if self._rung.empty():
            self._rung.put(True)

    def wait(self) -> None:
        """Sleep until someone has rung since the last time."""
        self._rung.get()


class Channel(Generic[T]):
    """A FIFO of messages. Its writer looks for room before it sends; its reader is woken by what comes."""

    def __init__(self, capacity: int, *, reader: Bell, writer: Bell) -> None:
        self._capacity = capacity
        self._reader = reader
        self._writer = writer
        self._messages: deque[tuple[int, T]] = deque()  # each with its number
        self.sent = self.taken = 0

    def __len__(self) -> int:
        return len(self._messages)

    @property
    def room(self) -> int:
        """How many messages can be sent now."""
        return self._capacity - len(self._messages)

    def send(self, message: T) -> None:
        """Put a message behind the others."""
        assert self.room > 0, "a full channel stalls its writer"
        self._messages.append((self.sent, message))
        self.sent += 1
        self._reader.ring()

    @property
    def first(self) -> T:
        """The oldest message. It stays here, where it is counted, until its reader is done with it."""
        return self._messages[0][1]

    def drop_first(self) -> None:
        """Let the oldest message go: its reader is done with it."""
        self._messages.popleft()
        self.taken += 1
        self._writer.ring()

    def messages(self) -> list[tuple[int, T]]:
        """The messages that are here at one moment, each with its number."""
        return list(self._messages)
