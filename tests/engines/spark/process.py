"""Processes that can be killed while the tests live on."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.engines.spark.crash_job import SOON

ROOT = Path(__file__).parents[3]


@dataclass(frozen=True)
class Member:
    """A process that the job has started, or the job's own."""

    parent: int
    command: str


class Process:
    """A module that is run in a process of its own, with a session of its own: no child of it can hide."""

    def __init__(self, folder: Path, module: str, argument: Any) -> None:
        environment = os.environ | {"SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable}
        command = [sys.executable, "-m", module, json.dumps(argument)]
        self._log = folder / "log"
        with self._log.open("a") as log:
            self._driver = subprocess.Popen(
                command,
                cwd=ROOT,
                env=environment,
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                start_new_session=True,
                text=True,
            )

    @property
    def is_alive(self) -> bool:
        return self._driver.poll() is None

    def tell(self, argument: Any) -> None:
        """Send something to the process's standard input, as a line of JSON."""
        assert self._driver.stdin is not None
        print(json.dumps(argument), file=self._driver.stdin, flush=True)

    def wait_for(self, paths: list[Path]) -> None:
        """Wait until all these files are there."""
        self.wait_until(lambda: all(path.exists() for path in paths), f"{paths}")

    def wait_until(self, is_so: Callable[[], bool], what: str) -> None:
        """Wait until something is so, while the job runs."""
        deadline = time.monotonic() + SOON
        while not is_so():
            assert self._driver.poll() is None, f"The job ended before its time:\n{self._log.read_text()[-4000:]}"
            assert time.monotonic() < deadline, f"No {what} in time:\n{self._log.read_text()[-4000:]}"
            time.sleep(0.01)

    def finish(self) -> None:
        """Wait until the job has run to its end."""
        try:
            assert self._driver.wait(SOON) == 0, self._log.read_text()[-4000:]
        finally:
            self.kill()

    def kill(self) -> None:
        """Kill −9 the driver, its JVM and all Python workers at once."""
        while members := self._members():
            for pid in members:
                with suppress(ProcessLookupError):  # it is gone, as wanted
                    os.kill(pid, signal.SIGKILL)
            self._driver.poll()

    def kill_one(self, find: Callable[[Mapping[int, Member]], Collection[int]], chance: random.Random) -> int:
        """Kill −9 one of those that `find` names among the members, as soon as there is one; its process id."""
        killed: list[int] = []

        def kill() -> bool:
            found = find(self._members())
            if found:
                pid = chance.choice(sorted(found))
                with suppress(ProcessLookupError):  # it has ended just now: another one
                    os.kill(pid, signal.SIGKILL)
                    killed.append(pid)
            return bool(killed)

        self.wait_until(kill, "process to kill")
        self.wait_until(lambda: killed[0] not in self._members(), "end of what was killed")
        return killed[0]

    def _members(self) -> dict[int, Member]:
        found = {}
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit():
                try:
                    state, parent, _, session = (entry / "stat").read_text().rpartition(")")[2].split()[:4]
                    command = (entry / "cmdline").read_text()
                except (FileNotFoundError, ProcessLookupError):
                    continue
                if int(session) == self._driver.pid and state != "Z":
                    found[int(entry.name)] = Member(int(parent), command.replace("\0", " "))
        return found


def executors(members: Mapping[int, Member]) -> list[int]:
    """The JVMs in which a cluster's tasks run."""
    return [pid for pid, member in members.items() if "CoarseGrainedExecutorBackend" in member.command]


def workers(members: Mapping[int, Member]) -> list[int]:
    """The Python processes in which tasks run: the children of Spark's Python daemons, which are copies of them."""
    daemons = {pid for pid, member in members.items() if "spark.daemon" in member.command}
    return [pid for pid in daemons if members[pid].parent in daemons]
