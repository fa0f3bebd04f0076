"""Strings as numbers: equal strings have equal codes, and ranks order as the strings do."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray


class StringTable:
    """The distinct strings that a JoinCore holds. A code never changes; ranks do whenever a string is added."""

    def __init__(self) -> None:
        self._codes: dict[str, int] = {}
        self._ranks: NDArray[np.int64] | None = None

    def __len__(self) -> int:
        return len(self._codes)

    def texts(self) -> list[str]:
        """The strings in the order of their codes."""
        return list(self._codes)

    def code(self, text: str) -> int:
        """The code of one string."""
        known = self._codes.get(text)
        if known is None:
            known = self._codes[text] = len(self._codes)
            self._ranks = None
        return known

    def encode(self, column: pa.Array) -> NDArray[np.int64]:
        """The codes of a column of strings; NULL's is of no meaning."""
        encoded = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
        codes = np.fromiter((self.code(text or "") for text in encoded.dictionary.to_pylist()), np.int64)
        if len(codes) == 0:
            return np.full(len(column), self.code(""), np.int64)
        indices: NDArray[np.int32] = pc.fill_null(encoded.indices, 0).to_numpy(zero_copy_only=False)
        return codes[indices]

    def ranks(self) -> NDArray[np.int64]:
        """The place of each code's string in the order of all: UTF-8 bytes order as code points do."""
        if self._ranks is None:
            ordered = sorted(self._codes)
            self._ranks = np.empty(len(ordered), np.int64)
            for rank, text in enumerate(ordered):
                self._ranks[self._codes[text]] = rank
        return self._ranks
