"""A core's state as bytes, but for the blocks themselves: the manifest that names them, and how it is written."""

from __future__ import annotations

import hashlib
import json
from base64 import b64decode, b64encode
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np

from handfast.core.segment import Marks
from handfast.flow.block import Block
from handfast.flow.same import same
from handfast.flow.time import Progress
from handfast.spec.fingerprint import Fingerprint


@dataclass(frozen=True, slots=True)
class Manifest:
    """Which blocks a core holds, and how far the streams had come.

    Attributes:
        fingerprint: Of the plan that the core ran.
        progress: How far each stream had come.
        blocks: By stream, the ids of its stored blocks.
        marks: By stream, the marks of each of these blocks as text; none for a stream that is not preserved.
        held: The ids of the blocks of rows that wait to be given in order.
    """

    fingerprint: Fingerprint | str  # text where it was written before it had fields
    progress: Progress
    blocks: tuple[tuple[str, ...], ...]
    marks: tuple[tuple[str, ...], ...]
    held: tuple[str, ...] = ()

    @staticmethod
    def of(
        fingerprint: Fingerprint,
        progress: Progress,
        blocks: Sequence[Sequence[Block]],
        marks: Sequence[Sequence[Marks]],
        held: Sequence[Block],
    ) -> Manifest:
        """The manifest of a core that holds these blocks, given by stream, with these marks."""
        ids = tuple(tuple(block.id for block in own) for own in blocks)
        packed = tuple(tuple(map(_packed, own)) for own in marks)
        return Manifest(fingerprint, progress, ids, packed, tuple(rows.id for rows in held))

    def encode(self) -> bytes:
        """The manifest as bytes."""
        held = [self.held] if self.held else []
        return json.dumps([self.fingerprint, self.progress.highest, self.blocks, self.marks, *held]).encode()

    @staticmethod
    def decode(data: bytes) -> Manifest:
        """The manifest with these bytes."""
        fingerprint, highest, blocks, marks, *held = json.loads(data)
        named = tuple(map(tuple, blocks)), tuple(map(tuple, marks)), *map(tuple, held)
        return Manifest(fingerprint, Progress(tuple(highest)), *named)

    @property
    def ids(self) -> Iterator[str]:
        """Every block that the manifest names."""
        return chain(*self.blocks, self.held)

    def marks_of(self, blocks: Sequence[Sequence[Block]]) -> list[list[Marks]]:
        """The marks of these blocks, which the manifest names."""
        return [
            [_unpacked(marks[k], len(block)) if marks else same(np.False_, len(block)) for k, block in enumerate(own)]
            for own, marks in zip(blocks, self.marks, strict=True)
        ]

    @property
    def digest(self) -> str:
        """The same for the same state."""
        return hashlib.blake2b(self.encode(), digest_size=16).hexdigest()


def _packed(marks: Marks) -> str:
    """Marks as text, a bit each; where none is set, the empty text."""
    return b64encode(np.packbits(marks).tobytes()).decode() if marks.any() else ""


def _unpacked(text: str, count: int) -> Marks:
    if not text:
        return np.zeros(count, np.bool_)
    return np.unpackbits(np.frombuffer(b64decode(text), np.uint8), count=count).astype(np.bool_)
