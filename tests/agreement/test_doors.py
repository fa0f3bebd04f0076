"""The suite judges what users call: it goes through their doors, and asks the oracle, and knows no other way in."""

from __future__ import annotations

import ast
from pathlib import Path

DOORS = {"handfast", "handfast.cli", "handfast.testing"}
JUDGE = {"handfast.judge.oracle"}
HERE = Path(__file__).parent


def _imported(path: Path) -> set[str]:
    """The modules of handfast that a file imports when it runs; under TYPE_CHECKING they only name types."""
    tree = ast.parse(path.read_text())
    naming = {
        inner
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
        for inner in ast.walk(node)
    }
    found = set()
    for node in ast.walk(tree):
        if node in naming:
            continue
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module == "handfast":
            found |= {f"handfast.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            found.add(node.module)
    return {name for name in found if name.split(".")[0] == "handfast"}


def test_no_file_of_the_suite_imports_an_engine() -> None:
    inside = {path.name: own for path in HERE.glob("*.py") if (own := _imported(path) - DOORS - JUDGE)}
    assert {} == inside
