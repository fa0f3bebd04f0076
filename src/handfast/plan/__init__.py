"""How a join is laid out: the plan and what it is made of, as values; what a predicate offers."""

from handfast.plan.values import (
    ALGORITHMS,
    CIRCULAR,
    FIRST,
    INDEX,
    LOCAL_JOINS,
    MERGE,
    PLAIN,
    SCAN,
    STASHED,
    Choice,
    Hot,
    Keys,
    Offer,
    Pair,
    PairPlan,
    Plan,
)

__all__ = [
    "ALGORITHMS",
    "CIRCULAR",
    "FIRST",
    "INDEX",
    "LOCAL_JOINS",
    "MERGE",
    "PLAIN",
    "SCAN",
    "STASHED",
    "Choice",
    "Hot",
    "Keys",
    "Offer",
    "Pair",
    "PairPlan",
    "Plan",
]
