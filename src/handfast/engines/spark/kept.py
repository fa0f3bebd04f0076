"""The cores that a Python worker keeps for the next batch: as a cache, which is never needed and never trusted."""

from __future__ import annotations

from collections import OrderedDict
from typing import NamedTuple

from pyspark import TaskContext

from handfast.core.join_core import JoinCore


class Owner(NamedTuple):
    """Whose core it is.

    Attributes:
        query: The streaming query that it runs in; empty outside of Spark.
        plan: The digest of the plan.
        core: Its number.
    """

    query: str
    plan: str
    core: int


class Kept(NamedTuple):
    """A core as it was after a batch, and the digest of its manifest then."""

    digest: str
    core: JoinCore


class KeptCores:
    """The cores that ran last, twice as many as there ever were in one batch here: Spark may give a worker others.

    Of each owner only the last core is kept, and it is taken out while it runs: one whose task fails is gone.
    """

    def __init__(self) -> None:
        self._kept: OrderedDict[Owner, Kept] = OrderedDict()
        self._batch: tuple[str, str] = ("", "")
        self._ran: set[Owner] = set()  # in this batch
        self._most = 1

    def take(self, owner: Owner) -> Kept | None:
        """The core that was kept for an owner."""
        return self._kept.pop(owner, None)

    def keep(self, owner: Owner, kept: Kept) -> None:
        """Keep a core after its batch, and let go of those that ran longest ago, where they are too many."""
        batch = (owner.query, _local("streaming.sql.batchId"))
        if batch != self._batch:
            self._batch, self._ran = batch, set()
        self._ran.add(owner)
        self._most = max(self._most, len(self._ran))
        self._kept[owner] = kept
        while len(self._kept) > 2 * self._most:
            self._kept.popitem(last=False)

    def clear(self) -> None:
        """Keep nothing."""
        self._kept.clear()

    @property
    def cores(self) -> list[JoinCore]:
        """All that are kept."""
        return [kept.core for kept in self._kept.values()]


def owner_of(plan: str, core: int) -> Owner:
    """Whose core runs in this task."""
    return Owner(_local("sql.streaming.queryId"), plan, core)


def _local(name: str) -> str:
    task = TaskContext.get()
    return (task.getLocalProperty(name) or "") if task is not None else ""
