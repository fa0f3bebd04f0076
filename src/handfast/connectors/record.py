"""handfast.json: which join a checkpoint was written by, to be compared before anything starts."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from handfast import __version__
from handfast.errors import SpecError
from handfast.spec.fingerprint import changes, fingerprint_of, of_stream
from handfast.spec.join import JoinSpec

NAME = "handfast.json"

Record = dict[str, Any]

_DEFAULTS_THEN = {"how": "inner", "in_order": "False", "order": "event"}  # of the first versions' records; else None


def record_of(spec: JoinSpec, columns: Mapping[str, str], cores: int, *, apart: bool) -> Record:
    """What a checkpoint belongs to: the number of cores, and the join with the columns of its streams.

    And whether refused rows are written apart: then files are laid out in another way, which a stream cannot change.
    """
    refused = "written" if apart else "counted"
    return {"handfast": __version__, "cores": cores, "refused_rows": refused, **fingerprint_of(spec, columns)}


def differences(before: Record, now: Record) -> list[str]:
    """What differs, line by line; the version of handfast may."""
    return [line for what, line in changes(before, now).items() if what != "handfast"]


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
    return _in_fields(record)


def _in_fields(record: Record) -> Record:
    """A record of the first versions, which nested the streams and spelled out every default, in today's fields."""
    streams = record.get("streams")
    if not isinstance(streams, Mapping):
        return record
    about: Record = {what: record[what] for what in ("handfast", "cores", "refused_rows") if what in record}
    asked = {what: value for what, value in record.items() if what not in (*about, "names", "streams")}
    asked |= {of_stream(what, name): value for name, own in streams.items() for what, value in own.items()}
    texts = {what: str(tuple(v) if isinstance(v, list) else v) for what, v in asked.items() if v is not None}
    said = {what: text for what, text in texts.items() if text != _DEFAULTS_THEN.get(what)}
    return {**about, "streams": ", ".join(record.get("names", streams)), **said}
