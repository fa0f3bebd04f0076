"""Strings as numbers: equal strings have equal codes, and ranks order as the strings do."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray


def as_text(value: str | bytes) -> str:
    """Text as the table holds it: a binary byte by byte, so that both order as their bytes do."""
    return value.decode("latin-1") if isinstance(value, bytes) else value


class StringTable:
    """The distinct strings that a JoinCore holds. A code never changes; ranks do whenever a string is added."""

    def __init__(self) -> None:
        self._codes: dict[str, int] = {}
        self._texts: list[str] = []
        self._ranks: NDArray[np.int64] | None = None

    def __len__(self) -> int:
        return len(self._codes)

    def texts(self) -> list[str]:
        """The strings in the order of their codes."""
        return list(self._texts)

    def text(self, code: int) -> str:
        """The string of a code."""
        return self._texts[code]

    def find(self, text: str) -> int | None:
        """The code of one string, if it is here."""
        return self._codes.get(text)

    def code(self, text: str) -> int:
        """The code of one string."""
        known = self._codes.get(text)
        if known is None:
            known = self._codes[text] = len(self._codes)
            self._texts.append(text)
            self._ranks = None
        return known

    def encode(self, column: pa.Array) -> NDArray[np.int64]:
        """The codes of a column of strings or binaries; NULL's is of no meaning."""
        encoded = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
        codes = np.fromiter((self.code(as_text(text or "")) for text in encoded.dictionary.to_pylist()), np.int64)
        if len(codes) == 0:
            return np.full(len(column), self.code(""), np.int64)
        indices: NDArray[np.int32] = pc.fill_null(encoded.indices, 0).to_numpy(zero_copy_only=False)
        return codes[indices]

    def ranks(self) -> NDArray[np.int64]:
        """The place of each code's string in the order of all: UTF-8 bytes order as code points do."""
        if self._ranks is None:
            texts = self.texts()
            order = sorted(range(len(texts)), key=texts.__getitem__)
            self._ranks = np.empty(len(texts), np.int64)
            self._ranks[order] = np.arange(len(texts))
        return self._ranks

    def scratch(self) -> StringTable:
        """A table with the same codes that takes in more strings without keeping them here."""
        return _Scratch(self)


class _Scratch(StringTable):
    """What pairs make of strings is forgotten with it."""

    def __init__(self, known: StringTable) -> None:
        super().__init__()
        self._known, self._first = known, len(known)

    def __len__(self) -> int:
        return self._first + len(self._texts)

    def texts(self) -> list[str]:
        return self._known.texts() + self._texts

    def text(self, code: int) -> str:
        return self._known.text(code) if code < self._first else self._texts[code - self._first]

    def code(self, text: str) -> int:
        code = self._known.find(text)
        if code is None:
            code = self._codes.get(text)
        if code is None:
            code = self._codes[text] = len(self)
            self._texts.append(text)
            self._ranks = None
        return code
