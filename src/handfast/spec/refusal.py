"""How a part of a predicate is refused: as SQL, with the reason and the way out."""

from __future__ import annotations

from typing import NoReturn

from sqlglot import exp

from handfast.errors import SpecError
from handfast.spec.types import Kind, Type


def refuse(node: exp.Expression, why: str) -> NoReturn:
    """Refuse a part of the predicate."""
    raise SpecError(f"{node.sql(dialect='spark')!r} {why}")


def mismatch(node: exp.Expression, a: Type, b: Type) -> NoReturn:
    """Refuse to bring two types together."""
    hint = ""
    if a.is_timestamp and b.is_timestamp:
        hint = " (timestamps with and without zone do not compare)"
    elif {a.kind, b.kind} == {Kind.DATE, Kind.TIMESTAMP}:
        hint = " (which day a timestamp is on depends on the zone)"
    refuse(node, f"compares {a} with {b}{hint}; cast one side in the input")
