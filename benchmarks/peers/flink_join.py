"""The join in PyFlink: an interval join in its SQL, on one task, so that it is compared core by core."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from pyflink.table import EnvironmentSettings, TableEnvironment

from benchmarks.peers.job import BUCKET, COLUMNS, LENGTH, WIDTH, Pair, main

NEAR = f"r.t > s.t - INTERVAL '{LENGTH // 1_000_000}' SECOND AND r.t < s.t + INTERVAL '{LENGTH // 1_000_000}' SECOND"
BAND = f"r.x BETWEEN s.a - {WIDTH} AND s.a + {WIDTH} AND r.y BETWEEN s.b - {WIDTH} AND s.b + {WIDTH}"
FORMS = {
    "equality": ("r", "s", "r.k = s.k"),
    "band": ("r", "s", BAND),
    "buckets": (
        f"(SELECT *, x / {BUCKET} AS cx, y / {BUCKET} AS cy FROM r)",
        f"(SELECT *, (a - {WIDTH}) / {BUCKET} + dx AS cx, (b - {WIDTH}) / {BUCKET} + dy AS cy "
        "FROM s CROSS JOIN (VALUES (0, 0), (0, 1), (1, 0), (1, 1)) AS shift (dx, dy))",
        f"r.cx = s.cx AND r.cy = s.cy AND {BAND}",
    ),
}


def run(folder: Path, form: str) -> list[Pair]:
    """The matches in a form: `equality`, `band`, or `buckets`."""
    tables = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    tables.get_config().set("parallelism.default", "1")
    for stream, names in COLUMNS.items():
        columns = ", ".join(f"`{name}` BIGINT" for name in names)
        tables.execute_sql(
            f"CREATE TABLE {stream} ({columns}, t AS TO_TIMESTAMP_LTZ(ts / 1000, 3), WATERMARK FOR t AS t) "
            f"WITH ('connector' = 'filesystem', 'path' = '{folder}/{stream}.csv', 'format' = 'csv')"
        )
    out = folder / "flink"
    tables.execute_sql(
        f"CREATE TABLE found (r BIGINT, s BIGINT) WITH ('connector' = 'filesystem', 'path' = '{out}', 'format' = 'csv')"
    )
    left, right, on = FORMS[form]
    query = f"SELECT r.number AS r, s.number AS s FROM {left} AS r JOIN {right} AS s ON {on} AND {NEAR}"
    tables.execute_sql(f"INSERT INTO found {query}").wait()
    files = [path for path in out.rglob("*") if path.is_file() and path.stat().st_size]
    pairs = [np.loadtxt(path, dtype=np.int64, delimiter=",", ndmin=2) for path in files]
    return [(int(r), int(s)) for own in pairs for r, s in own]


if __name__ == "__main__":
    main(run)
