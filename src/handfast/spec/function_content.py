"""What a frozen function does, as plain text in tuples: its code, and all that the code uses from outside.

The same in every process, so that a checkpoint can tell the function it knows from another one.
"""

from __future__ import annotations

import hashlib
from types import BuiltinFunctionType, CodeType
from typing import Any

from handfast.spec.frozen_function import Frozen, FrozenModule, Reference, code_of

Content = tuple[Any, ...]


def content_of(frozen: Frozen) -> Content:
    """The content of a function: another one for any function that does something else."""
    return _part(frozen, 0, ())


def _part(frozen: Frozen, place: int, within: tuple[int, ...]) -> Content:
    part = frozen[place]
    if place in within:
        return ("itself", part.name)
    within = (*within, place)
    if isinstance(part, FrozenModule):
        known = ("module", part.name)
        return known if part.attributes is None else (*known, _outside(frozen, part.attributes, within))
    return (
        "function",
        _code(code_of(part)),
        _outside(frozen, {**part.used, **part.captured}, within),
        tuple(_value(default) for default in part.defaults),
    )


def _outside(frozen: Frozen, values: dict[str, Any], within: tuple[int, ...]) -> Content:
    return tuple(
        sorted(
            (name, _part(frozen, value.place, within) if isinstance(value, Reference) else _value(value))
            for name, value in values.items()
        )
    )


def _code(code: CodeType) -> Content:
    constants = tuple(_code(c) if isinstance(c, CodeType) else _value(c) for c in code.co_consts)
    return code.co_code.hex(), constants, code.co_names, code.co_varnames, code.co_freevars


def _value(value: Any) -> Any:
    """A value as text that is another one for any other value; a set's members in order, in every process the same."""
    if isinstance(value, BuiltinFunctionType | type):
        return "name", value.__module__, value.__qualname__
    if hasattr(value, "tobytes") and hasattr(value, "dtype"):  # an array or a number of NumPy's
        return "array", str(value.dtype), getattr(value, "shape", ()), hashlib.blake2b(value.tobytes()).hexdigest()
    if isinstance(value, tuple | list):
        return type(value).__name__, tuple(_value(item) for item in value)
    if isinstance(value, set | frozenset):
        return "set", tuple(sorted(map(repr, value)))
    return repr(value)
