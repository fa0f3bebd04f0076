"""Runs a page: every Python snippet from top to bottom, and what it prints must be what the page says.

`python -P tests/pages.py README.md` runs one where nothing but handfast is installed: this file needs Python alone.
"""

from __future__ import annotations

import io
import re
import sys
from contextlib import redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ANYTHING = "…"  # in what a page says is printed, and in the errors it lists

_SNIPPET = re.compile(r"^```python\n(?P<code>.*?)^```\n(\n```text\n(?P<prints>.*?)^```\n)?", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Snippet:
    """A piece of Python, and the text block right behind it: what it prints."""

    line: int
    code: str
    prints: str


def snippets(page: str) -> list[Snippet]:
    """The Python snippets of a page, in their order."""
    return [
        Snippet(page.count("\n", 0, block.start()) + 2, block["code"], block["prints"] or "")
        for block in _SNIPPET.finditer(page)
    ]


def says(pattern: str, text: str) -> bool:
    """Whether `text` is what the page says, but for what it leaves out."""
    return re.fullmatch(".*?".join(map(re.escape, pattern.split(ANYTHING))), text, re.DOTALL) is not None


def run_page(path: Path, **names: Any) -> dict[str, Any]:
    """Run all snippets of a page in one namespace, which may have some names already, and give it back."""
    page = path.read_text(encoding="utf-8")
    run = snippets(page)
    assert page.count("```python") == len(run) > 0
    namespace: dict[str, Any] = {"__name__": "__main__", **names}
    for snippet in run:
        printed = io.StringIO()
        # padded, so that an error shows the line of the page
        code = compile("\n" * (snippet.line - 1) + snippet.code, str(path), "exec")
        with redirect_stdout(printed):
            exec(code, namespace)  # noqa: S102  the page is ours
        shown = _lines(printed.getvalue())
        assert says(_lines(snippet.prints), shown), f"{path.name} line {snippet.line} prints\n{shown}"
    return namespace


def _lines(text: str) -> str:
    return "\n".join(line.rstrip() for line in text.strip().splitlines())


if __name__ == "__main__":
    for name in sys.argv[1:]:
        run_page(Path(name))
        print(f"{name}: every snippet prints what the page says")
