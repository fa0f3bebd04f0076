"""A sweep as a Spark job: one task for each configuration, which writes its own file."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from handfast.cli.interrupts import Interrupts
from handfast.cli.sweep.folder import SweepFolder
from handfast.cli.sweep.kinds import AnyConfiguration, kind_named, measured
from handfast.engines.spark import embedded

if TYPE_CHECKING:
    import pyarrow as pa


def run(configurations: Sequence[AnyConfiguration], folder: SweepFolder, cores: int, step: Callable[[], None]) -> None:
    """Run these configurations, so many at a time; `step` is called whenever one has been written, or may have been."""
    with (
        tempfile.TemporaryDirectory(prefix="handfast-sweep-", ignore_cleanup_errors=True) as home,
        Interrupts() as interrupts,
        embedded.session(cores, Path(home), interrupts.check) as spark,
    ):
        # as many partitions as numbers: each task has one
        numbers = spark.range(0, len(configurations), 1, len(configurations))
        job = numbers.mapInArrow(
            partial(_task, tuple(configurations), folder.path.resolve(), folder.kind.runs), "id long"
        )
        interrupts.wait_for(job.count, cancel=spark.sparkContext.cancelAllJobs, meanwhile=step)


def _task(
    configurations: tuple[AnyConfiguration, ...], path: Path, runs: str, batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """What a worker does: run the configurations with these numbers."""
    folder = SweepFolder(path, kind_named(runs))
    for batch in batches:
        for number in batch.column("id").to_pylist():
            folder.write(configurations[number], measured(configurations[number]))
        yield batch
