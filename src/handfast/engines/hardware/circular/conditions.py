"""Which part of a predicate is checked at which stage of a ring, and at which hops: each as early as it can be."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from handfast.engines.hardware.fits import column_widths
from handfast.spec.classify import Equality, classify
from handfast.spec.expression import Call, Column, Expr, Op, conjuncts, streams_of
from handfast.spec.types import BOOLEAN

Member = tuple[int, Expr]  # a stream, and an expression over its columns


@dataclass(frozen=True, slots=True)
class Check:
    """A condition that a stage checks.

    Attributes:
        condition: Its tree.
        hops: At which hops all tuples that it reads are there, and it has not been checked before.
    """

    condition: Expr
    hops: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class RingConditions:
    """A predicate along a ring of one stage for each stream: stage s has the window of stream s.

    A new tuple of stream o comes to the stages o + 1, o + 2 … in turn, round the ring. At stage s, after h hops, the
    streams s - 1 - h … s - 1 have given a tuple, and stage s adds one.

    Attributes:
        streams: How many there are.
        checks: By stage, what it checks.
    """

    streams: int
    checks: tuple[tuple[Check, ...], ...]

    @staticmethod
    def of(predicate: Expr, streams: int) -> RingConditions:
        """The conditions of a predicate, which holds iff all of its conjuncts are true.

        Of equalities that chain, like r.k = s.k AND s.k = t.k, each stage checks one: with the tuple that came last of
        those that have a part in it, whether the predicate says it of these two streams or it follows.
        """
        parts = conjuncts(predicate)
        chained, said = chains(parts)
        checks: list[list[Check]] = [[] for _ in range(streams)]
        for condition in parts:
            if condition not in said:
                for stage in range(streams):
                    hops = tuple(h for h in range(streams - 1) if _is_due(condition, stage, h, streams))
                    checks[stage] += [Check(condition, hops)] * bool(hops)
        for chain in chained:
            for stage, own in chain.items():
                before = next(d for d in range(1, streams) if (stage - d) % streams in chain)
                same = Call(Op.EQ, (chain[(stage - before) % streams], own), BOOLEAN)
                checks[stage].append(Check(same, tuple(range(before - 1, streams - 1))))
        return RingConditions(streams, tuple(map(tuple, checks)))

    def read_at(self, stage: int) -> tuple[Column, ...]:
        """The columns of the stage's own stream that it reads."""
        return columns_of(stage, (check.condition for check in self.checks[stage]))

    def carried(self, stage: int, stream: int) -> tuple[Column, ...]:
        """The columns that tuples of a stream have with them when they come to a stage: what is read from there on."""
        # lines that have met the stream before the stage, and what they read from the stage on
        read = [
            check.condition
            for hop in range((stage - 1 - stream) % self.streams, self.streams - 1)
            for further in range(self.streams - 1 - hop)
            for check in self.checks[(stage + further) % self.streams]
            if hop + further in check.hops
        ]
        return columns_of(stream, read)


def _is_due(condition: Expr, stage: int, hop: int, streams: int) -> bool:
    """Whether a condition is to be checked at a stage after so many hops."""
    bound = {(stage - 1 - h) % streams for h in range(hop + 1)}
    read = streams_of(condition)
    return read <= bound | {stage} and (stage in read or hop == 0)


def chains(parts: Sequence[Expr]) -> tuple[list[dict[int, Expr]], set[Expr]]:
    """Expressions that are equal because of equalities that chain, by stream; and the equalities that say so."""
    classes: list[tuple[list[Member], list[Expr]]] = []
    for part in parts:
        for equality in classify(part).equalities:
            members = list(_members(equality))
            touching = [own for own in classes if any(member in own[0] for member in members)]
            classes = [own for own in classes if own not in touching]
            together = [member for own in touching for member in own[0]] + members
            said = [each for own in touching for each in own[1]] + [part]
            classes.append((list(dict.fromkeys(together)), said))
    # not where a stream has two expressions in it, or where values of different types would be compared
    plain = [
        (members, said)
        for members, said in classes
        if len({stream for stream, _ in members}) == len(members) and len({expr.type for _, expr in members}) == 1
    ]
    return [dict(members) for members, _ in plain], {each for _, said in plain for each in said}


def _members(equality: Equality) -> Iterator[Member]:
    yield from zip(equality.streams, equality.sides, strict=True)


def columns_of(stream: int, conditions: Iterator[Expr] | Sequence[Expr]) -> tuple[Column, ...]:
    """The columns of a stream that conditions read, each once, by name."""
    found = {column for each in conditions for column in column_widths(each) if column.stream == stream}
    return tuple(sorted(found, key=lambda column: column.name))
