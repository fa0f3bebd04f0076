"""The folder of a sweep: a Parquet file for each configuration, whole or not there at all."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from handfast.cli.sweep.kinds import CHAINS, AnyConfiguration, Kind
from handfast.errors import SpecError

_LOCK = ".lock"
_PART = ".part"  # of a file that is being written; the dot before its name hides it from whoever reads the folder


class SweepFolder:
    """Where the rows are. What is there is not run again."""

    def __init__(self, path: Path, kind: Kind = CHAINS) -> None:
        self.path = path
        self.kind = kind
        self.runs = path / kind.runs

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

    def has(self, configuration: AnyConfiguration) -> bool:
        """Whether this configuration has been run."""
        return self._file(configuration).exists()

    def write(self, configuration: AnyConfiguration, row: dict[str, Any]) -> None:
        """Write the row of a configuration; the file appears when it is whole."""
        part = self.runs / f".{configuration.name}{_PART}"
        pq.write_table(pa.Table.from_pylist([row], self.kind.schema), part)
        os.replace(part, self._file(configuration))

    def rows(self, configurations: Sequence[AnyConfiguration]) -> list[dict[str, Any]]:
        """The rows of these configurations, in their order."""
        return [pq.read_table(self._file(own), schema=self.kind.schema).to_pylist()[0] for own in configurations]

    def _file(self, configuration: AnyConfiguration) -> Path:
        return self.runs / f"{configuration.name}.parquet"
