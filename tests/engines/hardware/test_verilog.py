"""Verilog export: names that stay, one module per component, and nothing for a lint to say."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from amaranth.hdl import Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from handfast.engines.hardware import verilator, verilog
from handfast.engines.hardware.circuit import elaborate
from handfast.errors import EngineError, SpecError
from tests.engines.hardware.subjects import Queue, Row, Scramble

pytestmark = pytest.mark.usefixtures("yosys")


def test_each_component_is_a_module_named_by_its_place() -> None:
    text = verilog.export(Row(width=8, depth=2), name="row")

    assert ["row", r"\row.first", r"\row.second"] == re.findall(r"^module ([^ (]+)", text, re.MULTILINE)


def test_a_stream_is_three_ports() -> None:
    text = verilog.export(Queue(width=8, depth=2))

    ports = set(re.search(r"module top\((.*?)\);", text)[1].split(", "))
    assert {"clk", "rst", "level"} == {port for port in ports if "__" not in port}
    expected = {f"{side}__{part}" for side in ("write", "read") for part in ("payload", "valid", "ready")}
    assert expected == {port for port in ports if "__" in port}


def test_the_same_circuit_is_the_same_text_without_the_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    texts = []
    for place in ("one", "two"):
        monkeypatch.setenv("HANDFAST_CACHE", str(tmp_path / place))
        texts.append(verilog.export(Scramble(3)))

    assert texts[0] == texts[1]
    assert "/" not in re.sub(r"/\*.*?\*/|//.*", "", texts[0]).replace(" / ", "")  # no path of the machine


def test_kept_results_do_not_depend_on_where_the_source_lies() -> None:
    assert "src" not in elaborate(Queue(width=8, depth=2)).rtlil
    assert "subjects.py" in elaborate(Queue(width=8, depth=2), positions=True).rtlil


def test_verilator_lints_the_export_clean() -> None:
    verilator.lint(verilog.export(Queue(width=80, depth=3)))
    verilator.lint(verilog.export(Row(width=8, depth=2)))
    verilator.lint(verilog.export(Scramble(1)))


def test_constant_bits_of_a_signal_whose_other_bits_are_not_keep_their_value() -> None:
    class Half(wiring.Component):
        def __init__(self) -> None:
            super().__init__({"words": In(stream.Signature(1)), "both": Out(stream.Signature(2))})

        def elaborate(self, platform: object) -> Module:
            m = Module()
            word = Signal(2)
            m.d.comb += [word[1].eq(1), self.both.payload.eq(word)]
            m.d.comb += [self.both.valid.eq(self.words.valid), self.words.ready.eq(self.both.ready)]
            with m.If(self.words.payload):
                m.d.comb += word[0].eq(1)
            return m

    run = verilator.build(Half()).run({"words": [0, 1, 1, 0]}, quiet=8)
    assert [2, 3, 3, 2] == run.outputs["both"].words.tolist()


def test_a_lint_warning_is_an_error_with_its_text() -> None:
    with pytest.raises(EngineError, match="UNDRIVEN"):
        verilator.lint("module top(output a); wire b; assign a = b; endmodule")


def test_a_second_clock_domain_is_refused() -> None:
    class Two(wiring.Component):
        def __init__(self) -> None:
            super().__init__({"level": Out(1)})

        def elaborate(self, platform: object) -> Module:
            m = Module()
            other = Signal()
            m.d.other += other.eq(~other)
            m.d.sync += self.level.eq(other)
            return m

    with pytest.raises(SpecError, match="other_clk"):
        verilog.export(Two())
