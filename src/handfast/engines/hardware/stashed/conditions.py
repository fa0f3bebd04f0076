"""Which part of a predicate is checked where along the line of Stashed-MJ: each as early as it can be."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from handfast.engines.hardware.circular.conditions import chains, columns_of
from handfast.spec.expression import Call, Column, Expr, Op, conjuncts, streams_of
from handfast.spec.types import BOOLEAN

A, B = PAIR = (0, 1)  # the streams whose pairs are kept


@dataclass(frozen=True, slots=True)
class Step:
    """What happens to tuples of one stream at one place: tuples of other streams are added to it.

    Attributes:
        origin: The stream of the new tuple.
        before: The streams that have given a tuple already.
        added: Those that give one now.
        known: Whether the two that give one now are known to match each other.
    """

    origin: int
    before: frozenset[int]
    added: frozenset[int]
    known: bool = False

    @property
    def is_first(self) -> bool:
        """Whether nothing was checked before."""
        return len(self.before) == 1


@dataclass(frozen=True, slots=True)
class Check:
    """A condition, and the steps at which it is checked."""

    condition: Expr
    steps: frozenset[Step]


@dataclass(frozen=True, slots=True)
class LineConditions:
    """A predicate along the line: the first stage has the windows of streams 0 and 1, and stage s that of s + 1.

    A tuple of stream 0 or 1 scans the window of the other at the first stage. Of any other stream it probes the kept
    pairs; where some are missing it scans the window of 0, and then that of 1 for each match. Then all go to the
    stages of the others in turn, and are handed on by that of their own stream.

    Attributes:
        streams: How many streams there are.
        checks: By stage, what it checks.
    """

    streams: int
    checks: tuple[tuple[Check, ...], ...]

    @staticmethod
    def of(predicate: Expr, streams: int) -> LineConditions:
        """The conditions of a predicate, which holds iff all of its conjuncts are true."""
        parts = conjuncts(predicate)
        chained, said = chains(parts)
        plain = [condition for condition in parts if condition not in said]
        checks = []
        for stage in range(streams - 1):
            found: dict[Expr, set[Step]] = {}
            for step in steps_at(stage, streams):
                due = [condition for condition in plain if _is_due(condition, step)]
                due += [same for chain in chained for same in _same(chain, step)]
                for condition in due:
                    found.setdefault(condition, set()).add(step)
            checks.append(tuple(Check(condition, frozenset(steps)) for condition, steps in found.items()))
        return LineConditions(streams, tuple(checks))

    def read(self, stage: int, stream: int) -> tuple[Column, ...]:
        """The columns of a stream that a stage or any behind it reads."""
        return columns_of(stream, [check.condition for own in self.checks[stage:] for check in own])

    def carried(self, stage: int, stream: int) -> tuple[Column, ...]:
        """The columns that tuples of a stream have with them on their way to a stage behind the first."""
        # the stage of the stream itself reads them from its window
        own = [own for number, own in enumerate(self.checks[stage:], stage) if number + 1 != stream]
        return columns_of(stream, [check.condition for each in own for check in each])


def steps_at(stage: int, streams: int) -> Iterator[Step]:
    """Everything that may happen at a stage."""
    if stage == 0:
        for origin, other in (PAIR, PAIR[::-1]):
            yield Step(origin, frozenset({origin}), frozenset({other}))
        for origin in range(2, streams):
            yield probing(origin)
            yield outer(origin)
            yield inner(origin)
        return
    for origin in range(streams):
        if origin != stage + 1:
            yield Step(origin, frozenset({A, B, *range(2, stage + 1), origin}), frozenset({stage + 1}))


def probing(origin: int) -> Step:
    """A tuple probes the pairs."""
    return Step(origin, frozenset({origin}), frozenset(PAIR), known=True)


def outer(origin: int) -> Step:
    """A tuple scans the window of stream 0, for pairs that are missing."""
    return Step(origin, frozenset({origin}), frozenset({A}))


def inner(origin: int) -> Step:
    """A tuple and one of stream 0 scan the window of stream 1."""
    return Step(origin, frozenset({origin, A}), frozenset({B}))


def _is_due(condition: Expr, step: Step) -> bool:
    """Whether a condition is to be checked at a step."""
    read = streams_of(condition)
    if not read <= step.before | step.added or (step.known and read and read <= step.added):
        return False
    return bool(read & step.added) or step.is_first


def _same(chain: dict[int, Expr], step: Step) -> Iterator[Expr]:
    """The equality that a step checks, of those that follow from each other."""
    added = [stream for stream in step.added if stream in chain]
    before = [stream for stream in step.before if stream in chain]
    if added and before:  # of two that are known to match, one is enough
        common = [stream for stream in before if stream < max(added)]  # what tuples of all origins have met there
        both = sorted((max(common or before), min(added)))
        yield Call(Op.EQ, (chain[both[0]], chain[both[1]]), BOOLEAN)
