"""Machine code from LLVM modules, in this process: verified, optimised for this CPU, called without the GIL."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache
from threading import Lock

from llvmlite import binding, ir

Native = Callable[..., int]

_COMPILING = Lock()  # LLVM is not for several threads at a time


@cache
def _target() -> binding.Target:
    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    return binding.Target.from_default_triple()


def _machine() -> binding.TargetMachine:
    """A target machine for one engine, which owns it and frees it: two engines must not share one."""
    features = binding.get_host_cpu_features().flatten()
    return _target().create_target_machine(cpu=binding.get_host_cpu_name(), features=features, opt=3, jit=True)


def load(module: ir.Module, signatures: dict[str, int]) -> dict[str, Native]:
    """The functions of a module, by name; each takes so many 64-bit words (pointers or integers) and returns one."""
    with _COMPILING:
        return _load(module, signatures)


def _load(module: ir.Module, signatures: dict[str, int]) -> dict[str, Native]:
    machine = _machine()
    parsed = binding.parse_assembly(str(module))
    parsed.verify()
    parsed.triple, parsed.data_layout = machine.triple, str(machine.target_data)
    options = binding.create_pipeline_tuning_options(speed_level=3)
    options.loop_unrolling = False  # the scan is unrolled by hand; unrolling its rare tail only costs compile time
    builder = binding.create_pass_builder(machine, options)
    builder.getModulePassManager().run(parsed, builder)
    engine = binding.create_mcjit_compiler(parsed, machine)
    engine.finalize_object()
    functions: dict[str, Native] = {}
    for name, words in signatures.items():
        native = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_int64] * words)(engine.get_function_address(name))
        functions[name] = _keeping(native, engine)
    return functions


def _keeping(native: Native, engine: object) -> Native:
    """The function, holding on to the engine that owns its code."""

    def call(*words: int) -> int:
        assert engine is not None
        return native(*words)

    return call
