"""Machine code from LLVM modules, in this process: verified, optimised for this CPU, called without the GIL."""

from __future__ import annotations

import ctypes
import pkgutil
from collections.abc import Callable
from functools import cache, lru_cache
from hashlib import sha256
from threading import Lock

import llvmlite
from llvmlite import binding, ir

from handfast.kernels.compiler import disk_cache
from handfast.kernels.target import Target, host

Native = Callable[..., int]

_COMPILING = Lock()  # LLVM is not for several threads at a time


def load(module: ir.Module, signatures: dict[str, int], target: Target | None = None) -> dict[str, Native]:
    """The functions of a module, by name; each takes so many 64-bit words (pointers or integers) and returns one.

    They are made for a target that this machine can run; without one, for this machine.
    """
    with _COMPILING:
        return _load(str(module), tuple(signatures.items()), target or host())


def address_of(native: Native) -> int:
    """Where the code of a function lies, for machine code that calls it; alive as long as the function is."""
    return ctypes.cast(native, ctypes.c_void_p).value or 0  # type: ignore[arg-type]


@lru_cache(maxsize=512)
def _load(text: str, signatures: tuple[tuple[str, int], ...], target: Target) -> dict[str, Native]:
    """Modules of the same text are the same code: joins whose columns only have other names share it."""
    key = sha256(f"{_here()} {target.cpu} {target.features}\n{text}".encode()).hexdigest()
    code = disk_cache.find(key)
    if code is None:
        code = _compiled(text, target)
        disk_cache.keep(key, code)
    engine = binding.create_mcjit_compiler(binding.parse_assembly(""), _machine(target))
    engine.add_object_file(binding.ObjectFileRef.from_data(code))
    engine.finalize_object()
    functions: dict[str, Native] = {}
    for name, words in signatures:
        address = engine.get_function_address(name)
        native = functions[name] = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_int64] * words)(address)
        native.engine = engine  # type: ignore[attr-defined] # owns the code: it lives as long as the function
    return functions


def _compiled(text: str, target: Target) -> bytes:
    """The object file of a module."""
    machine = _machine(target)
    parsed = binding.parse_assembly(text)
    parsed.verify()
    parsed.triple, parsed.data_layout = machine.triple, str(machine.target_data)
    options = binding.create_pipeline_tuning_options(speed_level=3)
    options.loop_unrolling = False  # the scan is unrolled by hand; unrolling its rare tail only costs compile time
    builder = binding.create_pass_builder(machine, options)
    builder.getModulePassManager().run(parsed, builder)
    code: bytes = machine.emit_object(parsed)
    return code


@cache
def _here() -> str:
    """All that decides, beside its text, what a module becomes: how this file compiles it, and with what."""
    source = pkgutil.get_data("handfast.kernels.compiler", "native.py") or b""
    versions = llvmlite.__version__, binding.llvm_version_info
    return f"{sha256(source).hexdigest()} {versions} {_architecture().triple}"


@cache
def _architecture() -> binding.Target:
    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    return binding.Target.from_default_triple()


def _machine(target: Target) -> binding.TargetMachine:
    """A target machine for one engine, which owns it and frees it: two engines must not share one."""
    return _architecture().create_target_machine(cpu=target.cpu, features=target.features, opt=3, jit=True)
