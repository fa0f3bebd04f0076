"""The options of a circuit on the command line: one for each of `HardwareOptions`, with its words and its default."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields
from functools import wraps
from types import NoneType
from typing import Annotated, Any, get_args, get_type_hints

import typer

from handfast.engines.hardware.options import NESTED_LOOP, HardwareOptions
from handfast.errors import SpecError, UnsupportedError

Asked = dict[str, Any]  # by field of HardwareOptions: what the user said, or its default

_KINDS = (int, float, str, bool)  # what a command line can say
_ARGUMENT = re.compile(r"^        (\w+): (.*(?:\n {12}.*)*)", re.MULTILINE)
_CORES = "How many join cores the chain has; as many as the pipeline's by default."  # where there is no pipeline: 4
_FIELDS = "|".join(field.name for field in fields(HardwareOptions))
_NAMED = re.compile(rf"HardwareOptions\((\w+)=(?:…|'(\w+)')\)|(?:(?<=with )|(?<=takes ))({_FIELDS})=(\w+)")


def of_circuit(*, runs: bool) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command the options of a circuit, of one that runs or one that does not; it takes them as `circuit`."""
    added = [option for option in _options() if runs or option.name != "simulator"]

    def give(command: Callable[..., None]) -> Callable[..., None]:
        @wraps(command)
        def with_options(**given: Any) -> None:
            circuit = {option.name: given.pop(option.name) for option in added}
            command(**given, circuit=circuit)

        own = inspect.signature(command, eval_str=True)
        kept = [parameter for parameter in own.parameters.values() if parameter.name != "circuit"]
        with_options.__signature__ = own.replace(parameters=[*kept, *added])  # type: ignore[attr-defined]
        return with_options

    return give


def circuit_options(asked: Asked, *, cores: int | None) -> HardwareOptions:
    """The options that were asked for; with as many cores as the pipeline has if nothing is said about them."""
    said = dict(asked)
    if said["cores"] is None and said["algorithm"] != NESTED_LOOP:
        said["cores"] = cores
    with options_as_typed():
        return HardwareOptions(**said)


@contextmanager
def options_as_typed() -> Iterator[None]:
    """Name the options of a circuit as they are written on the command line, in what is raised about them."""
    try:
        yield
    except (SpecError, UnsupportedError) as error:
        raise type(error)(_NAMED.sub(_as_typed, str(error))) from None


def _options() -> list[inspect.Parameter]:
    types, words = get_type_hints(HardwareOptions), _words()
    found = []
    for field in fields(HardwareOptions):
        kinds = [kind for kind in get_args(types[field.name]) or (types[field.name],) if kind is not NoneType]
        if len(kinds) == 1 and kinds[0] in _KINDS:
            option = typer.Option(_flag(field.name), help=words.get(field.name), show_default=field.default is not None)
            kind: Any = Annotated[types[field.name], option]
            found.append(
                inspect.Parameter(field.name, inspect.Parameter.KEYWORD_ONLY, default=field.default, annotation=kind)
            )
    return found


def _words() -> Mapping[str, str]:
    """What the docstring says about each option, up to its first full stop."""
    said = {name: " ".join(text.split()) for name, text in _ARGUMENT.findall(HardwareOptions.__doc__ or "")}
    return {name: text.partition(". ")[0].rstrip(".") + "." for name, text in said.items()} | {"cores": _CORES}


def _as_typed(option: re.Match[str]) -> str:
    name, value = option[1] or option[3], option[2] or option[4]
    return _flag(name) + (f" {value}" if value else "")


def _flag(name: str) -> str:
    return "--" + name.replace("_", "-")
