"""Random joins to judge the engines by: a pool of predicate shapes × constants, schemas, data, windows, disorder, cuts.

A case is drawn from a `random.Random`, so a plain seed names it: `Case.of(seed)`; `sized.sized(seed)` is one of
thousands of rows. Hypothesis draws seeds and shapes (`cases()`), or every single choice, for cases that shrink
(`shrinking_cases()`; they are poorer: many values are NULL, few rows meet). `smallest` cuts a case down to what still
fails. What a case covers is measured on its data: `features`.
"""

from tests.strategies.cases import Case, cases, shrinking_cases, smallest
from tests.strategies.multi import MULTI
from tests.strategies.shapes import BANDS, EQUALITIES, RESIDUALS, SHAPES, Shape

__all__ = [
    "BANDS",
    "EQUALITIES",
    "MULTI",
    "RESIDUALS",
    "SHAPES",
    "Case",
    "Shape",
    "cases",
    "shrinking_cases",
    "smallest",
]
