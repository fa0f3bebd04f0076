"""What a command about circuits is given: a pipeline's join, all rows its sources have now, the circuit for them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from handfast.cli.circuit.options import Asked, circuit_options, options_as_typed
from handfast.connectors.local import open_source
from handfast.connectors.pipeline import Pipeline
from handfast.engines.hardware.circular.job import RingJob
from handfast.engines.hardware.engine import Job, prepare
from handfast.engines.hardware.stashed.shape import LineShape
from handfast.errors import SpecError
from handfast.flow.batch import as_table
from handfast.spec.join import JoinSpec


@dataclass(frozen=True, slots=True)
class Given:
    """A join of bounded tables, and the circuit for it."""

    spec: JoinSpec
    tables: dict[str, pa.Table]
    job: Job | RingJob

    @staticmethod
    def read(file: Path, circuit: Asked) -> Given:
        """Read a pipeline and its rows; its sink is not touched."""
        pipeline = Pipeline.read(file, engine="local")
        two = len(pipeline.spec.streams) == 2  # a ring has no cores
        options = circuit_options(circuit, cores=pipeline.cores if two else None)
        pipeline.spec.check_bounded()
        sources = pipeline.sources.items()
        tables = {name: as_table(open_source(source).take_all(), name) for name, source in sources}
        with options_as_typed():
            job = prepare(pipeline.spec, tables, options)
        if isinstance(job, pa.Schema):
            empty = next((name for name, table in tables.items() if not len(table)), None)
            which = f"Stream {empty!r} has no rows" if empty else "A stream has no row with a valid time"
            raise SpecError(f"{which}, and a circuit is as large as the rows that it is made for need; give it some")
        return Given(pipeline.spec, tables, job)

    @property
    def streams(self) -> str:
        """The streams, in words."""
        *others, last = self.spec.names
        return f"{', '.join(others)} and {last}"

    @property
    def rows(self) -> str:
        """How many rows there are, in words."""
        return ", ".join(f"{len(table):,} of {name}" for name, table in self.tables.items())

    @property
    def circuit(self) -> str:
        """What the circuit is, in a line."""
        if isinstance(self.job, RingJob):
            held = zip(self.job.design.sizes, self.spec.names, strict=True)
            sizes = ", ".join(f"{size:,} of {name}" for size, name in held)
            ring = self.job.design.shape
            kind = "a line of {} stages with a stash" if isinstance(ring, LineShape) else "a ring of {} stages"
            return f"{kind.format(ring.stages)}, and {sizes} in RAM"
        shape = self.job.design.shape
        sizes = " and ".join(f"{size:,} of {name}" for size, name in zip(shape.sizes, self.spec.names, strict=True))
        units = f"{shape.inputs} units" if shape.flush == 0 and shape.cores != shape.inputs else _cores(shape.cores)
        where = "RAM" if shape.ram else "registers"
        return f"{units} with {sizes} in {where}; {shape.network} network"


def _cores(count: int) -> str:
    return f"{count} core{'s' * (count > 1)}"
