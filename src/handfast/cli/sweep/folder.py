"""The folder of a sweep: a Parquet file for each configuration, whole or not there at all."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from handfast.cli.sweep.grid import Configuration
from handfast.cli.sweep.measure import SCHEMA
from handfast.errors import SpecError

_RUNS = "runs"
_LOCK = ".lock"
_PART = ".part"  # of a file that is being written; the dot before its name hides it from whoever reads the folder


class SweepFolder:
    """Where the rows are. What is there is not run again."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.runs = path / _RUNS

    @contextmanager
    def taken(self) -> Iterator[None]:
        """Make the folder, keep other sweeps out of it, and remove what one that was killed has left in it."""
        try:
            self.runs.mkdir(parents=True, exist_ok=True)
            lock = (self.path / _LOCK).open("w")
        except OSError as error:
            raise SpecError(
                f"The folder {self.path} cannot be made: {error.strerror}; choose another one with --out"
            ) from None
        with lock:  # the system lets go of it even if this process is killed
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise SpecError(
                    f"Another sweep writes to {self.path}; wait for it, or choose another folder with --out"
                ) from None
            for left in self.runs.glob(f".*{_PART}"):
                left.unlink()
            yield

    def has(self, configuration: Configuration) -> bool:
        """Whether this configuration has been run."""
        return self._file(configuration).exists()

    def write(self, configuration: Configuration, row: dict[str, Any]) -> None:
        """Write the row of a configuration; the file appears when it is whole."""
        part = self.runs / f".{configuration.name}{_PART}"
        pq.write_table(pa.Table.from_pylist([row], SCHEMA), part)
        os.replace(part, self._file(configuration))

    def rows(self, configurations: tuple[Configuration, ...]) -> list[dict[str, Any]]:
        """The rows of these configurations, in their order."""
        return [pq.read_table(self._file(own), schema=SCHEMA).to_pylist()[0] for own in configurations]

    def _file(self, configuration: Configuration) -> Path:
        return self.runs / f"{configuration.name}.parquet"
