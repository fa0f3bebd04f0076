"""The bell of a row: a pipe that its sleeper reads from, so that machine code wakes Python, and Python machine code."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress

from handfast.engines.local.native.loop import LOOP
from handfast.engines.local.native.memory import BELL, RETURN, Words
from handfast.errors import EngineError


class RowBell:
    """Wakes the one thread that works by a row. Who sends by a ring wakes it without this, and only if it sleeps."""

    def __init__(self, row: Words) -> None:
        self._row = row
        self._reads, self._writes = os.pipe()
        os.set_blocking(self._writes, False)  # what is not read in time is not needed
        row[BELL], row[BELL + 1] = self._writes, self._reads

    def ring(self) -> None:
        """Wake the sleeper, and let it go back to Python."""
        self._row[RETURN] = 1
        with suppress(BlockingIOError, OSError):
            os.write(self._row[BELL], b"!")

    def wait(self) -> None:
        """Sleep until someone has rung, or has sent something since `about_to_wait`; not at all once it is closed."""
        # a session may be collected in one of its own threads, which then comes here: the file may be another's by now
        if self._row[BELL + 1] >= 0:
            os.read(self._reads, 1)
        self.awake()

    def about_to_wait(self) -> None:
        """Say that there is nothing to do: before a last look, so that nothing that comes meanwhile is overlooked."""
        LOOP.fall_asleep(self._row)

    def awake(self) -> None:
        """Say that there is no need to wake anyone."""
        LOOP.stay_awake(self._row)

    def close(self) -> None:
        """Give the pipe back; nobody may sleep any more."""
        if self._row[BELL] >= 0:
            self._row[BELL] = self._row[BELL + 1] = -1
            os.close(self._reads)
            os.close(self._writes)


def bells_of(rows: Sequence[Words]) -> list[RowBell]:
    """A bell for every row; none of their files is left open if there are not enough for all."""
    bells: list[RowBell] = []
    try:
        for row in rows:
            bells.append(RowBell(row))
    except OSError as error:
        close_all(bells)
        raise EngineError(f"The system cannot open a pipe for every core: {error}; ask for fewer cores") from error
    return bells


def close_all(bells: Sequence[RowBell]) -> None:
    """Give back what all of these threads slept by."""
    for bell in bells:
        bell.close()
