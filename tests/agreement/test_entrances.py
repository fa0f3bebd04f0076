"""The suite judges what users call: it comes in where they do and asks the oracle, and knows no other way in."""

from __future__ import annotations

import ast
from importlib import import_module
from pathlib import Path

import pytest

import handfast

ENTRANCES = {"handfast", "handfast.cli", "handfast.testing", "handfast.judge.oracle"}
HERE = Path(__file__).parent


def _modules(source: str) -> set[str]:
    """The modules of handfast that code imports when it runs; under TYPE_CHECKING they only name types."""
    tree = ast.parse(source)
    naming = {
        inner
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
        for inner in ast.walk(node)
    }
    found: set[str] = set()
    for node in ast.walk(tree):
        if node in naming:
            continue
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            found |= {_module(node.module, alias.name) for alias in node.names}
    return {name for name in found if name.split(".")[0] == "handfast"}


def _module(package: str, name: str) -> str:
    """What `from package import name` reaches: the package itself, or a module inside that it does not hand out."""
    inside = Path(handfast.__file__).parents[1].joinpath(*package.split("."), name)
    is_module = inside.is_dir() or inside.with_suffix(".py").exists()
    handed_out = package in ENTRANCES and name in getattr(import_module(package), "__all__", ())
    return f"{package}.{name}" if is_module and not handed_out else package


def test_no_file_of_the_suite_imports_an_engine() -> None:
    assert {} == {path.name: own for path in HERE.glob("*.py") if (own := _modules(path.read_text()) - ENTRANCES)}


@pytest.mark.parametrize(
    "line",
    [
        "import handfast.engines.local.engine",
        "from handfast import engines",
        "from handfast.engines import spark",
        "from handfast.engines.local.engine import join_tables",
        "from handfast.judge import verify",
        "from handfast.judge.rows import result_of",
        "from handfast.cli.run.local import run",
    ],
)
def test_an_import_of_anything_inside_is_caught(line: str) -> None:
    assert _modules(line) - ENTRANCES
    assert set() == _modules(f"if TYPE_CHECKING:\n    {line}")


def test_what_a_user_imports_is_allowed() -> None:
    lines = (
        "import handfast as hf",
        "import handfast.testing as hft",
        "from handfast import JoinSpec",
        "from handfast.cli import app",
        "from handfast.judge import oracle",
        "from handfast.judge.oracle import result",
    )
    assert ENTRANCES == _modules("\n".join(lines))
