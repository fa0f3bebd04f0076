"""What pages in HTML are made of, and how one is written: it needs nothing from anywhere else."""

from __future__ import annotations

import os
from base64 import b64encode
from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path

from handfast.errors import SpecError

_STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; color: #22252b; background: #fff; margin: 0 auto; padding: 1.5rem;
  max-width: 60rem; }
h1 { font-size: 1.7rem; line-height: 1.2; } h2 { font-size: 1.25rem; margin-top: 2.4rem; }
table { border-collapse: collapse; margin: 1rem 0; font-size: .92rem; }
th, td { padding: .3rem .7rem; border-bottom: 1px solid #dfe3e8; text-align: right; vertical-align: top; }
th { border-bottom: 2px solid #9aa3ad; } th:first-child, td:first-child, .words { text-align: left; }
td { font-variant-numeric: tabular-nums; white-space: nowrap; } td.words { white-space: normal; }
tr.chosen td { background: #eaf4f8; }
figure { margin: 1.2rem 0; } figure img { width: 100%; height: auto; }
figcaption, .note { color: #4b5563; font-size: .92rem; }
td.verdict { text-align: left; }
.scroll { overflow-x: auto; }
pre { font: .82rem/1.35 ui-monospace, monospace; background: #f5f7f9; padding: .8rem; overflow-x: auto; }
""".strip()

Rows = Iterable[Sequence[str]]


def whole(title: str, parts: Sequence[str]) -> str:
    """The page."""
    body = "\n".join(parts)
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>\n{_STYLE}\n</style>\n</head>\n"
        f"<body>\n{body}\n</body>\n</html>\n"
    )


def picture_of(svg: str, caption: str) -> str:
    """A figure with its caption."""
    inline = b64encode(svg.encode()).decode()
    said = escape(caption)
    return (
        f'<figure><img src="data:image/svg+xml;base64,{inline}" alt="{said}">\n<figcaption>{said}</figcaption></figure>'
    )


def table(
    head: Sequence[str],
    rows: Rows,
    *,
    words: int,
    verdict: bool = False,
    shaded: set[int] | frozenset[int] = frozenset(),
) -> str:
    """A table whose first columns are words, and whose others are figures; perhaps the last one is a verdict."""

    def cell(kind: str, place: int, text: str) -> str:
        named = "words" if place < words else "verdict" if verdict and place == len(head) - 1 else ""
        return f"<{kind}{f' class={named}' if named else ''}>{escape(text)}</{kind}>"

    def line(kind: str, cells: Sequence[str]) -> str:
        return "".join(cell(kind, place, text) for place, text in enumerate(cells))

    lines = [
        f"<tr{' class=chosen' if number in shaded else ''}>{line('td', row)}</tr>" for number, row in enumerate(rows)
    ]
    top = f"<thead><tr>{line('th', head)}</tr></thead>" if any(head) else ""
    return f'<div class="scroll"><table>{top}<tbody>\n' + "\n".join(lines) + "\n</tbody></table></div>"


def preformatted(text: str) -> str:
    """Text as it stands, for what is drawn in letters."""
    return f"<pre>{escape(text)}</pre>"


def percent(part: float | None, digits: int = 3) -> str:
    """A difference as words."""
    return "—" if part is None else "0%" if part == 0 else f"{part:+.{digits}%}".replace("-", "−")


def check_out(out: Path) -> None:
    """Refuse a page that cannot be written."""
    if out.is_dir() or not out.parent.is_dir() or not os.access(out.parent, os.W_OK):
        raise SpecError(
            f"The page {out} is a file in a folder that is there and may be written to; choose another one with --out"
        )


def write_page(out: Path, text: str) -> None:
    """Write the page; it appears when it is whole."""
    part = out.with_name(f".{out.name}.part")
    part.write_text(text, encoding="utf-8")
    part.replace(out)
