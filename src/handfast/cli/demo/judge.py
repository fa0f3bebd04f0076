"""The verdict: the oracle at work in a process of its own, and its matches compared with Spark's."""

from __future__ import annotations

import signal
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing import get_context
from multiprocessing.connection import Connection
from time import perf_counter
from types import TracebackType
from typing import Self

from handfast.cli.demo.scenario import Scenario
from handfast.errors import EngineError
from handfast.judge import oracle
from handfast.judge.rows import Values, multiset, tables_of

_LOOK = 0.2  # seconds between two looks at whether the user has asked to stop


@dataclass(frozen=True, slots=True)
class Judged:
    """What the oracle says, and how long it took."""

    matches: list[Values]
    seconds: float


@dataclass(frozen=True, slots=True)
class Verdict:
    """The difference of two multisets of matches."""

    missing: list[Values]
    extra: list[Values]

    @property
    def equal(self) -> bool:
        return not self.missing and not self.extra


class Judge:
    """The oracle, in a process of its own: it is slow and plain Python, and Spark runs meanwhile."""

    def __init__(self, scenario: Scenario) -> None:
        context = get_context("spawn")
        self._receiver, sender = context.Pipe(duplex=False)
        self._process = context.Process(target=_judge, args=(scenario, sender), daemon=True)
        # Ctrl-C in a terminal reaches every process; this one, ignoring it from birth, is ended by `__exit__` instead.
        before = signal.signal(signal.SIGINT, signal.SIG_IGN)
        try:
            self._process.start()
        finally:
            signal.signal(signal.SIGINT, before)
        sender.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._process.terminate()
        self._process.join()
        self._receiver.close()

    def wait(self, check_interrupts: Callable[[], None]) -> Judged:
        """The oracle's matches, when it has them all; meanwhile `check_interrupts` is called again and again."""
        while not self._receiver.poll(_LOOK):
            check_interrupts()
        try:
            judged = self._receiver.recv()
        except EOFError:
            self._process.join()
            raise EngineError(f"The oracle's process ended with exit code {self._process.exitcode}") from None
        assert isinstance(judged, Judged)
        return judged


def judge(scenario: Scenario) -> list[Values]:
    """All matches of the scenario's rows, by the definition."""
    tables = {name: scenario.workload.table(name, 0, scenario.rows) for name in scenario.spec.names}
    return oracle.result(scenario.bound, tables_of(tables))


def compare(found: list[Values], expected: list[Values]) -> Verdict:
    """What is missing in `found`, and what is in it too often."""
    ours, right = multiset(found), multiset(expected)
    return Verdict(list((right - ours).elements()), list((ours - right).elements()))


def _judge(scenario: Scenario, sender: Connection) -> None:
    start = perf_counter()
    matches = judge(scenario)
    sender.send(Judged(matches, perf_counter() - start))
