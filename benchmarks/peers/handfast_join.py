"""The join in a handfast session on one core: both streams pushed by turns, ten seconds of each at a time."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow import csv

import handfast as hf
from benchmarks.peers.job import COLUMNS, LENGTH, WIDTH, main

PIECE = 10_000  # tuples of a push; what the other engines take at a time is up to them, and not less
BAND = f"r.x BETWEEN s.a - {WIDTH} AND s.a + {WIDTH} AND r.y BETWEEN s.b - {WIDTH} AND s.b + {WIDTH}"
ON = {"equality": "r.k = s.k", "band": BAND, "buckets": BAND}


def table(folder: Path, stream: str) -> pa.Table:
    """A stream's tuples."""
    found = csv.read_csv(folder / f"{stream}.csv", csv.ReadOptions(column_names=COLUMNS[stream]))
    at = found.column_names.index("ts")
    return found.set_column(at, "ts", found["ts"].cast(pa.timestamp("us", "UTC")))


def run(folder: Path, form: str) -> NDArray[np.int64]:
    """The matches in a form; its index is the same for a band and for buckets."""
    tables = {name: table(folder, name) for name in "rs"}
    spec = hf.JoinSpec(
        ("r", "s"),
        ON[form],
        window=f"{LENGTH} microseconds",
        time="ts",
        lateness="0 seconds",
        select="r.number AS r, s.number AS s",
    )
    schemas = {name: own.schema for name, own in tables.items()}
    batches: list[pa.RecordBatch] = []
    with hf.session(spec, schemas, options=hf.LocalOptions(cores=1)) as session:
        for start in range(0, tables["r"].num_rows, PIECE):
            for name, own in tables.items():
                batches += session.push(name, own.slice(start, PIECE))
        batches += session.close()
    found = pa.Table.from_batches(batches, session.schema)
    return np.column_stack([found[name].to_numpy() for name in "rs"])


if __name__ == "__main__":
    main(run)
