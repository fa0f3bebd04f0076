"""What machine code is made for: a CPU, the instructions that it may use, and how wide its vectors are."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from llvmlite import binding

from handfast.errors import SpecError

_PLAIN, _AVX2, _AVX512 = 16, 32, 64
_LEVELS = {_AVX2: "x86-64-v3", _PLAIN: "x86-64"}  # by the bytes of a vector, the least CPU that has them


@dataclass(frozen=True, slots=True)
class Target:
    """A CPU as the compiler knows it.

    Attributes:
        cpu: Its name.
        features: The instructions that it has and has not, beside those that its name says.
        width: The bytes of its widest vector.
    """

    cpu: str
    features: str
    width: int

    @property
    def has_masks(self) -> bool:
        """Whether comparisons go into masks, for which there are fewer units than for other work."""
        return self.width == _AVX512

    def narrowed(self, width: int) -> Target:
        """The same machine with vectors of at most so many bytes, and without the instructions for wider ones."""
        if width >= self.width:
            return self
        if width not in _LEVELS:
            raise SpecError(f"Vectors must have {_PLAIN}, {_AVX2} or {_AVX512} bytes, not {width}")
        return Target(_LEVELS[width], "", width)


@cache
def host() -> Target:
    """This machine."""
    features = binding.get_host_cpu_features()
    wide = all(features.get(name) for name in ("avx512f", "avx512bw", "avx512dq", "avx512vl"))
    width = _AVX512 if wide else _AVX2 if features.get("avx2") else _PLAIN
    return Target(binding.get_host_cpu_name(), features.flatten(), width)


@cache
def reachable() -> tuple[Target, ...]:
    """This machine, and what it is without its widest instructions: code for each of them runs here."""
    here = host()
    return (here, *(here.narrowed(width) for width in _LEVELS if width < here.width))
