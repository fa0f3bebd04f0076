"""The vectors that a scan is asked for are those of its machine code."""

from __future__ import annotations

import pytest
from llvmlite import ir

import handfast as hf
from handfast.kernels.compiler import scan
from handfast.kernels.compiler.program import Slot
from handfast.kernels.compiler.scan import Form, Scan
from handfast.kernels.sizes import Vectors
from handfast.kernels.target import host, reachable
from handfast.spec.expression import Call, Column, Op
from handfast.spec.types import BOOLEAN, INT32

R, S = Column(0, "x", INT32), Column(1, "x", INT32)
LESS = Call(Op.LT, (R, S), BOOLEAN)


@pytest.mark.parametrize("vectors", [Vectors(), Vectors(16, 2, 1), Vectors(4, 1, 3)])
@pytest.mark.parametrize("form", Form)
def test_a_scan_has_as_many_lanes_vectors_and_outer_tuples_as_it_is_asked_for(
    vectors: Vectors, form: Form, monkeypatch: pytest.MonkeyPatch
) -> None:
    modules: list[ir.Module] = []
    monkeypatch.setattr(scan, "load", lambda module, words, target: modules.append(module) or {"scan": None})
    asked = Scan(LESS, ((Slot(R, False),), (Slot(S, False),)), (False, False), 0, form, False, False)
    scan.scan_kernel.__wrapped__(asked, vectors, 64, host())
    (module,) = modules
    compared = str(module).count(f"icmp slt <{vectors.lanes} x i32>")
    # where many pairs hold, a whole vector and what is left of a range are two loops
    assert (vectors.group * vectors.block if form is Form.RARE else 2) == compared


def test_vectors_that_no_word_has_bits_for_are_refused() -> None:
    for lanes, group in ((8, 3), (32, 4), (0, 4)):
        with pytest.raises(hf.SpecError, match="a power of two of pairs together, at most 64"):
            Vectors(lanes, group)


def test_code_is_made_for_this_machine_and_for_lesser_ones() -> None:
    here, *others = reachable()
    assert here == host()
    assert [16, 32, 64][: len(others)] == sorted(target.width for target in others)
    for target in others:
        assert target == here.narrowed(target.width)
        assert here.width > target.width == Vectors.of(target).lanes * 4
    with pytest.raises(hf.SpecError, match="16, 32 or 64 bytes, not 8"):
        here.narrowed(8)
