"""The join in Bytewax: both streams merged, a deque of each window for a key, searched from end to end."""

from __future__ import annotations

from collections import deque
from pathlib import Path
from typing import Any

import bytewax.operators as op
from bytewax.dataflow import Dataflow
from bytewax.testing import TestingSink, TestingSource, run_main

from benchmarks.peers.job import LENGTH, WIDTH, Pair, bucket, buckets, main, rows_of

Event = tuple[int, int, int, int, int]  # time, stream, id, and both coordinates


def keyed(form: str, stream: int, row: tuple[int, ...]) -> list[tuple[str, Event]]:
    """A tuple under each key that it is found by."""
    id, ts, k, x, y = row
    event = (ts, stream, id, x, y)
    if form == "equality":
        return [(str(k), event)]
    if form == "band":
        return [("all", event)]
    return [(str(cell), event) for cell in (buckets(x, y) if stream else [bucket(x, y)])]


def run(folder: Path, form: str) -> list[Pair]:
    """The matches in a form: `equality`, `band` (one key for all), or `buckets`."""
    merged = [(stream, row) for stream, name in enumerate("rs") for row in rows_of(folder, name)]
    merged.sort(key=lambda item: (item[1][1], item[0]))

    def meet(windows: Any, event: Event) -> tuple[Any, list[Pair]]:
        mine, other = windows[event[1]], windows[1 - event[1]]
        while other and event[0] - other[0][0] >= LENGTH:
            other.popleft()
        mine.append(event)
        _, stream, id, x, y = event
        if form == "equality":
            found = [stored[2] for stored in other]
        else:
            found = [
                stored[2] for stored in other if -WIDTH <= x - stored[3] <= WIDTH and -WIDTH <= y - stored[4] <= WIDTH
            ]
        return windows, [(own, id) if stream else (id, own) for own in found]

    out: list[Pair] = []
    flow = Dataflow("join")
    events = op.input("in", flow, TestingSource(merged, batch_size=1000))
    keys = op.flat_map("key", events, lambda item: keyed(form, *item))
    found = op.stateful_map("join", keys, lambda state, event: meet(state or (deque(), deque()), event))
    op.output("out", op.flat_map("flat", found, lambda own: own[1]), TestingSink(out))
    run_main(flow)
    return out


if __name__ == "__main__":
    main(run)
