"""Machine code kept on disk, shared by all processes of a user: checked before it is used, and safe to delete.

A file holds a digest, made of the key and the code, and then the code. A file that is damaged, that someone else may
have written, or that was written for another key counts as missing; so does a folder that cannot be read or written.
Things of another size and worth (simulators of circuits) are kept in a `part`, a folder inside with a limit of its own.
"""

from __future__ import annotations

import os
from contextlib import suppress
from hashlib import sha256
from itertools import count
from pathlib import Path
from tempfile import NamedTemporaryFile

LARGEST = 64 << 20  # bytes on the disk
_KEPT_OF_LARGEST = 0.75  # what is left when it has grown beyond that
_TURN = 256  # files that a process writes before it looks at the size again
_DIGEST = sha256().digest_size

_written = count()


def folder() -> Path | None:
    """Where the code is kept: HANDFAST_CACHE, or the user's cache; None if there is no such place."""
    named = os.environ.get("HANDFAST_CACHE")
    if named is not None:
        return Path(named).absolute() if named else None
    home = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return Path(home) / "handfast" if os.path.isabs(home) else None


def find(key: str, part: str = "") -> bytes | None:
    """The code that was kept under this key, a digest in hex."""
    home = folder()
    if home is None:
        return None
    with suppress(OSError), open(home / part / f"{key}.o", "rb") as file:
        about = os.fstat(file.fileno())
        if about.st_uid == os.geteuid() and not about.st_mode & 0o022:  # code that no one else can have written
            kept = file.read()
            digest, code = kept[:_DIGEST], kept[_DIGEST:]
            if digest == _digest(key, code):
                return code
    return None


def keep(key: str, code: bytes, part: str = "", largest: int | None = None) -> None:
    """Keep code under this key; whoever reads it meanwhile sees all of it or nothing."""
    home = folder()
    if home is None:
        return
    home /= part
    with suppress(OSError):
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
        with NamedTemporaryFile(dir=home, suffix=".part", delete=False) as file:
            file.write(_digest(key, code) + code)
        os.replace(file.name, home / f"{key}.o")
        if part or next(_written) % _TURN == 0:  # what lies in a part took far longer to make than to look around
            _make_room(home, largest or LARGEST)


def _digest(key: str, code: bytes) -> bytes:
    return sha256(key.encode() + code).digest()


def _make_room(home: Path, largest: int) -> None:
    """Remove the oldest files of a folder that has grown too large; another process may be doing the same."""
    found = [(entry.stat(), entry.path) for entry in os.scandir(home) if entry.is_file()]
    files = [(about.st_mtime, about.st_blocks * 512, path) for about, path in found]
    size = sum(own for _, own, _ in files)
    if size <= largest:
        return
    for _, own, path in sorted(files):
        if size <= largest * _KEPT_OF_LARGEST:
            break
        with suppress(FileNotFoundError):
            os.remove(path)
        size -= own
