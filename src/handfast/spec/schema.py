"""The columns of a stream, by name and type."""

from __future__ import annotations

import difflib
from dataclasses import dataclass

from handfast.errors import SpecError
from handfast.spec.types import Type


@dataclass(frozen=True, slots=True)
class Schema:
    """The columns of one stream in their order."""

    columns: tuple[tuple[str, Type], ...]

    def __post_init__(self) -> None:
        names = [name for name, _ in self.columns]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise SpecError(f"Column {twice[0]!r} stands twice in one stream; rename one of the two")

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(name for name, _ in self.columns)

    def find(self, name: str) -> tuple[str, Type] | None:
        """The column called `name`: exactly, or else (as in Spark) whatever the case, if there is just one."""
        for column in self.columns:
            if column[0] == name:
                return column
        alike = [column for column in self.columns if column[0].lower() == name.lower()]
        return alike[0] if len(alike) == 1 else None

    def column(self, stream: str, name: str) -> tuple[str, Type]:
        """The column called `name`, or an error that names the nearest one."""
        found = self.find(name)
        if found is not None:
            return found
        near = nearest(name, self.names)
        hint = f"; did you mean {near!r}?" if near else ""
        raise SpecError(f"Stream {stream!r} has no column {name!r}{hint} (it has {', '.join(self.names)})")


def nearest(name: str, names: tuple[str, ...]) -> str | None:
    """The one of `names` a slip of the pen away from `name`."""
    close = difflib.get_close_matches(name.lower(), [n.lower() for n in names], n=1, cutoff=0.5)
    return next((n for n in names if close and n.lower() == close[0]), None)
