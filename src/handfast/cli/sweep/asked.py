"""What a grid is asked to vary: values from a TOML file, with what options say in their place."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from handfast.errors import SpecError
from handfast.spec.schema import nearest

Asked = dict[str, tuple[Any, ...]]  # by parameter, its values
Rule = tuple[Callable[[Any], bool], str]  # whether a value is right, and what it has to be


def read_asked(path: Path | None, options: Mapping[str, str | None]) -> Asked:
    """The values of each parameter that is given.

    Args:
        path: Of a file whose keys are the parameters, each a value or a list of them.
        options: By parameter, values with commas between them; None leaves the file's.
    """
    asked = {name: _values(value) for name, value in (_parsed(path) if path is not None else {}).items()}
    for name, given in options.items():
        if given is not None:
            asked[name] = tuple(_read(part.strip()) for part in given.split(","))
    return asked


def check_names(asked: Asked, known: tuple[str, ...], where: str) -> None:
    """Refuse what is no parameter."""
    for name in asked:
        if name not in known:
            near = nearest(name, known)
            hint = f"; did you mean {near!r}?" if near else ""
            raise SpecError(f"{where} has {name!r}, which is no parameter of a grid{hint} ({', '.join(known)})")


def check_values(grid: Any, rules: Mapping[str, Rule], *, may_be_empty: str) -> None:
    """Refuse values that break their rule, and parameters without any."""
    for name, (is_right, rule) in rules.items():
        values = getattr(grid, name)
        for value in values:
            if not is_right(value):
                raise SpecError(f"The grid's {name} must be {rule}, not {value!r}")
        if not values and name != may_be_empty:
            raise SpecError(f"The grid's {name} has no value: give at least one, or leave it out")


def number(least: int, most: int | None = None) -> Callable[[Any], bool]:
    """Whether a value is a whole number in these bounds."""

    def is_right(value: Any) -> bool:
        is_number = isinstance(value, int) and not isinstance(value, bool)
        return is_number and value >= least and (most is None or value <= most)

    return is_right


def one_of(names: Sequence[str]) -> Callable[[Any], bool]:
    """Whether a value is one of these."""
    return lambda value: value in names


def _parsed(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise SpecError(f"There is no file {path}") from None
    except (OSError, UnicodeDecodeError) as error:
        raise SpecError(f"{path} cannot be read: {error}") from None
    except tomllib.TOMLDecodeError as error:
        raise SpecError(f"{path} is not valid TOML: {error}") from None


def _values(value: Any) -> tuple[Any, ...]:
    return tuple(value) if isinstance(value, list) else (value,)


def _read(text: str) -> Any:
    """A value from the text of an option: a number where it is one; the rules say whether it fits."""
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
