"""Machine code on disk: compiled once for all processes, and never believed when it could be wrong."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from llvmlite import ir

import handfast as hf
from handfast.kernels.compiler import compile as kernels
from handfast.kernels.compiler import disk_cache, native, scan
from handfast.kernels.target import Target
from handfast.testing import table

I64 = ir.IntType(64)
FOREIGN = 0o666


@pytest.fixture
def compiled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """What is compiled, with a folder of one's own that is empty."""
    monkeypatch.setenv("HANDFAST_CACHE", str(tmp_path / "code"))
    texts: list[str] = []
    really = native._compiled

    def counting(text: str, target: Target) -> bytes:
        texts.append(text)
        return really(text, target)

    monkeypatch.setattr(native, "_compiled", counting)
    _as_in_a_new_process()
    yield texts
    _as_in_a_new_process()


def _as_in_a_new_process() -> None:
    native._load.cache_clear()
    native._here.cache_clear()
    for kernel in (scan.scan_kernel, kernels.check_kernel, kernels.derive_kernel):
        kernel.cache_clear()


def adding(number: int) -> Callable[[int], int]:
    """A function that adds this number, in machine code."""
    module = ir.Module("adding")
    function = ir.Function(module, ir.FunctionType(I64, [I64]), "add")
    builder = ir.IRBuilder(function.append_basic_block("entry"))
    builder.ret(builder.add(function.args[0], ir.Constant(I64, number)))
    return native.load(module, {"add": 1})["add"]


def kept() -> list[Path]:
    folder = disk_cache.folder()
    assert folder is not None
    return sorted(folder.iterdir())


def test_code_is_compiled_once_for_all_processes(compiled: list[str]) -> None:
    assert 42 == adding(2)(40)
    _as_in_a_new_process()
    assert 42 == adding(2)(40)
    assert 43 == adding(3)(40)
    assert 2 == len(compiled) == len(kept())


def test_joins_that_differ_in_names_and_constants_share_their_code(compiled: list[str]) -> None:
    counts = []
    for left, right, near in (("a", "b", 2), ("x", "y", 6)):
        rows = {"r": table(f"ts | {left}\n+1s | 1\n+2s | 7"), "s": table(f"ts | {right}\n+1s | 2\n+2s | 12")}
        on = f"r.{left} < s.{right} AND s.{right} < r.{left} + {near}"
        counts.append((hf.join(rows, on=on, window="5 s", time="ts").num_rows, len(compiled)))
    assert [1, 2] == [matches for matches, _ in counts]
    assert 0 < counts[0][1] == counts[1][1]


@pytest.mark.parametrize(
    "spoil",
    [
        pytest.param(lambda file, other: file.write_bytes(file.read_bytes()[:-1]), id="torn"),
        pytest.param(lambda file, other: file.write_bytes(b""), id="empty"),
        pytest.param(lambda file, other: file.write_bytes(bytes(np.random.default_rng(1).bytes(900))), id="noise"),
        pytest.param(lambda file, other: file.write_bytes(other.read_bytes()), id="the code of another key"),
        pytest.param(lambda file, other: file.chmod(FOREIGN), id="others may write it"),
    ],
)
def test_a_file_that_could_be_wrong_is_not_loaded_but_written_anew(
    compiled: list[str], spoil: Callable[[Path, Path], object]
) -> None:
    adding(2)
    (file,) = kept()
    adding(3)
    (other,) = set(kept()) - {file}
    right = file.read_bytes()
    spoil(file, other)
    _as_in_a_new_process()
    assert 42 == adding(2)(40)
    assert 3 == len(compiled)
    assert right == file.read_bytes()
    assert not file.stat().st_mode & 0o022


def test_a_file_of_another_user_is_not_loaded(compiled: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    adding(2)
    _as_in_a_new_process()
    owner = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: owner + 1)
    assert 42 == adding(2)(40)
    assert 2 == len(compiled)


@pytest.mark.parametrize(
    ("what", "changed"),
    [
        ("host", lambda: Target("x86-64", "+sse2", 16)),
        ("llvmlite.__version__", "0.0.1"),
        ("binding.llvm_version_info", (1, 2, 3)),
        ("pkgutil.get_data", lambda package, file: b"another way to compile"),
    ],
)
def test_another_cpu_or_another_compiler_has_code_of_its_own(
    compiled: list[str], monkeypatch: pytest.MonkeyPatch, what: str, changed: object
) -> None:
    adding(2)
    _as_in_a_new_process()
    monkeypatch.setattr(f"handfast.kernels.compiler.native.{what}", changed)
    assert 42 == adding(2)(40)
    assert 2 == len(compiled)


def test_the_folder_stays_within_its_bound_and_keeps_the_newest(
    compiled: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(disk_cache, "_TURN", 1)
    block = 4096
    monkeypatch.setattr(disk_cache, "LARGEST", 8 * block)
    for number in range(30):
        disk_cache.keep(f"{number:064x}", bytes(block // 2))
        os.utime(kept()[-1], (number, number))  # as if hours lay between them
        assert sum(file.stat().st_blocks * 512 for file in kept()) <= 8 * block
    assert f"{29:064x}.o" == kept()[-1].name
    assert 5 <= len(kept()) <= 8


def test_whoever_reads_sees_a_whole_file_or_none(compiled: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[bool] = []
    replace = os.replace

    def late(part: str, file: Path) -> None:
        seen.append(file.exists())
        replace(part, file)

    monkeypatch.setattr(os, "replace", late)
    disk_cache.keep("0" * 64, b"code")
    assert [False] == seen
    assert b"code" == disk_cache.find("0" * 64)


def test_without_a_place_nothing_is_kept_and_all_works(
    compiled: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    a_file = tmp_path / "file"
    a_file.write_text("")
    for place in ("", str(a_file), str(a_file / "below")):
        monkeypatch.setenv("HANDFAST_CACHE", place)
        assert 42 == adding(2)(40)
        _as_in_a_new_process()
    assert 3 == len(compiled)
    assert "" == a_file.read_text()


def test_the_place_is_the_users_cache_unless_another_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HANDFAST_CACHE", str(tmp_path / "mine"))
    assert tmp_path / "mine" == disk_cache.folder()
    monkeypatch.setenv("HANDFAST_CACHE", "")
    assert disk_cache.folder() is None
    monkeypatch.delenv("HANDFAST_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert tmp_path / "handfast" == disk_cache.folder()
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert tmp_path / ".cache" / "handfast" == disk_cache.folder()
    monkeypatch.setenv("HOME", "nowhere")
    assert disk_cache.folder() is None
