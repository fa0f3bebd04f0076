"""Days and times of day as LLVM vectors: the calendar of `spec/meaning.py`, in 64-bit integers."""

from __future__ import annotations

from llvmlite import ir

from handfast.spec.expression import Op

_DAY = 86_400_000_000


class Calendar:
    """Emits parts of dates and times over lanes of 64-bit integers."""

    def __init__(self, builder: ir.IRBuilder, lanes: ir.VectorType) -> None:
        self._b = builder
        self._lanes = lanes

    def day_of(self, times: ir.Value) -> ir.Value:
        """The day of a time in microseconds."""
        return self.floor(times, self._constant(_DAY))[0]

    def part_of_time(self, op: Op, times: ir.Value) -> ir.Value:
        """Hour, minute or second."""
        unit, count = {Op.HOUR: (3_600_000_000, 24), Op.MINUTE: (60_000_000, 60), Op.SECOND: (1_000_000, 60)}[op]
        whole, _ = self.floor(times, self._constant(unit))
        return self.floor(whole, self._constant(count))[1]

    def part_of_day(self, op: Op, days: ir.Value) -> ir.Value:
        """Year, quarter, month, day or day of the week; years begin in March here."""
        b, c = self._b, self._constant
        if op is Op.DAY_OF_WEEK:
            return b.add(self.floor(b.add(days, c(4)), c(7))[1], c(1))
        era, of_era = self.floor(b.add(days, c(719_468)), c(146_097))
        leaps = b.sub(b.sdiv(of_era, c(36_524)), b.add(b.sdiv(of_era, c(1_460)), b.sdiv(of_era, c(146_096))))
        year = b.sdiv(b.add(of_era, leaps), c(365))
        before = b.sub(b.add(b.mul(year, c(365)), b.sdiv(year, c(4))), b.sdiv(year, c(100)))
        of_year = b.sub(of_era, before)
        month = b.sdiv(b.add(b.mul(of_year, c(5)), c(2)), c(153))
        if op is Op.DAY:
            start = b.sdiv(b.add(b.mul(month, c(153)), c(2)), c(5))
            return b.add(b.sub(of_year, start), c(1))
        early = b.icmp_signed(">=", month, c(10))  # January and February: of the next year
        if op is Op.YEAR:
            return b.add(b.add(b.mul(era, c(400)), year), b.zext(early, self._lanes))
        civil = b.select(early, b.sub(month, c(9)), b.add(month, c(3)))
        return civil if op is Op.MONTH else b.sdiv(b.add(civil, c(2)), c(3))

    def floor(self, lanes: ir.Value, divisor: ir.Value) -> tuple[ir.Value, ir.Value]:
        """Quotient and remainder by something positive, the quotient rounded down."""
        b = self._b
        quotient, rest = b.sdiv(lanes, divisor), b.srem(lanes, divisor)
        negative = b.icmp_signed("<", rest, self._constant(0))
        down = b.sub(quotient, b.zext(negative, self._lanes))
        return down, b.select(negative, b.add(rest, divisor), rest)

    def _constant(self, value: int) -> ir.Value:
        return ir.Constant(self._lanes, [value] * self._lanes.count)
