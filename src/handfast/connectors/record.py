"""handfast.json: what a checkpoint was written by, in words that can be compared before anything starts."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

from handfast import __version__
from handfast.errors import SpecError
from handfast.spec.join import JoinSpec
from handfast.spec.moment import EARLIEST, LATEST, format_moment
from handfast.spec.window import CountWindow, TimeWindow, exact_duration

NAME = "handfast.json"

Record = dict[str, Any]


def record_of(spec: JoinSpec, columns: Mapping[str, str], cores: int, *, apart: bool) -> Record:
    """What a checkpoint belongs to: the join, the columns of its streams, the number of cores.

    And whether refused rows are written apart: then files are laid out in another way, which a stream cannot change.
    """
    streams = {s.name: {**_readable(s), "columns": columns[s.name]} for s in spec.streams}
    rest = {f.name: _plain(getattr(spec, f.name)) for f in fields(spec) if f.name != "streams"}
    refused = "written" if apart else "counted"
    first = {"handfast": __version__, "cores": cores, "refused_rows": refused}
    return {**first, **rest, "names": list(spec.names), "streams": streams}


def differences(before: Record, now: Record) -> list[str]:
    """What is another one now, line by line; the version of handfast may differ.

    What an earlier version did not know to ask for was as it is by default.
    """
    old, new = _unsaid() | _flat(before), _flat(now)
    names = [name for name in (*old, *(n for n in new if n not in old)) if name != "handfast"]
    return [
        f"{name} was {_said(old.get(name))}, is {_said(new.get(name))}"
        for name in names
        if old.get(name) != new.get(name)
    ]


def check(before: Record | None, now: Record, checkpoint: str) -> None:
    """Refuse to go on from the checkpoint of another join, and say what differs."""
    if before is None:
        return
    lines = differences(before, now)
    if lines:
        cores = " (its state is divided among the cores)" if any(line.startswith("cores ") for line in lines) else ""
        raise SpecError(
            "\n  ".join([f"The checkpoint {checkpoint} was written by another join:", *lines])
            + f"\ngo back to what it was, or take a new checkpoint and a new sink path{cores}"
        )


def read(folder: Path) -> Record | None:
    """The record of a checkpoint on this machine, if it has one."""
    path = folder / NAME
    return parse(path.read_text(encoding="utf-8"), str(path)) if path.exists() else None


def write(folder: Path, record: Record) -> None:
    """Put the record into a checkpoint on this machine."""
    folder.mkdir(parents=True, exist_ok=True)
    hidden = folder / f".{NAME}.new"
    hidden.write_text(text(record), encoding="utf-8")
    hidden.replace(folder / NAME)


def text(record: Record) -> str:
    """The record as it is written."""
    return json.dumps(record, indent=2, ensure_ascii=False) + "\n"


def parse(said: str, where: str) -> Record:
    """The record in a text."""
    try:
        record = json.loads(said)
    except ValueError:
        record = None
    if not isinstance(record, dict):
        raise SpecError(f"{where} is not what handfast has written there; take a new checkpoint")
    return record


def _readable(value: Any) -> Record:
    plain = {f.name: _plain(getattr(value, f.name)) for f in fields(value) if f.name != "name"}
    said = {name: _WORDS[name](own) for name, own in plain.items() if name in _WORDS and own is not None}
    return plain | said


def _bound(micros: int) -> str | None:
    """A time that was asked for; the ends of the calendar are not."""
    return None if micros in (EARLIEST, LATEST) else format_moment(micros)


_WORDS: Mapping[str, Callable[[int], str | None]] = {
    "lateness": exact_duration,
    "idle_timeout": exact_duration,
    "valid_from": _bound,
    "valid_to": _bound,
}


def _plain(value: Any) -> Any:
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, TimeWindow):
        return exact_duration(value.length)
    if isinstance(value, CountWindow):
        return str(value)
    if isinstance(value, Mapping):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return _readable(value) if is_dataclass(value) else str(value)


def _unsaid() -> Record:
    """What a join is where nothing is said."""
    parameters = inspect.signature(JoinSpec).parameters
    return {f.name: _plain(parameters[f.name].default) for f in fields(JoinSpec) if f.name not in ("streams", "on")}


def _flat(record: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for name, value in record.items():
        if isinstance(value, Mapping):
            flat |= _flat(value, f"{prefix}{name}.")
        else:
            flat[prefix + name] = value
    return {name.removeprefix("streams."): value for name, value in flat.items()}


def _said(value: Any) -> str:
    return "nothing" if value is None else repr(value) if isinstance(value, str) else str(value)
