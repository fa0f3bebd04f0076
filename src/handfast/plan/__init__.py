"""How a join is laid out: the plan and what it is made of, as values; what a predicate offers."""

from handfast.plan.values import (
    FIRST,
    INDEX,
    LOCAL_JOINS,
    MERGE,
    SCAN,
    Choice,
    Offer,
    Pair,
    PairPlan,
    Plan,
)

__all__ = ["FIRST", "INDEX", "LOCAL_JOINS", "MERGE", "SCAN", "Choice", "Offer", "Pair", "PairPlan", "Plan"]
