"""When a circuit's assertions are looked at: Amaranth's `m.d.comb` and `m.d.sync` ones alike, once a cycle.

An assertion is a $check cell in RTLIL. It is about the values of a cycle once they have settled, which is what its
registers see when the clock rises. So the simulator looks then, and the model checker, which knows nothing but settled
cycles, looks in each; what is in `m.d.sync` would else be reported a step late.
"""

from __future__ import annotations

import re

_CHECK = re.compile(r"^  cell \$check .*?^  end$", re.MULTILINE | re.DOTALL)
_TRIGGER = re.compile(r"^    (parameter \\TRG_\w+|connect \\TRG) .*\n", re.MULTILINE)
_CLOCK = re.compile(r"^  wire width 1 input \d+  \\clk$", re.MULTILINE)

_AT_THE_CLOCK = """\
    parameter \\TRG_ENABLE 1
    parameter \\TRG_WIDTH 1
    parameter \\TRG_POLARITY 1
    connect \\TRG \\clk [0]
"""
_ALWAYS = """\
    parameter \\TRG_ENABLE 0
    parameter \\TRG_WIDTH 0
    parameter \\TRG_POLARITY 0
    connect \\TRG {  }
"""


def at_the_clock(rtlil: str) -> str:
    """The RTLIL with assertions that are looked at when the clock rises, and not while values still change.

    A part without registers has no clock; its assertions are looked at whenever its inputs change.
    """
    modules = rtlil.split("\nmodule ")
    return "\nmodule ".join(_triggered(text, _AT_THE_CLOCK) if _CLOCK.search(text) else text for text in modules)


def in_each_step(rtlil: str) -> str:
    """The RTLIL with assertions that hold in each step, for the model checker."""
    return _triggered(rtlil, _ALWAYS)


def count(rtlil: str) -> int:
    """How many assertions there are."""
    return sum('parameter \\FLAVOR "assert"' in cell[0] for cell in _CHECK.finditer(rtlil))


def _triggered(text: str, trigger: str) -> str:
    return _CHECK.sub(lambda cell: _TRIGGER.sub("", cell[0]).removesuffix("  end") + trigger + "  end", text)
