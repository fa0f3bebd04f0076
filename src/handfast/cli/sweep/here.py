"""A sweep on the threads of this process: without Spark, and without Java."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait

from handfast.cli.sweep.folder import SweepFolder
from handfast.cli.sweep.kinds import AnyConfiguration, measured


def run(configurations: Sequence[AnyConfiguration], folder: SweepFolder, cores: int, step: Callable[[], None]) -> None:
    """Run these configurations, so many at a time; `step` is called whenever one has been written, or may have been."""

    def work(one: AnyConfiguration) -> None:
        folder.write(one, measured(one))

    with ThreadPoolExecutor(cores) as threads:
        running = {threads.submit(work, one) for one in configurations}
        try:
            while running:
                done, running = wait(running, return_when=FIRST_COMPLETED)
                for each in done:
                    each.result()
                step()
        finally:  # after an error, or Ctrl-C: what has begun ends, and nothing new begins
            for each in running:
                each.cancel()
