"""The crew: threads for cores and for whoever else works. When one fails all stop, and the next call gets its error."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from threading import Thread, current_thread
from time import perf_counter
from typing import Protocol

from handfast.engines.local.channel import Bell
from handfast.engines.local.placement import pin
from handfast.errors import EngineError

Work = Callable[[], bool]  # does something, if there is anything to do


class Wakes(Protocol):
    """What a thread sleeps by."""

    def ring(self) -> None:
        """Wake the sleeper, or keep it from falling asleep."""
        ...

    def wait(self) -> None:
        """Sleep until someone has rung."""
        ...


class Crew:
    """Threads that work as long as there is something to do, and sleep until their bell rings."""

    def __init__(
        self,
        works: Sequence[Work],
        bells: Sequence[Wakes],
        driver: Bell,
        cpus: Sequence[int | None],
        names: Sequence[str] = (),
    ) -> None:
        self._bells = bells
        names = names or [f"handfast core {number}" for number in range(len(works))]
        self._driver = driver
        self._stopped = False
        self._error: BaseException | None = None
        self.idle = [0.0] * len(works)
        self._threads = [
            Thread(target=self._run, args=(number, work, cpu), name=name, daemon=True)
            for number, (work, cpu, name) in enumerate(zip(works, cpus, names, strict=True))
        ]
        try:
            for thread in self._threads:
                thread.start()
        except RuntimeError as error:
            self.stop()
            raise EngineError(
                f"The system cannot start a thread for every core: {error}; ask for fewer cores"
            ) from error
        except BaseException:  # Ctrl-C: nobody else knows of those that have started
            self.stop()
            raise

    def check(self) -> None:
        """Raise the error of a core that has failed."""
        if self._error is not None:
            raise self._error

    def stop(self) -> None:
        """Let every thread end, and wait for it."""
        self._stopped = True
        for bell in self._bells:
            bell.ring()
        for thread in self._threads:
            # a forgotten session may be collected in one of its own threads; one that is about to begin ends at once
            if thread.is_alive() and thread is not current_thread():
                thread.join()

    def wait_until(self, done: Callable[[], bool]) -> None:
        """Sleep until a condition holds, or a core fails."""
        while not done():
            self.check()
            self._driver.wait()
        self.check()

    def _run(self, number: int, work: Work, cpu: int | None) -> None:
        bell = self._bells[number]
        try:
            pin(cpu)
            while not self._stopped:
                if not work():
                    start = perf_counter()
                    bell.wait()
                    self.idle[number] += perf_counter() - start
        except BaseException as error:  # noqa: BLE001 — whatever it is, it must not vanish with its thread
            self._error = self._error or error
            self._stopped = True
            for other in self._bells:
                other.ring()
        finally:
            self._driver.ring()
