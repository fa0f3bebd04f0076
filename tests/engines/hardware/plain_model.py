"""The fast model run by Python itself, not compiled; with a bug, if one is asked for."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numba
import numba.extending
import pytest

from handfast.errors import InternalError
from tests.engines.hardware.observed import Case, Observed, of_model

ROOM = "handfast.engines.hardware.model"
FILES = (
    *("bits", "sources", "fifos", "links", "pairs", "tree", "adaptive", "pipelined", "chain", "advance", "circuit"),
    *("ring_lists", "ring_stage", "ring_loop", "circular", "line_stage", "line_loop", "stashed"),
)


def in_python(patch: pytest.MonkeyPatch, file: str = "", right: str = "", wrong: str = "") -> ModuleType:
    """The model with the text of a file changed, until the test is over."""
    original = importlib.import_module(ROOM)
    assert original.__file__ is not None
    patch.setattr(numba, "njit", lambda **options: lambda function: function)
    patch.setattr(numba.extending, "intrinsic", lambda function: _lowest)
    for name in FILES:
        path = Path(original.__file__).with_name(f"{name}.py")
        text = path.read_text()
        if name == file:
            assert 1 == text.count(right), right
            text = text.replace(right, wrong)
        module = ModuleType(f"{ROOM}.{name}")
        module.__file__ = str(path)
        patch.setitem(sys.modules, module.__name__, module)
        patch.setattr(original, name, module, raising=False)
        exec(compile(text, str(path), "exec"), vars(module))  # noqa: S102 (the model's own text)
    return sys.modules[f"{ROOM}.circuit"]


def observed(model: ModuleType, case: Case) -> Observed | None:
    """The run in a model; None where it stands still."""
    try:
        return of_model(model.run(case.shape, case.steps, case.pairs(), every=case.every, levels_every=1))
    except InternalError as error:
        assert "stands still" in str(error)
        return None


def _lowest(word: Any) -> int:
    return (int(word) & -int(word)).bit_length() - 1
