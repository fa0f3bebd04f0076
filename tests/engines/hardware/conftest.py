"""What the tests of the hardware tools share: Yosys, compiled once."""

from __future__ import annotations

import fcntl

import pytest


@pytest.fixture(scope="session")
def yosys(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Yosys has been started once: its first start on a machine compiles it, and two at a time would do so twice."""
    from handfast.engines.hardware import toolchain

    folder = tmp_path_factory.mktemp("yosys")
    with open(tmp_path_factory.getbasetemp().parent / "yosys.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        toolchain.yosys("log ready", folder=folder)
