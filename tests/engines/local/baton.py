"""Real threads that run one at a time: whoever has the baton. It is passed on, by a seed, at every touch of a queue."""

from __future__ import annotations

import random
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from handfast.engines.local import chain_driver, chains, channel, crew, low_latency, merger

_MOST_STEPS = 60_000  # many times what any run takes


class Stuck(AssertionError):
    """Everyone sleeps and nobody is left to wake them, or there is no end to it."""


class _Runner:
    """A thread that takes part: it runs when it is let go, and can be chosen when it is ready."""

    def __init__(self) -> None:
        self.turn = threading.Semaphore(0)
        self.is_ready: Callable[[], bool] | None = None
        self.weight = 1


class Baton:
    """Passed between threads. Now some are favoured, now others left out: then queues fill, and bells ring in vain."""

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance
        self._holder = _Runner()
        self._runners = [self._holder]  # the thread that makes the baton has it
        self._steps = 0
        self._spell = chance.choice((5, 40, 400))  # steps for which the same threads are favoured
        self.is_broken = False

    def switch(self) -> None:
        """Let anyone go on, perhaps the caller."""
        if not self.is_broken:
            self._pass_on()

    def wait(self, is_ready: Callable[[], bool]) -> None:
        """Let others go on until something is so."""
        if not self.is_broken:
            self._holder.is_ready = is_ready
            self._pass_on()
            self._holder.is_ready = None
        elif not is_ready():
            raise Stuck

    def enter(self) -> _Runner:
        """Let a new thread take part."""
        runner = _Runner()
        self._runners.append(runner)
        return runner

    def leave(self, runner: _Runner) -> None:
        """The caller's thread is over."""
        self._runners.remove(runner)
        if not self.is_broken:
            self._let_go(self._next())

    def _pass_on(self) -> None:
        me, chosen = self._holder, self._next()
        if chosen is not me:
            self._let_go(chosen)
            me.turn.acquire()
        if self.is_broken:
            raise Stuck

    def _let_go(self, chosen: _Runner | None) -> None:
        if chosen is not None:
            self._holder = chosen
            chosen.turn.release()

    def _next(self) -> _Runner | None:
        self._steps += 1
        if self._steps % self._spell == 1:
            for runner in self._runners:
                runner.weight = self._chance.choice((0, 1, 1, 8))
        ready = [runner for runner in self._runners if runner.is_ready is None or runner.is_ready()]
        if not ready or self._steps > _MOST_STEPS:
            self.stop()
            return None
        weights = [runner.weight for runner in ready]
        return self._chance.choices(ready, weights if any(weights) else None)[0]

    def stop(self) -> None:
        """Let everyone run as they like, and those that sleep fail."""
        self.is_broken = True
        for runner in self._runners:
            runner.turn.release()


@contextmanager
def by_turns(chance: random.Random, *, capacity: int, rows: int) -> Iterator[Baton]:
    """Channels, bells and crews are such that their threads take turns; channels hold little, blocks are small."""
    baton = Baton(chance)

    class Tokens:
        """Stands for the queue of a bell."""

        def __init__(self) -> None:
            self._held = 0

        def empty(self) -> bool:
            baton.switch()
            return not self._held

        def put(self, _: Any) -> None:
            self._held += 1
            baton.switch()

        def get(self) -> None:
            baton.wait(lambda: self._held > 0)
            self._held -= 1

    class Shared(deque[Any]):
        """Stands for a queue between two threads."""

        def __len__(self) -> int:
            baton.switch()
            return super().__len__()

        def __iter__(self) -> Iterator[Any]:
            baton.switch()
            return iter(list(super().__iter__()))  # all at one moment, as a deque is copied

        def append(self, message: Any) -> None:
            baton.switch()
            super().append(message)

        def popleft(self) -> Any:
            baton.switch()
            return super().popleft()

    class Thread(threading.Thread):
        def start(self) -> None:
            self._runner = baton.enter()
            super().start()

        def run(self) -> None:
            self._runner.turn.acquire()
            try:
                super().run()
            finally:
                baton.leave(self._runner)

        def join(self, timeout: float | None = None) -> None:
            if not baton.is_broken:
                baton.wait(lambda: self._runner not in baton._runners)
            super().join(timeout)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(channel, "SimpleQueue", Tokens)
        patch.setattr(crew, "Thread", Thread)
        patch.setattr(chains, "why_python", lambda plan: "its threads take turns")  # machine code passes no baton on
        for module in (channel, chain_driver, low_latency, merger):
            patch.setattr(module, "deque", Shared)
        for module in (chain_driver, low_latency):
            patch.setattr(module, "_CAPACITY", capacity)
        patch.setattr(chain_driver, "_ROWS", rows)
        driver = chain_driver.ChainDriver
        patch.setattr(chains, "ChainDriver", lambda plan, topology, _: driver(plan, topology, rows))
        try:
            yield baton
        finally:
            baton.stop()
