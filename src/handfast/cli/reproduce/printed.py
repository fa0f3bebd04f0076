"""What the thesis prints as numbers [OGE]; what it only draws is not here."""

from __future__ import annotations

from typing import NamedTuple

CORES, SEGMENT = 64, 8  # of the circuit whose cycles are printed [OGE §5]
CLOCK_MHZ = 100.0  # of the throughput figures [OGE §4.5.2]

CYCLES = {4: 1_464_443, 8: 1_054_029, 16: 1_054_012}
"""Cycles at a match rate of 100%, by the slots of every FIFO [OGE §5.1]."""

FIXED_FROM = (8, 16)
"""The figures that the undocumented choices were fixed from. The third is a prediction."""

CONSTANT_FROM = 16  # slots: "unchanged when the buffer size of each node is equal to or more than" that [OGE §5.1]

OVER_BASELINE = 5.2  # "more than 5.2 times higher throughput … at the highest match rate" [OGE §6.3.3]
OVER_NESTED_LOOP = 16.3  # "up to 16.3 times higher throughput" [OGE §6.3.3]
CROSSING = 0.4  # the baseline is faster than the nested loop "only when the match rate is lower than 40%" [OGE §6.3.3]


class Buffers(NamedTuple):
    """A row of configurations of [OGE Table 5.1]: slots by level from the root on, of a core, and of all together."""

    levels: tuple[int, ...]
    core: int
    total: int


TABLE_5_1 = {
    "uniform": Buffers((16,) * 6, 16, 2_032),
    "config1": Buffers((4, 4, 4, 8, 16, 16), 16, 1_884),
    "config2": Buffers((1024, 64, 32, 16, 8, 4), 4, 1_920),
    "config3": Buffers((256, 128, 64, 32, 16, 8), 4, 1_792),
}


class Area(NamedTuple):
    """A row of the resource tables."""

    registers: int
    luts: int
    slices: int


TABLE_4_2 = {
    2: Area(3_682, 2_654, 1_084),
    4: Area(7_106, 5_281, 1_898),
    8: Area(13_949, 9_281, 4_064),
    16: Area(27_763, 18_260, 7_930),
    32: Area(58_212, 34_467, 17_695),
    64: Area(116_165, 78_958, 30_052),
}
"""The baseline: tree network [OGE Table 4.2]."""

TABLE_6_1 = {
    2: Area(4_371, 4_594, 1_277),
    4: Area(8_358, 8_784, 3_394),
    8: Area(16_347, 17_130, 6_436),
    16: Area(32_323, 35_051, 14_095),
    32: Area(64_526, 68_216, 24_717),
}
"""The proposed circuit: adaptive network [OGE Table 6.1]."""

BLOCK_RAMS = {"tree": 126, "adaptive": 64}
"""At 32 cores [OGE §6.3.2]."""

BLOCK_RAM_CORES = 32
RESULT_BITS, BLOCK_RAM_BITS = 96, 72
"""A result [OGE §4.5.1], and the widest word of a block RAM of 36 Kbit: a FIFO takes two of them."""
