"""Files that a command is asked to write: whole, or not at all."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import mkstemp

from handfast.errors import SpecError


@contextmanager
def written_whole(path: Path, option: str) -> Iterator[Path]:
    """A file to write, which takes the place of `path` when all is done, and is gone if it is not."""
    if path.is_dir():
        raise SpecError(f"{option} {path} is a folder; give it the name of a file")
    try:
        handle, name = mkstemp(prefix=f".{path.name}.", dir=path.parent)
    except OSError as error:
        raise SpecError(f"{option} {path} cannot be written: {error.strerror}") from None
    os.close(handle)
    hidden = Path(name)
    try:
        yield hidden
        hidden.chmod(0o666 & ~_umask())  # as any other file: a temporary one is for its owner alone
        hidden.replace(path)
    finally:
        hidden.unlink(missing_ok=True)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
