"""Processes that can be killed while the tests live on."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from tests.engines.spark.crash_job import SOON

ROOT = Path(__file__).parents[3]


class Process:
    """A module that is run in a process of its own, with a session of its own: no child of it can hide."""

    def __init__(self, folder: Path, module: str, argument: Any) -> None:
        environment = os.environ | {"SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable}
        command = [sys.executable, "-m", module, json.dumps(argument)]
        self._log = folder / "log"
        with self._log.open("a") as log:
            self._driver = subprocess.Popen(
                command, cwd=ROOT, env=environment, stdout=log, stderr=log, start_new_session=True
            )

    def wait_for(self, paths: list[Path]) -> None:
        """Wait until all these files are there."""
        deadline = time.monotonic() + SOON
        while not all(path.exists() for path in paths):
            assert self._driver.poll() is None, f"The job ended before its time:\n{self._log.read_text()[-4000:]}"
            assert time.monotonic() < deadline, f"No {paths} in time:\n{self._log.read_text()[-4000:]}"
            time.sleep(0.02)

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

    def _members(self) -> list[int]:
        found = []
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit():
                try:
                    state, _, _, session = (entry / "stat").read_text().rpartition(")")[2].split()[:4]
                except (FileNotFoundError, ProcessLookupError):
                    continue
                if int(session) == self._driver.pid and state != "Z":
                    found.append(int(entry.name))
        return found
