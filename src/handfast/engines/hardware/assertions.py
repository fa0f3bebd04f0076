"""When a circuit's assertions are looked at: Amaranth's `m.d.comb` and `m.d.sync` ones alike, once a cycle.

An assertion is a $check cell in RTLIL. It is about the values of a cycle once they have settled, which is what its
registers see when the clock rises. So the simulator looks then, and the model checker, which knows nothing but settled
cycles, looks in each; what is in `m.d.sync` would else be reported a step late.
"""

from __future__ import annotations

import re

_CHECK = re.compile(r"^  cell \$check .*?^  end$", re.MULTILINE | re.DOTALL)
_TRIGGER = re.compile(r"^    (parameter \\TRG_\w+|connect \\TRG) .*\n", re.MULTILINE)
_FORMAT = re.compile(r'^    parameter \\FORMAT "([^"]*)"$', re.MULTILINE)
_CLOCK = re.compile(r"^  wire width 1 input \d+  \\clk$", re.MULTILINE)
_MODULE = re.compile(r"^module \\(\S+)\n", re.MULTILINE)

_NEW_CLOCK = "  wire width 1 input 9999  \\clk\n"  # Yosys numbers ports anew
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
    """The RTLIL with assertions that are looked at when the clock rises, and not while values still change."""
    start, *modules = re.split(_MODULE, rtlil)
    texts = dict(zip(modules[::2], modules[1::2], strict=True))
    if not _CLOCK.search(next(iter(texts.values()))):
        return rtlil  # no registers at all: the values settle once in a cycle
    for name in [name for name, text in texts.items() if _CHECK.search(text)]:
        _lead_the_clock_to(name, texts)
        texts[name] = _triggered(texts[name], _AT_THE_CLOCK)
    return start + "".join(f"module \\{name}\n{text}" for name, text in texts.items())


def _lead_the_clock_to(name: str, texts: dict[str, str]) -> None:
    """Give the clock to a part that has assertions and no register; a part is named by its place, `top.core_0.fifo`."""
    if _CLOCK.search(texts[name]):
        return
    above = name.rpartition(".")[0]
    _lead_the_clock_to(above, texts)
    texts[name] = _NEW_CLOCK + texts[name]
    instance = f"  cell \\{name} "
    before, after = texts[above].split(instance)
    rest = after.partition("\n")
    texts[above] = f"{before}{instance}{rest[0]}\n    connect \\clk \\clk [0]\n{rest[2]}"


def in_each_step(rtlil: str) -> str:
    """The RTLIL with assertions that hold in each step, for the model checker."""
    return _triggered(rtlil, _ALWAYS)


def count(rtlil: str) -> int:
    """How many assertions there are."""
    return len(_words(rtlil))


def claims(rtlil: str) -> list[str]:
    """What the assertions say, each once and in alphabetical order."""
    return sorted(set(_words(rtlil)))


def _words(rtlil: str) -> list[str]:
    """The words of every assertion; empty where it has none."""
    cells = [cell[0] for cell in _CHECK.finditer(rtlil) if 'parameter \\FLAVOR "assert"' in cell[0]]
    return [_FORMAT.findall(cell)[0] for cell in cells]


def _triggered(text: str, trigger: str) -> str:
    return _CHECK.sub(lambda cell: _TRIGGER.sub("", cell[0]).removesuffix("  end") + trigger + "  end", text)
