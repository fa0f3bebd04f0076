"""Ctrl-C, held back until a command can stop cleanly."""

from __future__ import annotations

import signal
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from types import FrameType, TracebackType
from typing import Self, TypeVar

_LOOK = 0.2  # seconds between two looks at whether the user has asked to stop

T = TypeVar("T")


class Interrupts:
    """Notes Ctrl-C and SIGTERM instead of stopping at once; `check` stops where nothing is left half done.

    On Spark it must be so: interrupted in the middle of a call, py4j loses its connection to the JVM.
    """

    def __enter__(self) -> Self:
        self._asked = False
        self._before = {which: signal.signal(which, self._note) for which in (signal.SIGINT, signal.SIGTERM)}
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        for which, handler in self._before.items():
            signal.signal(which, handler)

    def check(self) -> None:
        """Stop here if the user has asked for it meanwhile."""
        if self._asked:
            raise KeyboardInterrupt

    def wait_for(
        self, work: Callable[[], T], *, cancel: Callable[[], None], meanwhile: Callable[[], None] = lambda: None
    ) -> T:
        """Do the work on a thread of its own and give its result; if the user asks to stop, `cancel` ends it early.

        `meanwhile` is called now and then as long as the work goes on.
        """
        with ThreadPoolExecutor(1) as worker:
            done = worker.submit(work)
            try:
                while not wait([done], _LOOK).done:
                    self.check()
                    meanwhile()
            except KeyboardInterrupt:
                while not wait([done], _LOOK).done:  # again and again: what is to be cancelled may not have begun
                    cancel()
                raise
            return done.result()

    def _note(self, which: int, frame: FrameType | None) -> None:
        self._asked = True
