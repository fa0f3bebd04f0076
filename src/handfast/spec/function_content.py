"""What a Python function does, as a value: its code, and all that the code uses from outside.

The same in every process, so that a checkpoint can tell the function it knows from another one.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from types import BuiltinFunctionType, CodeType, FunctionType, ModuleType
from typing import Any

from handfast.errors import SpecError

Content = tuple[Any, ...]


def content_of(function: Callable[..., Any], name: str) -> Content:
    """The content of a function; an error where it uses something that cannot be told from something else."""
    return _function(function, name, ())


def _function(function: Any, name: str, within: tuple[Any, ...]) -> Content:
    code: CodeType = function.__code__
    if code in within:
        return ("itself", code.co_name)
    within = (*within, code)
    try:
        cells = {n: cell.cell_contents for n, cell in zip(code.co_freevars, function.__closure__ or (), strict=True)}
    except ValueError:
        raise SpecError(f"The predicate {name!r} uses itself; define it at the top of a module") from None
    used = {n: function.__globals__[n] for n in _names(code) if n in function.__globals__}
    outside = sorted((n, _value(value, name, n, within)) for n, value in {**used, **cells}.items())
    return (
        "function",
        _code(code),
        tuple(outside),
        tuple(_value(d, name, "a default", within) for d in function.__defaults__ or ()),
    )


def _names(code: CodeType) -> set[str]:
    """The names that code looks up outside, inner functions' too."""
    inner = [_names(constant) for constant in code.co_consts if isinstance(constant, CodeType)]
    return set(code.co_names).union(*inner)


def _code(code: CodeType) -> Content:
    constants = tuple(_code(c) if isinstance(c, CodeType) else _plain(c) for c in code.co_consts)
    return code.co_code.hex(), constants, code.co_names, code.co_varnames, code.co_freevars


def _value(value: Any, name: str, where: str, within: tuple[Any, ...]) -> Any:
    """A value that a function uses, as text that is another one for any other value."""
    inner = getattr(value, "py_func", value)  # what Numba has compiled
    if isinstance(inner, FunctionType):
        return _function(inner, name, within)
    if isinstance(value, ModuleType):
        return "module", value.__name__
    if isinstance(value, BuiltinFunctionType | type):
        return "name", value.__module__, value.__qualname__
    if hasattr(value, "tobytes") and hasattr(value, "dtype"):  # an array or a number of NumPy's
        return "array", str(value.dtype), getattr(value, "shape", ()), hashlib.blake2b(value.tobytes()).hexdigest()
    text = _plain(value)
    if isinstance(text, str) and " at 0x" in text:
        raise SpecError(
            f"The predicate {name!r} uses {where!r}, a {type(value).__name__}; a predicate can use numbers, text, "
            "tuples, arrays, modules and functions from outside"
        )
    return text


def _plain(value: Any) -> Any:
    """A constant as text; a set's members in order, which is another one in every process."""
    if isinstance(value, tuple | list):
        return type(value).__name__, tuple(_plain(item) for item in value)
    if isinstance(value, set | frozenset):
        return "set", tuple(sorted(map(repr, value)))
    return repr(value)
