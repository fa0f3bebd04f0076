"""The window rule of a pair, in machine code: every kernel that decides pairs applies this one."""

from __future__ import annotations

from dataclasses import dataclass

from llvmlite import ir


@dataclass(frozen=True, slots=True)
class WindowRule:
    """Two windows: how long each holds a tuple, in microseconds or, where `counted`, in tuples.

    `old` of stream 0 is in its window at `at` of stream 1, or the other way round: the older tuple's window decides.
    """

    lengths: tuple[int, int]
    counted: tuple[bool, bool] = (False, False)

    @property
    def stamped(self) -> bool:
        """Whether tuples need stamps: between two time windows the times say it all."""
        return any(self.counted)


Stamps = list[ir.Value]  # lanes of the time and, where stamped, of how many tuples of stream 0 and 1 came before


def holds(
    builder: ir.IRBuilder, counted: tuple[bool, bool], r: Stamps, s: Stamps, lengths: tuple[ir.Value, ir.Value]
) -> ir.Value:
    """Lanes of bits: where the older of the two tuples is still in its window at the younger."""
    age = builder.sub(s[0], r[0])
    if not any(counted):
        # at equal times stream 0 came first, and any window holds what came at the same time
        zero = ir.Constant(age.type, [0] * age.type.count)
        younger = builder.icmp_signed("<", age, lengths[0])
        return builder.and_(younger, builder.icmp_signed(">", age, builder.sub(zero, lengths[1])))
    r_first = builder.icmp_signed("<", r[1], s[1])  # fewer tuples of stream 0 came before r than before s
    passed = builder.sub(s[1], r[1])  # tuples of stream 0 from r on that came before s
    in_r = builder.icmp_signed("<=", passed, lengths[0]) if counted[0] else builder.icmp_signed("<", age, lengths[0])
    passed = builder.sub(r[2], s[2])
    back = builder.sub(r[0], s[0])
    in_s = builder.icmp_signed("<=", passed, lengths[1]) if counted[1] else builder.icmp_signed("<", back, lengths[1])
    return builder.select(r_first, in_r, in_s)
