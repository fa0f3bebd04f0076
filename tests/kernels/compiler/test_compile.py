"""The vectors that a scan is asked for are those of its machine code."""

from __future__ import annotations

import pytest
from llvmlite import ir

import handfast as hf
from handfast.kernels.compiler import compile as kernels
from handfast.kernels.sizes import Vectors
from handfast.spec.expression import Literal
from handfast.spec.types import BOOLEAN

TRUE = Literal(True, BOOLEAN)


@pytest.mark.parametrize("vectors", [Vectors(), Vectors(lanes=16, group=2), Vectors(lanes=4, group=1)])
def test_a_scan_has_as_many_lanes_and_vectors_as_it_is_asked_for(
    vectors: Vectors, monkeypatch: pytest.MonkeyPatch
) -> None:
    modules: list[ir.Module] = []
    monkeypatch.setattr(kernels, "load", lambda module, words: modules.append(module) or {"scan": None})
    kernels.scan_kernel.__wrapped__(TRUE, ((), ()), (False, False), vectors, 0, False, False)
    (module,) = modules
    assert vectors.group == str(module).count(f"bitcast <{vectors.lanes} x i1>")


def test_vectors_that_no_word_has_bits_for_are_refused() -> None:
    for lanes, group in ((8, 3), (32, 4), (0, 4)):
        with pytest.raises(hf.SpecError, match="a power of two of pairs together, at most 64"):
            Vectors(lanes, group)
