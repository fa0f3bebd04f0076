"""Prints the tree of src/handfast, each module with the first line of its docstring; --write puts it into the docs.

The tree stands in docs/architecture.md between the two markers below.
"""

from __future__ import annotations

import ast
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "src" / "handfast"
PAGE = ROOT / "docs" / "architecture.md"
BEGIN, END = "<!-- tree: scripts/architecture.py --write -->", "<!-- end of tree -->"
_COLUMN = 28  # where the purposes begin


def purpose(module: Path) -> str:
    """The first line of a module's docstring."""
    docstring = ast.get_docstring(ast.parse(module.read_text(encoding="utf-8")))
    if not docstring:
        raise SystemExit(f"{module.relative_to(ROOT)} has no docstring; its first line says what it is for")
    return docstring.splitlines()[0]


def tree(folder: Path, depth: int = 0) -> list[str]:
    """The lines of a package: itself, its modules, then its packages."""
    modules = sorted(path for path in folder.glob("*.py") if path.name != "__init__.py")
    packages = sorted(path.parent for path in folder.glob("*/__init__.py"))
    lines = [_line(depth, f"{folder.name}/", purpose(folder / "__init__.py"))]
    lines += [_line(depth + 1, module.name, purpose(module)) for module in modules]
    return lines + [line for package in packages for line in tree(package, depth + 1)]


def page(text: str, shown: str) -> str:
    """The page with the tree between its markers."""
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise SystemExit(f"{PAGE.relative_to(ROOT)} lacks the markers {BEGIN} and {END}")
    return f"{before}{BEGIN}\n```text\n{shown}\n```\n{END}{after}"


def _line(depth: int, name: str, said: str) -> str:
    return f"{'  ' * depth + name:<{_COLUMN}}{said}"


def main(arguments: list[str]) -> None:
    """Print the tree, or write it into the page."""
    shown = "\n".join(tree(PACKAGE))
    if arguments == ["--write"]:
        PAGE.write_text(page(PAGE.read_text(encoding="utf-8"), shown), encoding="utf-8")
    elif not arguments:
        print(shown)
    else:
        raise SystemExit("usage: scripts/architecture.py [--write]")


if __name__ == "__main__":
    main(sys.argv[1:])
