"""What a Python worker keeps from task to task: cores, as a cache; and its modules, out of the garbage collections."""

from __future__ import annotations

import gc
import sys
from types import ModuleType, SimpleNamespace

import pytest

from handfast.core.join_core import JoinCore
from handfast.engines.spark import kept, residents
from handfast.engines.spark.kept import Kept, KeptCores, Owner
from tests.engines.spark.driven import plan


class Task:
    """A task of a streaming query's batch."""

    def __init__(self, batch: int) -> None:
        self._properties = {"sql.streaming.queryId": "q", "streaming.sql.batchId": str(batch)}

    def getLocalProperty(self, name: str) -> str | None:
        return self._properties.get(name)


def run_in(monkeypatch: pytest.MonkeyPatch, batch: int) -> None:
    monkeypatch.setattr(kept, "TaskContext", SimpleNamespace(get=lambda: Task(batch)))


def test_a_worker_keeps_twice_as_many_cores_as_it_ran_in_one_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    cores, core = KeptCores(), JoinCore(plan("range"))
    for batch, number in enumerate([0, 1, 2]):  # one in each batch
        run_in(monkeypatch, batch)
        cores.keep(kept.owner_of("p", number), Kept(str(number), core))
    assert cores.take(Owner("q", "p", 0)) is None and len(cores.cores) == 2
    for number in range(4):  # four in one batch
        cores.keep(kept.owner_of("p", number), Kept(str(number), core))
    run_in(monkeypatch, 3)
    for number in range(4, 9):
        cores.keep(kept.owner_of("p", number), Kept(str(number), core))
    assert len(cores.cores) == 9


def test_of_an_owner_the_last_core_is_kept_and_taken_once() -> None:
    cores, core, owner = KeptCores(), JoinCore(plan("range")), Owner("q", "p", 0)
    cores.keep(owner, Kept("before", core))
    cores.keep(owner, Kept("after", core))
    assert cores.take(owner) == Kept("after", core)
    assert cores.take(owner) is None


def test_modules_are_left_out_of_collections_once_when_they_have_come(monkeypatch: pytest.MonkeyPatch) -> None:
    freezes: list[int] = []
    monkeypatch.setattr(residents, "_known", set())
    monkeypatch.setattr(gc, "freeze", lambda: freezes.append(1))
    residents.settle()
    assert not freezes, "this is no worker of Spark"
    monkeypatch.setattr(residents, "TaskContext", SimpleNamespace(get=lambda: Task(0)))
    residents.settle()
    residents.settle()
    assert len(freezes) == 1
    monkeypatch.setitem(sys.modules, "a_module_that_a_later_task_imports", ModuleType("late"))
    residents.settle()
    assert len(freezes) == 2
