"""A digest of all files of the model: what Numba keeps of a loop on the disk goes by it."""

from __future__ import annotations

from hashlib import sha256
from importlib import resources


def sources() -> str:
    """A digest of all files of the model."""
    folder = resources.files("handfast.engines.hardware.model")
    texts = sorted((file.name, file.read_bytes()) for file in folder.iterdir() if file.name.endswith(".py"))
    return sha256(repr(texts).encode()).hexdigest()
