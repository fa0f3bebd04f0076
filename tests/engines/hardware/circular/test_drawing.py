"""The picture of a ring, or of a line with a stash, shows its stages, and fits into a wide terminal."""

from __future__ import annotations

import pytest

from handfast.engines.hardware.circular.drawing import draw_line, draw_ring
from handfast.engines.hardware.circular.shape import RingShape
from handfast.engines.hardware.stashed.shape import LineShape

RING = """\
┌───────────────────────────────────────────────────────────────┐
│    ┌────────────┐     ┌────────────┐     ┌───────────────┐    │
└──▶ │ stage of r │ ──▶ │ stage of s │ ──▶ │ stage of asks │ ───┘
     │  holds 8   │     │  holds 8   │     │  holds 1,024  │
     │  new asks  │     │   new r    │     │     new s     │
     └────────────┘     └────────────┘     └───────────────┘
           │                  │                   │
          [5]                [5]                 [5]  results that fit behind each
           └──────────────────┼───────────────────┘
            tree of 1 merger, a register in each
                              │
                           results"""

LINE = """\
        ┌──────────────────┐     ┌────────────┐
new ──▶ │ stage of r and s │ ──▶ │ stage of t │
        │  holds 8 and 4   │     │  holds 2   │
        │ stash of 9 pairs │     │            │
        └──────────────────┘     └────────────┘
                 │                     │
                [8]                   [8]  results that fit behind each
                 └──────────┬──────────┘
          tree of 1 merger, a register in each
                            │
                         results"""


def test_a_ring_comes_back_to_its_first_stage() -> None:
    shape = RingShape(sizes=(8, 8, 1024), counted=(8, 8, None), network_buffer=5)
    assert RING.splitlines() == [line.rstrip() for line in draw_ring(shape, ("r", "s", "asks"))]


def test_a_line_begins_with_the_stash() -> None:
    shape = LineShape(sizes=(8, 4, 2), counted=(8, 4, 2), stash=9)
    assert LINE.splitlines() == [line.rstrip() for line in draw_line(shape, ("r", "s", "t"))]


@pytest.mark.parametrize("streams", range(3, 9))
def test_it_fits_into_a_wide_terminal(streams: int) -> None:
    names = [f"a_stream_with_a_long_name_{k}" for k in range(streams)]
    sizes = (1 << 16,) * streams
    ring = draw_ring(RingShape(sizes=sizes, counted=sizes), names)
    line = draw_line(LineShape(sizes=sizes, counted=sizes, stash=1 << 20), names)
    assert max(map(len, [*ring, *line])) <= 140
