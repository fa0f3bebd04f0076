"""`handfast sweep`: runs what is not in the folder yet, then shows the best circuits and draws them all."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol

from handfast.cli.screen import Screen
from handfast.cli.sweep import picture
from handfast.cli.sweep.folder import SweepFolder
from handfast.cli.sweep.grid import Grid
from handfast.cli.sweep.kinds import AnyConfiguration, kind_of
from handfast.cli.sweep.ring_grid import RingGrid
from handfast.errors import SpecError

SPARK, LOCAL = ENGINES = ("spark", "local")
_MOST_CORES = 1024
_PICTURE = "sweep.png"


class Run(Protocol):
    """What runs configurations and writes each into the folder, so many at a time, and calls `step` as it goes."""

    def __call__(
        self, configurations: Sequence[AnyConfiguration], folder: SweepFolder, cores: int, step: Callable[[], None]
    ) -> None: ...


def sweep(grid: Grid | RingGrid, out: Path, *, engine: str, cores: int, screen: Screen) -> list[dict[str, Any]]:
    """Run a grid, and give the rows of all its configurations."""
    if not 1 <= cores <= _MOST_CORES:
        raise SpecError(f"A sweep runs on 1 to {_MOST_CORES:,} cores, not {cores!r}")
    run = _runner(engine)
    kind = kind_of(grid)
    folder = SweepFolder(out, kind)
    wanted: Sequence[AnyConfiguration] = grid.configurations
    with folder.taken():
        missing = [own for own in wanted if not folder.has(own)]
        there = len(wanted) - len(missing)
        screen.say(f"{len(wanted):,} configurations" + (f", {there:,} of them already in {out}" if there else ""))
        if missing:
            _run(run, missing, folder, cores, screen)
        rows = folder.rows(wanted)
        picture.draw(out / _PICTURE, rows, grid.varied, kind.takes)
    screen.say("for each input the circuit with the fewest cycles:")
    screen.table(kind.headings, [kind.cells(row) for row in kind.best(rows)], boxed=False)
    screen.say(f"every row is in {folder.runs}/, drawn in {out / _PICTURE}")
    return rows


def _run(run: Run, missing: list[AnyConfiguration], folder: SweepFolder, cores: int, screen: Screen) -> None:
    with screen.runs(len(missing), "what is there stays: stopped or killed, the sweep goes on from it") as show:

        def step() -> None:
            show(sum(map(folder.has, missing)))

        run(missing, folder, cores, step)
        step()


def _runner(engine: str) -> Run:
    """What runs the configurations on an engine; nothing of the other one is imported."""
    if engine == LOCAL:
        from handfast.cli.sweep import here

        return here.run
    if engine != SPARK:
        raise SpecError(f"A sweep's engine is one of {', '.join(map(repr, ENGINES))}, not {engine!r}")
    from handfast.engines.spark import embedded

    embedded.check("A sweep on Spark (--engine local does without it)")

    from handfast.cli.sweep import spark

    return spark.run
