"""The join in Pathway: its interval join, by a key, without one, or by buckets."""

from __future__ import annotations

from pathlib import Path

import pathway as pw

from benchmarks.peers.job import COLUMNS, LENGTH, WIDTH, Pair, bucket, buckets, main, rows_of


class Rows(pw.io.python.ConnectorSubject):
    """The tuples of a stream, one by one."""

    def __init__(self, folder: Path, stream: str) -> None:
        super().__init__()
        self.rows, self.names = rows_of(folder, stream), COLUMNS[stream]

    def run(self) -> None:
        for row in self.rows:
            self.next(**dict(zip(self.names, row, strict=True)))


def table(folder: Path, stream: str) -> pw.Table:
    """A stream as a table that grows."""
    schema = pw.schema_from_types(**dict.fromkeys(COLUMNS[stream], int))
    return pw.io.python.read(Rows(folder, stream), schema=schema, autocommit_duration_ms=100)


def run(folder: Path, form: str) -> list[Pair]:
    """The matches in a form: `equality`, `band` (no key), or `buckets`."""
    r, s = table(folder, "r"), table(folder, "s")
    if form == "buckets":
        r = r.with_columns(cell=pw.apply_with_type(bucket, int, pw.this.x, pw.this.y))
        cells = pw.apply_with_type(lambda a, b: tuple(buckets(a, b)), tuple[int, ...], pw.this.a, pw.this.b)
        s = s.with_columns(cell=cells).flatten(pw.this.cell)
    keys = {"equality": lambda: [r.k == s.k], "band": lambda: [], "buckets": lambda: [r.cell == s.cell]}[form]()
    near = pw.temporal.interval(1 - LENGTH, LENGTH - 1)
    joined = r.interval_join(s, r.ts, s.ts, near, *keys).select(r=r.number, s=s.number, x=r.x, y=r.y, a=s.a, b=s.b)
    if form != "equality":
        across = (pw.this.x - pw.this.a >= -WIDTH) & (pw.this.x - pw.this.a <= WIDTH)
        joined = joined.filter(across & (pw.this.y - pw.this.b >= -WIDTH) & (pw.this.y - pw.this.b <= WIDTH))
    found: dict[Pair, int] = {}

    def changed(key: object, row: dict[str, int], time: int, is_addition: bool) -> None:
        pair = (row["r"], row["s"])
        found[pair] = found.get(pair, 0) + (1 if is_addition else -1)

    pw.io.subscribe(joined, on_change=changed)
    pw.run(monitoring_level=pw.MonitoringLevel.NONE)
    return [pair for pair, count in found.items() for _ in range(count)]


if __name__ == "__main__":
    main(run)
