"""The list of deliberate bugs: a module that makes one enters it here."""

from __future__ import annotations

from collections.abc import Callable

import pytest

Mutant = Callable[[pytest.MonkeyPatch], None]
MUTANTS: list[Mutant] = []


def mutant(bug: Mutant) -> Mutant:
    """Enter a bug into the list."""
    MUTANTS.append(bug)
    return bug
