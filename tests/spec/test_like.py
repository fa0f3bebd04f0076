"""LIKE matches as its definition says, and takes its time from the text, not from the ways to divide it."""

from __future__ import annotations

import re

from hypothesis import given, settings
from hypothesis import strategies as st

from handfast.spec.expression import Call, Literal, Op
from handfast.spec.meaning import AnsiError, rule
from handfast.spec.types import BOOLEAN, STRING

LIKE = rule(Call(Op.LIKE, (Literal("", STRING),) * 3, BOOLEAN))


def by_definition(text: str, pattern: str) -> bool | None:
    """The pattern as a regular expression; None where it is none."""
    parts = re.findall(r"\\[%_\\]|[^\\]", pattern, re.DOTALL)
    if "".join(parts) != pattern:
        return None
    meant = {"%": ".*", "_": "."}
    return bool(re.fullmatch("".join(meant.get(part) or re.escape(part[-1]) for part in parts), text, re.DOTALL))


@settings(max_examples=500, deadline=None)
@given(st.text("ab%_\\\n", max_size=8), st.text("ab%%_\\", max_size=6))
def test_like_is_what_its_definition_says(text: str, pattern: str) -> None:
    expected = by_definition(text, pattern)
    try:
        assert expected is LIKE(text, pattern, "\\")
    except AnsiError:
        assert expected is None


def test_a_pattern_of_many_percents_is_no_trap() -> None:
    assert not LIKE("a" * 5_000, "%a" * 40 + "%b", "\\")
