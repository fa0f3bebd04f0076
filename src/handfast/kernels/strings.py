"""Strings as numbers: equal strings have equal codes, and ordinals are in the order of the strings."""

from __future__ import annotations

from bisect import bisect_left, insort
from itertools import chain

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from handfast.errors import EngineError

_MOST = 1 << 31  # strings whose codes fit in 32 bits
_GAP = 1 << 32  # between neighbouring ordinals when all are newly given: room for strings that come between them
_RUN = 1 << 16  # a string of a sorted run takes only this small a part of the gap, to leave room for the next
_PART = 16  # one in so many strings may be ordered on its own before all are sorted again


def as_text(value: str | bytes) -> str:
    """Text as the table holds it; a binary becomes one character for each byte, so that it keeps its order."""
    return value.decode("latin-1") if isinstance(value, bytes) else value


class StringTable:
    """The distinct strings that a JoinCore holds. A code never changes; ordinals may whenever a string is added.

    A new string's ordinal lies between its neighbours', so that its cost does not grow with the strings that are known.
    Where there is no room between them, or many strings are new, all get new ordinals.
    """

    def __init__(self) -> None:
        self._codes: dict[str, int] = {}
        self._texts: list[str] = []
        self._ordinals = np.empty(0, np.int64)  # by code; for `_ordered` of them it is known
        self._ordered = 0
        self._last: int | None = None  # the ordinal that was given last
        self._sorted: list[str] = []
        self._since: list[str] = []  # those that were ordered after the others had been sorted, in order as well

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
        known = self.find(text)
        if known is None:
            known = len(self)
            if known == _MOST:
                raise EngineError(
                    f"A join holds {_MOST:,} different strings on one core, and no core can hold more; "
                    "run it on more cores, or shorten the windows"
                )
            self._codes[text] = known
            self._texts.append(text)
        return known

    def encode(self, column: pa.Array) -> NDArray[np.int64]:
        """The codes of a column of strings or binaries; NULL's is of no meaning."""
        encoded = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
        codes = np.fromiter((self.code(as_text(text or "")) for text in encoded.dictionary.to_pylist()), np.int64)
        if len(codes) == 0:
            return np.full(len(column), self.code(""), np.int64)
        indices: NDArray[np.int32] = pc.fill_null(encoded.indices, 0).to_numpy(zero_copy_only=False)
        return codes[indices]

    def ordinals(self) -> NDArray[np.int64]:
        """By code, numbers that order as the strings do: UTF-8 bytes order as code points do."""
        if self._ordered < len(self):
            if len(self) > len(self._ordinals):
                grown = np.empty(2 * len(self), np.int64)
                grown[: self._ordered] = self._ordinals[: self._ordered]
                self._ordinals = grown
            if len(self) * (_PART - 1) > len(self._sorted) * _PART or not self._order_each():
                self._order_all()
            self._ordered = len(self)
        return self._ordinals[: self._ordered]

    def _order_each(self) -> bool:
        """Order the new strings between their neighbours, as far as there is room; whether there was for all."""
        for code in range(self._ordered, len(self)):
            text = self.text(code)
            low, high = self._neighbours(text)
            if high - low < 2:
                return False
            near = max(1, (high - low) // _RUN)
            # strings that come one behind the other, up or down, leave room for those that follow
            ordinal = low + near if low == self._last else high - near if high == self._last else (low + high) // 2
            self._ordinals[code] = self._last = ordinal
            insort(self._since, text)
        return True

    def _neighbours(self, text: str) -> tuple[int, int]:
        """The ordinals that a new string's has to lie between."""
        before, behind = [], []
        for run in self._runs():
            place = bisect_left(run, text)
            before += run[max(0, place - 1) : place]
            behind += run[place : place + 1]
        lows, highs = ([int(self._ordinals[self.find(near) or 0]) for near in nearest] for nearest in (before, behind))
        low = max(lows) if lows else min(highs) - 2 * _GAP
        return low, min(highs) if highs else low + 2 * _GAP

    def _runs(self) -> list[list[str]]:
        """All strings that are ordered, in runs that are sorted."""
        return [self._sorted, self._since]

    def _order_all(self) -> None:
        runs = self._runs()
        new = map(self.text, range(sum(map(len, runs)), len(self)))
        self._sorted, self._since = sorted(chain(*runs, new)), []  # quick: most of them are sorted already
        codes = [self.find(text) or 0 for text in self._sorted]
        self._ordinals[codes] = np.arange(len(codes)) * _GAP

    def scratch(self) -> StringTable:
        """A table with the same codes that takes in more strings without keeping them here."""
        return _Scratch(self)


class _Scratch(StringTable):
    """The strings that are computed for pairs; they are forgotten with this table."""

    def __init__(self, known: StringTable) -> None:
        super().__init__()
        self._known, self._first = known, len(known)

    def __len__(self) -> int:
        return self._first + len(self._texts)

    def texts(self) -> list[str]:
        return self._known.texts() + self._texts

    def text(self, code: int) -> str:
        return self._known.text(code) if code < self._first else self._texts[code - self._first]

    def find(self, text: str) -> int | None:
        known = self._known.find(text)
        return known if known is not None else self._codes.get(text)

    def ordinals(self) -> NDArray[np.int64]:
        if not self._ordered:
            self._ordinals = self._known.ordinals().copy()
            self._ordered, self._sorted, self._between = self._first, self._known._sorted, self._known._since
        return super().ordinals()

    def _runs(self) -> list[list[str]]:
        return [self._sorted, self._between, self._since]

    def _order_all(self) -> None:
        super()._order_all()
        self._between = []
