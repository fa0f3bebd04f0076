"""The picture of a circuit shows its parts, and fits into a terminal."""

from __future__ import annotations

import pytest

from handfast.engines.hardware.drawing import draw
from handfast.engines.hardware.options import NETWORKS
from handfast.engines.hardware.shape import CircuitShape

RING = """\
           ┌─────────────┐     ┌─────────────┐     ┌─────────────┐
           │   core 0    │     │   core 1    │     │   core 2    │
trades ──▶ │ 4 of trades │ ──▶ │ 4 of trades │ ──▶ │ 4 of trades │
           │ 16 of asks  │ ◀── │ 16 of asks  │ ◀── │ 16 of asks  │ ◀── asks
           └─────────────┘     └─────────────┘     └─────────────┘
                  │                   │                   │
                  └───────────────────┼───────────────────┘
                               ring of 3 nodes
                                   3 × [5]
                            tree without buffers
                                      │
                                   results"""

STAGES = """\
      ┌────────┐     ┌────────┐
      │ core 0 │     │ core 1 │
r ──▶ │ 4 of r │ ──▶ │ 4 of r │
      │ 4 of s │ ◀── │ 4 of s │ ◀── s
      └────────┘     └────────┘
           │              │
          [5]            [5]  results that fit behind each
           └──────┬───────┘
tree of 1 merger, 1 level, a register in each
                  │
               results"""

NESTED_LOOP = """\
      ┌──────────┐     ┌──────────┐
      │  unit 0  │     │  unit 1  │
r ──▶ │  scans   │     │  scans   │
      │ 200 of s │     │ 100 of r │ ◀── s
      └──────────┘     └──────────┘
            │                │
           [7]              [7]  results that fit behind each
            └───────┬────────┘
 tree of 1 merger, 1 level, [8] in each
                    │
                 results"""


@pytest.mark.parametrize(
    ("shape", "names", "picture"),
    [
        (CircuitShape(cores=3, sizes=(4, 16), network="adaptive", network_buffer=5), ("trades", "asks"), RING),
        (CircuitShape(cores=2, sizes=(4, 4), network="pipelined", network_buffer=5), ("r", "s"), STAGES),
        (CircuitShape(cores=1, sizes=(100, 200), algorithm="nested_loop", core_buffer=7), ("r", "s"), NESTED_LOOP),
    ],
    ids=["a chain with a ring", "a chain with a pipelined network", "the nested loop"],
)
def test_the_picture_shows_every_part_in_its_place(shape: CircuitShape, names: tuple[str, str], picture: str) -> None:
    assert picture.splitlines() == draw(shape, names)


@pytest.mark.parametrize("cores", [1, 2, 4, 5, 64, 1000])
@pytest.mark.parametrize("network", NETWORKS)
def test_it_fits_into_a_terminal_whatever_the_numbers_and_names(cores: int, network: str) -> None:
    lines = draw(CircuitShape(cores=cores, sizes=(8, 8), network=network), ("a_name_that_is_long", "another_long_one"))
    assert max(map(len, lines)) <= 120
    assert min(cores, 4) == lines[0].count("┌") == lines[5].count("│")
    assert (f"{cores - 3} more" in lines[1]) == (cores > 4)
