"""Options that make no circuit are refused, with the rule."""

from __future__ import annotations

from typing import Any

import pytest

import handfast as hf


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"cores": 0}, r"HardwareOptions\(cores=…\) must be a positive number, not 0"),
        ({"cores": True}, "positive number, not True"),
        ({"cores": 2, "algorithm": "nested_loop"}, "has two units: leave it out"),
        ({"algorithm": "hash"}, "is one of None, 'handshake', 'nested_loop', 'circular', 'stashed', not 'hash'"),
        ({"segment": 0}, "positive number of tuples, not 0"),
        ({"comparisons": 0}, r"HardwareOptions\(comparisons=…\) must be a positive number, not 0"),
        ({"merge_clock": 0}, r"HardwareOptions\(merge_clock=…\) must be a positive number, not 0"),
        ({"scan": "lazy"}, "is one of 'immediate', 'eager', not 'lazy'"),
        ({"scan": "eager", "algorithm": "nested_loop"}, "scans both windows at the same time: leave it out"),
        ({"network": "star"}, "is one of 'tree', 'adaptive', 'pipelined', not 'star'"),
        ({"memory": "disk"}, "is one of None, 'registers', 'ram', not 'disk'"),
        ({"admission": "pray"}, "is one of 'suspend', 'throttle', 'drop', not 'pray'"),
        ({"admission": "drop", "network": "adaptive"}, r"take HardwareOptions\(network='tree'\), not 'adaptive'"),
        ({"stash_size": -1}, r"HardwareOptions\(stash_size=…\) must be a number of pairs, 0 or more, not -1"),
        ({"in_flight": 0}, r"HardwareOptions\(in_flight=…\) must be a positive number, not 0"),
        ({"stage_buffer": 0}, r"HardwareOptions\(stage_buffer=…\) must be a positive number, not 0"),
        ({"turn": "lowest"}, "is one of 'round_robin', 'highest', not 'lowest'"),
        ({"step_every": 0}, r"HardwareOptions\(step_every=…\) must be a positive number of cycles, not 0"),
        ({"simulator": "pen"}, "not 'pen'"),
        ({"margin": 0}, "learn one cycle late"),
        ({"core_buffer": 3}, r"core_buffer=…\) must be more than its margin=3, not 3"),
        ({"network_buffer": 1, "margin": 1}, r"network_buffer=…\) must be more than its margin=1, not 1"),
    ],
)
def test_wrong_options_are_refused(asked: dict[str, Any], message: str) -> None:
    with pytest.raises(hf.SpecError, match=message):
        hf.HardwareOptions(**asked)


def test_long_runs_are_on_verilator_unless_asked_otherwise() -> None:
    assert "amaranth" == hf.HardwareOptions(cores=4).simulator_for(50_000)
    assert "verilator" == hf.HardwareOptions(cores=4).simulator_for(50_001)
    assert "amaranth" == hf.HardwareOptions(simulator="amaranth").simulator_for(10**9)


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"cores": 2}, r"HardwareOptions\(cores=…\) is for joins of two streams; a ring has a stage for each stream"),
        ({"scan": "eager"}, r"HardwareOptions\(scan=…\) is for joins of two streams"),
        ({"network": "tree"}, r"HardwareOptions\(network=…\) is for joins of two streams"),
        ({"memory": "registers"}, "a ring's windows are in RAM"),
        ({"merge_clock": 2}, r"HardwareOptions\(merge_clock=…\) is for joins of two streams"),
        ({"admission": "throttle"}, "'throttle'.* is for joins of two streams"),
        ({"admission": "drop", "algorithm": "stashed", "network": "tree"}, "is for joins of two streams"),
    ],
)
def test_what_a_ring_has_no_use_for_is_refused(asked: dict[str, Any], message: str) -> None:
    with pytest.raises(hf.SpecError, match=message):
        hf.HardwareOptions(**asked).check_ring()


def test_a_ring_may_drop_as_the_paper_does() -> None:
    hf.HardwareOptions(algorithm="circular", admission="drop").check_ring()


def test_long_segments_are_in_ram_unless_asked_otherwise() -> None:
    assert not hf.HardwareOptions().in_ram(64)
    assert hf.HardwareOptions().in_ram(65)
    assert hf.HardwareOptions(memory="ram").in_ram(1)
    assert not hf.HardwareOptions(memory="registers").in_ram(1_000)
