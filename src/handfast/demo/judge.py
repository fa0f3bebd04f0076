"""The verdict: the oracle at work in a process of its own, and its matches compared with Spark's."""

from __future__ import annotations

import signal
from collections import Counter
from dataclasses import dataclass
from multiprocessing import get_context
from multiprocessing.connection import Connection
from time import perf_counter
from types import TracebackType
from typing import Any, Self

import pyarrow as pa

from handfast import oracle
from handfast.demo.scenario import Scenario
from handfast.errors import EngineError

Match = tuple[Any, ...]  # the values of one row of the result, times in microseconds


@dataclass(frozen=True, slots=True)
class Judged:
    """What the oracle says, and how long it took."""

    matches: list[Match]
    seconds: float


@dataclass(frozen=True, slots=True)
class Verdict:
    """The difference of two multisets of matches."""

    missing: list[Match]
    extra: list[Match]

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

    def wait(self) -> Judged:
        """The oracle's matches, when it has them all."""
        try:
            judged = self._receiver.recv()
        except EOFError:
            self._process.join()
            raise EngineError(f"The oracle's process ended with exit code {self._process.exitcode}") from None
        assert isinstance(judged, Judged)
        return judged


def judge(scenario: Scenario) -> list[Match]:
    """All matches of the scenario's rows, by the definition."""
    tables = {name: scenario.workload.table(name, 0, scenario.rows) for name in scenario.spec.names}
    return oracle.result(scenario.bound, {name: _times_as_micros(table).to_pylist() for name, table in tables.items()})


def as_matches(result: pa.Table) -> list[Match]:
    """Spark's result as the oracle writes it."""
    columns = [column.to_pylist() for column in _times_as_micros(result).columns]
    return list(zip(*columns, strict=True))


def compare(found: list[Match], expected: list[Match]) -> Verdict:
    """What is missing in `found`, and what is in it too often."""
    ours, right = Counter(found), Counter(expected)
    return Verdict(list((right - ours).elements()), list((ours - right).elements()))


def _judge(scenario: Scenario, sender: Connection) -> None:
    start = perf_counter()
    matches = judge(scenario)
    sender.send(Judged(matches, perf_counter() - start))


def _times_as_micros(table: pa.Table) -> pa.Table:
    """The table with its times as the oracle reads them; Spark's and the workload's are in microseconds already."""
    return table.cast(
        pa.schema(
            [field.with_type(pa.int64()) if pa.types.is_timestamp(field.type) else field for field in table.schema]
        )
    )
