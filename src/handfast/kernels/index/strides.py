"""The strides between cells.

Odd multipliers, for which cells of neighbouring buckets of one key never coincide: so no probe meets a tuple twice.
"""

FIRST_STRIDE = 0x9E3779B97F4A7C15
SECOND_STRIDE = 0xC2B2AE3D27D4EB4F
