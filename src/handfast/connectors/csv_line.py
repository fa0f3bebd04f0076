"""One line of csv cut into cells, where Spark cuts it."""

from __future__ import annotations

import re

BLANK = "".join(map(chr, range(0x21)))  # what Java trims: the space, and all before it
_QUOTED = re.compile(r'"([^"]*+(?:""[^"]*+)*+)("[\x00-\x20]*+)?')


def cells(line: str, separator: str) -> list[str]:
    """The cells of a line without its end; every line is a row of its own, whatever its quotes."""
    if '"' not in line:
        return line.split(separator)
    found = []
    at = 0
    while True:
        cell, end = _cell(line, at, separator)
        found.append(cell)
        if end == len(line):
            return found
        at = end + 1


def _cell(line: str, at: int, separator: str) -> tuple[str, int]:
    """The cell that begins at `at`, and where it ends."""
    quoted = _QUOTED.match(line, at)
    if not quoted:
        return _up_to_separator(line, at, separator)
    content = quoted[1].replace('""', '"')
    if quoted[2] is None:  # no quote closes it: it goes on to the end of the line
        return content or '"', len(line)
    if separator in quoted[2]:  # one that is blank itself, like a tab
        return content, line.index(separator, quoted.start(2))
    if quoted.end() == len(line) or line[quoted.end()] == separator:
        return content, quoted.end()
    # something stands behind the closing quote: then the quotes belong to the cell
    rest, end = _up_to_separator(line, quoted.start(2), separator)
    return f'"{content}{rest}', end


def _up_to_separator(line: str, at: int, separator: str) -> tuple[str, int]:
    end = line.find(separator, at)
    end = len(line) if end < 0 else end
    return line[at:end], end
