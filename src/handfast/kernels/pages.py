"""Memory by pages, as the system gives it: it grows without being copied, and its start can be given back."""

from __future__ import annotations

import ctypes
import mmap
from typing import Any

import numpy as np
from numpy.typing import NDArray

PAGE = mmap.PAGESIZE
_READ_AND_WRITE = mmap.PROT_READ | mmap.PROT_WRITE
# pages count only once they are written to, so that room to grow costs nothing
_OWN = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | getattr(mmap, "MAP_NORESERVE", 0x4000)
_MAY_MOVE = 1
_FAILED = ctypes.c_void_p(-1).value

# Python's own `mmap` has neither: it takes nothing off the start, and writes to no memory that it has moved
_system = ctypes.CDLL(None)
_map, _remap, _unmap = _system.mmap, _system.mremap, _system.munmap
_map.restype = _remap.restype = ctypes.c_void_p
_map.argtypes = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long
_remap.argtypes = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_size_t, ctypes.c_int
_unmap.argtypes = ctypes.c_void_p, ctypes.c_size_t


class Pages:
    """So many bytes, in whole pages, which are 0 until they are written to; free once nobody refers to them."""

    def __init__(self, size: int) -> None:
        self.size = _whole(size)
        self._address = _given(_map(None, self.size, _READ_AND_WRITE, _OWN, -1, 0), self.size)

    @property
    def __array_interface__(self) -> dict[str, Any]:
        return {"data": (self._address, False), "shape": (self.size,), "typestr": "|u1", "version": 3}

    def array(self, dtype: np.dtype[np.generic]) -> NDArray[np.generic]:
        """The bytes as an array, less the last page: vectors may read beyond an array's end."""
        return np.asarray(self)[:-PAGE].view(dtype)

    def cut(self, start: int) -> None:
        """Give back the pages before `start`, a multiple of the page: of what is left, all stays where it is."""
        _unmap(self._address, start)
        self._address, self.size = self._address + start, self.size - start

    def resize(self, size: int) -> None:
        """Have so many bytes from the same first one on. The system moves them, where it must, without a copy."""
        size = _whole(size)
        self._address = _given(_remap(self._address, self.size, size, _MAY_MOVE), size)
        self.size = size

    def __del__(self) -> None:
        if hasattr(self, "_address"):
            _unmap(self._address, self.size)


def _whole(size: int) -> int:
    return max(1, -(-size // PAGE)) * PAGE


def _given(address: int, size: int) -> int:
    if address == _FAILED:
        raise MemoryError(f"The system has no {size} bytes")
    return address
