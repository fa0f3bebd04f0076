"""One line of json as the fields of its object, every value as it is written: what Spark takes for json."""

from __future__ import annotations

import re
from collections.abc import Iterator

_SPACE = r"[ \t\r\n]*+"
_ESCAPE = r"""\\(?:["'\\/bfnrt]|u[0-9a-fA-F]{4})"""
_DOUBLE = rf'"([^"\\\x00-\x1f]*+(?:{_ESCAPE}[^"\\\x00-\x1f]*+)*+)"'
_SINGLE = rf"'([^'\\\x00-\x1f]*+(?:{_ESCAPE}[^'\\\x00-\x1f]*+)*+)'"
_BARE = r"-?(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?(?:[eE][+-]?[0-9]++)?|true|false|null|NaN|[+-]?Infinity|[+-]INF"

_START = re.compile(rf"\ufeff?{_SPACE}\{{{_SPACE}")
_NAME = re.compile(rf"{_SPACE}(?:{_DOUBLE}|{_SINGLE}){_SPACE}:{_SPACE}")
_SCALAR = re.compile(rf"{_DOUBLE}|{_SINGLE}|({_BARE})(?=[,\]}} \t\r\n])")
_OPEN = re.compile(rf"([\[{{]){_SPACE}")
_NEXT = re.compile(rf"{_SPACE}([,\]}}]){_SPACE}")
_ESCAPED = re.compile(r"\\(?:u([0-9a-fA-F]{4})|(.))")
_CONTROLS = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_CLOSES = {"[": "]", "{": "}"}
_DEEPEST = 1_000  # objects and arrays within each other
_LONGEST = 1_000  # characters of a number


class Bare(str):
    """What stands in json without quotes around it, as it is written: a number, true, an array, an object."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


class NotJson(ValueError):
    """A line that is no object in json; the message says what is wrong."""


def fields(line: str) -> Iterator[tuple[str, str | Bare | None]]:
    """The names and values of an object as they stand there; what stands behind the object is not read."""
    start = _START.match(line)
    if not start:
        raise NotJson("it is not a JSON object")
    at = start.end()
    if line.startswith("}", at):
        return
    mark = ","
    while mark == ",":
        name, at = _name(line, at)
        value, at = _value(line, at)
        yield name, value
        mark, at = _next(line, at, "}")


def _name(line: str, at: int) -> tuple[str, int]:
    name = _NAME.match(line, at)
    if not name:
        raise NotJson(f"it is not valid JSON: a name in quotes and a colon are missing at character {at + 1}")
    return _text(name[1] if name[1] is not None else name[2]), name.end()


def _value(line: str, at: int) -> tuple[str | Bare | None, int]:
    scalar = _SCALAR.match(line, at)
    if not scalar:
        end = _end_of_nested(line, at)
        return Bare(line[at:end]), end
    if scalar[3] is None:
        return _text(scalar[1] if scalar[1] is not None else scalar[2]), scalar.end()
    if len(scalar[3]) > _LONGEST:
        raise NotJson(f"it has a number of more than {_LONGEST:,} characters")
    return None if scalar[3] == "null" else Bare(scalar[3]), scalar.end()


def _end_of_nested(line: str, at: int) -> int:
    """Where the array or object ends that begins at `at`; all in it must be json too."""
    waiting: list[str] = []  # the brackets that are still to come
    while True:
        start = _OPEN.match(line, at)
        if start:
            if len(waiting) + 2 > _DEEPEST:
                raise NotJson(f"it has more than {_DEEPEST:,} arrays and objects within each other")
            waiting.append(_CLOSES[start[1]])
            at = start.end()
            if not line.startswith(waiting[-1], at):
                at = _name(line, at)[1] if waiting[-1] == "}" else at
                continue
            at += 1
            waiting.pop()
        elif waiting:
            at = _value(line, at)[1]
        else:
            raise NotJson(f"it is not valid JSON: there is no value at character {at + 1}")
        while waiting:
            mark, after = _next(line, at, waiting[-1])
            if mark == ",":
                at = _name(line, after)[1] if waiting[-1] == "}" else after
                break
            at = line.index(mark, at) + 1
            waiting.pop()
        else:
            return at


def _next(line: str, at: int, closing: str) -> tuple[str, int]:
    mark = _NEXT.match(line, at)
    if not mark or mark[1] not in (",", closing):
        raise NotJson(f"it is not valid JSON: a comma or {closing} is missing at character {at + 1}")
    return mark[1], mark.end()


def _text(written: str) -> str:
    """The text between quotes, its escapes resolved; half a character, which no text can hold, is a question mark."""
    if "\\" not in written:
        return written
    resolved = _ESCAPED.sub(_character, written)
    pairs = resolved.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
    return pairs.encode("utf-8", "replace").decode("utf-8")


def _character(escape: re.Match[str]) -> str:
    return chr(int(escape[1], 16)) if escape[1] else _CONTROLS.get(escape[2], escape[2])
