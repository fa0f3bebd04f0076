"""A predicate written in Python: a function of columns, compiled by Numba, that rides in a tree as one call."""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from handfast.errors import SpecError
from handfast.spec.expression import Call, Column, Op
from handfast.spec.frozen_function import Frozen, freeze, thaw
from handfast.spec.function_content import content_of
from handfast.spec.schema import Schema
from handfast.spec.types import BOOLEAN, Kind, Type


@dataclass(frozen=True, slots=True)
class PythonPredicate:
    """A Python function as a predicate, as it was when this was made; two are the same when what they do is."""

    name: str
    parameters: tuple[str, ...]
    code: str  # a digest of the code and of all that it uses
    frozen: Frozen = field(repr=False, compare=False)
    function: Callable[..., Any] = field(repr=False, compare=False, init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "function", thaw(self.frozen))

    def __reduce__(self) -> tuple[Any, ...]:
        """What travels is the frozen function: the live one is none that a module has."""
        return PythonPredicate, (self.name, self.parameters, self.code, self.frozen)

    def places(self, streams: tuple[str, ...]) -> list[tuple[str, str]]:
        """The stream and the column that each parameter names."""
        found = []
        for parameter in self.parameters:
            owners = [stream for stream in streams if parameter.startswith(f"{stream}_")]
            if not owners:
                raise SpecError(
                    f"The parameter {parameter!r} of predicate {self.name!r} names no column of the join; "
                    f"call it <stream>_<column>, the stream one of {', '.join(streams)}"
                )
            stream = max(owners, key=len)
            found.append((stream, parameter[len(stream) + 1 :]))
        return found

    def bind(self, schemas: Mapping[str, Schema]) -> Call:
        """The call as a tree over the streams' columns."""
        names = tuple(schemas)
        columns = []
        for parameter, (stream, wanted) in zip(self.parameters, self.places(names), strict=True):
            column, type_ = schemas[stream].column(stream, wanted)
            if not _is_plain(type_):
                raise SpecError(
                    f"The parameter {parameter!r} of predicate {self.name!r} is of type {type_}; a Python predicate "
                    "takes numbers, booleans, dates (days) and timestamps (microseconds), the rest can be said in SQL "
                    "beside it: on=['r.name = s.name', hf.predicate(…)]"
                )
            columns.append(Column(names.index(stream), column, type_))
        return Call(Op.PYTHON, tuple(columns), BOOLEAN, self)

    def sql(self, streams: tuple[str, ...]) -> str:
        """The call as SQL would write it, if a function of that name were known there."""
        return f"{self.name}({', '.join(f'`{s}`.`{c}`' for s, c in self.places(streams))})"


def predicate(function: Callable[..., Any]) -> PythonPredicate:
    """A Python function as a predicate: `on=hf.predicate(near)`, or beside SQL, `on=["r.k = s.k", hf.predicate(near)]`.

    Its parameters name the columns that it reads, each as `<stream>_<column>`. It gets numbers and booleans as they
    are, dates as days and timestamps as microseconds since 1970. Numba compiles it, so its integers have 64 bits. Where
    one of its values is NULL it is not called and the pair does not match; nor does a pair that it raises an error for.
    What it uses from outside, also through the functions that it calls, counts as it is now.

    Args:
        function: A function that Numba can compile, such as `lambda r_x, s_x: abs(r_x - s_x) < 5`.
    """
    if not inspect.isfunction(function) or inspect.iscoroutinefunction(function):
        raise SpecError(f"hf.predicate takes a plain Python function, not {function!r}")
    kinds = {parameter.kind for parameter in inspect.signature(function).parameters.values()}
    if kinds - {inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.POSITIONAL_ONLY}:
        raise SpecError(f"The parameters of predicate {function.__name__!r} must be plain ones, one for each column")
    if not kinds:
        raise SpecError(f"The predicate {function.__name__!r} has no parameters; name the columns it reads, like r_x")
    name = function.__name__ if function.__name__.isidentifier() else "lambda"
    frozen = freeze(function, name)
    digest = hashlib.blake2b(repr(content_of(frozen)).encode(), digest_size=8).hexdigest()
    return PythonPredicate(name, tuple(inspect.signature(function).parameters), digest, frozen)


def _is_plain(type_: Type) -> bool:
    numeric = type_.is_integer or type_.is_floating
    return numeric or type_.is_timestamp or type_.kind in (Kind.BOOLEAN, Kind.DATE)
