"""A Python function frozen: its code and all that it uses from outside, as they are now, as a value that travels."""

from __future__ import annotations

import builtins
import copy
import dis
import marshal
import sys
import sysconfig
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from types import BuiltinFunctionType, CellType, CodeType, FunctionType, ModuleType
from typing import Any

from handfast.errors import SpecError


@dataclass(frozen=True, slots=True)
class Reference:
    """The function or module at this place of a frozen function."""

    place: int


@dataclass(frozen=True, slots=True)
class FrozenCode:
    """One function: its code, and the globals, captured variables and defaults that it uses."""

    name: str
    module: str | None
    code: bytes
    used: dict[str, Any]
    captured: dict[str, Any]
    defaults: tuple[Any, ...]
    options: dict[str, Any] | None  # Numba's, where the user has compiled it


@dataclass(frozen=True, slots=True)
class FrozenModule:
    """A module: a library's is its name, any other the attributes that are used."""

    name: str
    attributes: dict[str, Any] | None


Frozen = tuple[FrozenCode | FrozenModule, ...]  # the first is the function, the others what it uses
Decorate = Callable[[FunctionType, dict[str, Any] | None], Any]


def freeze(function: FunctionType, name: str) -> Frozen:
    """The function as it is now; an error that names what cannot be kept."""
    freezer = _Freezer(name)
    freezer.function(function, None)
    return tuple(part for part in freezer.parts if part is not None)


def thaw(frozen: Frozen, decorate: Decorate = lambda function, options: function) -> Any:
    """The function again, on its own: it and those it calls are decorated, such as compiled."""
    functions: dict[int, FunctionType] = {}
    live: list[Any] = []
    for place, part in enumerate(frozen):
        if isinstance(part, FrozenModule):
            live.append(import_module(part.name) if part.attributes is None else ModuleType(part.name))
            continue
        scope = {"__builtins__": builtins, "__name__": part.module}
        cells = tuple(CellType() for _ in part.captured)
        functions[place] = FunctionType(marshal.loads(part.code), scope, part.name, part.defaults or None, cells)
        live.append(decorate(functions[place], part.options))
    for place, part in enumerate(frozen):
        if isinstance(part, FrozenModule):
            vars(live[place]).update(_live(part.attributes or {}, live))
            continue
        functions[place].__globals__.update(_live(part.used, live))
        for cell, value in zip(functions[place].__closure__ or (), _live(part.captured, live).values(), strict=True):
            cell.cell_contents = value
    return live[0]


def code_of(part: FrozenCode) -> CodeType:
    """The code of a frozen function."""
    code: CodeType = marshal.loads(part.code)
    return code


def _live(values: dict[str, Any], live: list[Any]) -> dict[str, Any]:
    return {name: live[value.place] if isinstance(value, Reference) else value for name, value in values.items()}


class _Freezer:
    """Freezes one function and, once each, the functions and modules that it uses."""

    def __init__(self, name: str) -> None:
        self.parts: list[FrozenCode | FrozenModule | None] = []
        self._name = name
        self._places: dict[tuple[int, ...], int] = {}

    def function(self, function: FunctionType, options: dict[str, Any] | None) -> Reference:
        known = self._places.get((id(function),))
        if known is not None:
            return Reference(known)
        place = self._place((id(function),))
        code = function.__code__
        self._check_defined(function)
        names = _names(code)
        used = {
            n: self._value(function.__globals__[n], n, place, names) for n in sorted(names) if n in function.__globals__
        }
        captured = {}
        for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=True):
            try:
                captured[name] = self._value(cell.cell_contents, name, place, names)
            except ValueError:
                raise SpecError(
                    f"The predicate {self._name!r} uses {name!r}, which has no value yet; define it first"
                ) from None
        defaults = tuple(self._constant(value, "a default") for value in function.__defaults__ or ())
        self.parts[place] = FrozenCode(
            function.__name__, function.__module__, marshal.dumps(code), used, captured, defaults, options
        )
        return Reference(place)

    def _module(self, module: ModuleType, where: str, user: int, names: set[str]) -> Reference:
        key = (id(module), user)
        if key in self._places:
            return Reference(self._places[key])
        place = self._place(key)
        attributes = None
        if not _is_library(module):
            found = sorted(name for name in names if hasattr(module, name))
            attributes = {n: self._value(getattr(module, n), f"{where}.{n}", user, names) for n in found}
        self.parts[place] = FrozenModule(module.__name__, attributes)
        return Reference(place)

    def _place(self, key: tuple[int, ...]) -> int:
        self._places[key] = len(self.parts)
        self.parts.append(None)
        return self._places[key]

    def _value(self, value: Any, where: str, user: int, names: set[str]) -> Any:
        """A value that the function `user` uses, which names these names."""
        inner = getattr(value, "py_func", value)  # what Numba has compiled
        if isinstance(inner, FunctionType):
            return self.function(inner, getattr(value, "targetoptions", None))
        if isinstance(value, ModuleType):
            return self._module(value, where, user, names)
        return self._constant(value, where)

    def _constant(self, value: Any, where: str) -> Any:
        """A value that nobody can change any more."""
        if isinstance(value, BuiltinFunctionType) and not isinstance(value.__self__, ModuleType | type | None):
            raise self._refusal(value, where)  # a method of something that may change
        if isinstance(value, BuiltinFunctionType | type):
            return value
        if isinstance(value, tuple):
            items = [self._constant(item, where) for item in value]
            return type(value)(*items) if hasattr(value, "_fields") else tuple(items)
        if hasattr(value, "tobytes") and hasattr(value, "dtype"):  # an array or a number of NumPy's
            if value.dtype.hasobject:
                raise SpecError(
                    f"The predicate {self._name!r} uses {where!r}, an array of objects; make it one of numbers"
                )
            kept = value.copy()
            kept.setflags(write=False)
            return kept
        if " at 0x" in repr(value):
            raise self._refusal(value, where)
        try:
            return copy.deepcopy(value)
        except Exception as error:
            raise self._refusal(value, where) from error

    def _refusal(self, value: Any, where: str) -> SpecError:
        return SpecError(
            f"The predicate {self._name!r} uses {where!r}, a {type(value).__name__}; a predicate can use numbers, "
            "text, tuples, arrays, modules and functions from outside"
        )

    def _check_defined(self, function: FunctionType) -> None:
        for name in _looked_up(function.__code__):
            if name not in function.__globals__ and not hasattr(builtins, name):
                raise SpecError(
                    f"The predicate {self._name!r} uses {name!r}, which is not defined; define it before hf.predicate"
                )


def _names(code: CodeType) -> set[str]:
    """The names that code uses outside, of attributes as well, inner functions' too."""
    inner = [_names(constant) for constant in code.co_consts if isinstance(constant, CodeType)]
    return set(code.co_names).union(*inner)


def _looked_up(code: CodeType) -> set[str]:
    """The names of globals and builtins that code looks up, inner functions' too."""
    inner = [_looked_up(constant) for constant in code.co_consts if isinstance(constant, CodeType)]
    own = {step.argval for step in dis.get_instructions(code) if step.opname in ("LOAD_GLOBAL", "LOAD_NAME")}
    return own.union(*inner)


def _is_library(module: ModuleType) -> bool:
    """Whether a module's attributes do not change: one of Python's, NumPy's or Numba's own."""
    top = module.__name__.partition(".")[0]
    if top in ("numpy", "numba", "scipy"):
        return True
    file = getattr(module, "__file__", None)
    homes = tuple(sysconfig.get_path(path) for path in ("stdlib", "platstdlib"))
    return top in sys.stdlib_module_names and (file is None or file.startswith(homes))
