"""Deliberate bugs in the networks: each is caught by a test that is named beside it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from amaranth.hdl import Const, Mux, Value

from handfast.engines.hardware.adaptive import AdaptiveNetwork, RingNode
from handfast.engines.hardware.admission import Throttle
from handfast.engines.hardware.fifo import Fifo
from handfast.engines.hardware.merger import BufferlessMerger, Merger, RegisterMerger, RoundRobinMerger
from handfast.engines.hardware.pipelined import PipelinedNetwork
from tests.engines.hardware.test_adaptive import check_full_ring, check_leaves_at_once, check_network, check_spreads
from tests.engines.hardware.test_admission import check_throttle, check_tree_with_suspension
from tests.engines.hardware.test_fifo import check_against_plain, check_margin_is_room
from tests.engines.hardware.test_merger import check_bufferless, check_merger, check_no_starvation, check_register
from tests.engines.hardware.test_pipelined import check_pipelined, check_turns

Patch = pytest.MonkeyPatch
Caught = Callable[[Patch], None]  # runs a test's check on the broken component
MUTANTS: list[Caught] = []


def mutant(bug: Caught) -> Caught:
    """Enter a bug into the list."""
    MUTANTS.append(bug)
    return bug


def without_margin(**shape: Any) -> Fifo:
    return Fifo(**{**shape, "margin": 0})


@mutant
def a_flag_without_margin(patch: Patch) -> None:
    """test_writers_that_stop_within_the_margin_always_find_room."""
    check_margin_is_room(without_margin)


@mutant
def cores_with_a_flag_without_margin(patch: Patch) -> None:
    """test_suspended_in_time_no_core_finds_its_fifo_full."""
    check_tree_with_suspension(without_margin, margin=1)


@mutant
def a_fifo_whose_address_wraps_a_slot_late(patch: Patch) -> None:
    """test_every_cycle_of_a_fifo_is_that_of_a_plain_queue."""
    patch.setattr(Fifo, "_after", lambda self, address: Mux(address == self.depth, 0, address + 1))
    check_against_plain(Fifo, depth=3, latency=2)


@mutant
def an_arbiter_whose_token_stays(patch: Patch) -> None:
    """test_a_word_waits_for_at_most_one_word_of_every_other_input."""
    patch.setattr("handfast.engines.hardware.merger._behind", lambda place, fan_in: Const(0))
    check_no_starvation(RoundRobinMerger, fan_in=5)


@mutant
def a_register_whose_turn_stays(patch: Patch) -> None:
    """test_no_input_of_a_pipelined_network_starves."""
    patch.setattr("handfast.engines.hardware.merger._behind", lambda place, fan_in: Const(0))
    check_turns(PipelinedNetwork)


@mutant
def a_register_that_takes_a_word_while_it_is_stalled(patch: Patch) -> None:
    """test_every_cycle_of_a_pipelined_network_is_that_of_the_model; the word before it is lost."""
    patch.setattr(RegisterMerger, "_free", lambda self, valid: Const(1))
    check_pipelined(PipelinedNetwork, {"n": 4, "depth": 4, "margin": 1})


@mutant
def a_register_that_takes_no_word_while_it_gives_one(patch: Patch) -> None:
    """test_a_merger_of_one_register_passes_a_word_in_every_cycle_and_takes_turns."""
    patch.setattr(RegisterMerger, "_free", lambda self, valid: ~valid)
    check_register(RegisterMerger, fan_in=2)


@mutant
def a_fifo_that_keeps_what_has_passed_it(patch: Patch) -> None:
    """test_every_cycle_of_a_pipelined_network_is_that_of_the_model; the word comes twice."""
    patch.setattr(Fifo, "_taken", lambda self: (self.level != 0) & self.read.ready)
    check_pipelined(PipelinedNetwork, {"n": 4, "depth": 4, "margin": 1})


@mutant
def a_fifo_that_lets_words_pass_though_nobody_takes_them(patch: Patch) -> None:
    """test_every_cycle_of_a_fifo_is_that_of_a_plain_queue."""
    patch.setattr(Fifo, "_taken", lambda self: self.read.valid & (self.read.ready | (self.level == 0)))
    check_against_plain(Fifo, depth=3, latency=0)


@mutant
def a_bufferless_merger_that_prefers_one_side(patch: Patch) -> None:
    """test_a_merger_without_a_buffer_passes_a_word_in_every_cycle_and_takes_turns."""
    patch.setattr(BufferlessMerger, "_second_goes", lambda self, turn, valid: valid[1] & ~valid[0])
    check_bufferless(BufferlessMerger)


@mutant
def a_merger_that_reads_its_ports_though_almost_full(patch: Patch) -> None:
    """test_every_cycle_of_the_thesis_merger_is_that_of_the_model."""
    patch.setattr("handfast.engines.hardware.merger.Fifo", without_margin)
    check_merger(Merger, width=8, depth=4, margin=2)


@mutant
def ties_that_do_not_go_north(patch: Patch) -> None:
    """test_above_empty_fifos_a_result_leaves_at_once."""

    def east_first(**shape: Any) -> AdaptiveNetwork:
        return AdaptiveNetwork(**shape, port_ties="EWN")

    check_leaves_at_once(east_first)


@mutant
def a_full_fifo_that_does_not_mask_north(patch: Patch) -> None:
    """test_a_ring_above_full_fifos_loses_nothing."""
    patch.setattr(RingNode, "_north_goes_last", lambda self, no_room: Const(0))
    check_full_ring(AdaptiveNetwork)


@mutant
def a_node_that_forgets_the_word_on_its_way_north(patch: Patch) -> None:
    """test_every_cycle_of_an_adaptive_network_is_that_of_the_model."""
    patch.setattr(RingNode, "_no_room", lambda self, being_written: self.own >= self.depth)
    check_network(AdaptiveNetwork, {"n": 4, "depth": 2, "margin": 0})


@mutant
def youngest_first(patch: Patch) -> None:
    """test_every_cycle_of_an_adaptive_network_is_that_of_the_model."""
    patch.setattr(RingNode, "_east_is_older", lambda self: self.east_in.hops < self.west_in.hops)
    check_network(AdaptiveNetwork, {"n": 3, "depth": 4, "latency": 1})


@mutant
def ports_by_the_fullest_fifo(patch: Patch) -> None:
    """test_results_of_one_core_are_spread_over_all_fifos."""
    original = RingNode._goes_before

    def goes_before(self: RingNode, port: str, other: str, counters: dict[str, Value]) -> Value:
        return original(self, port, other, {each: ~counter for each, counter in counters.items()})

    patch.setattr(RingNode, "_goes_before", goes_before)
    check_spreads(AdaptiveNetwork)


@mutant
def a_hop_counter_that_wraps(patch: Patch) -> None:
    """test_every_cycle_of_an_adaptive_network_is_that_of_the_model, with a counter of two bits."""
    patch.setattr(RingNode, "_one_more", lambda self, hops: hops + 1)
    check_network(AdaptiveNetwork, {"n": 6, "depth": 4, "port_ties": "ENW", "hop_bits": 2})


@mutant
def a_throttle_that_takes_back_what_it_offered(patch: Patch) -> None:
    """test_every_tuple_is_admitted_or_discarded_and_counted."""
    patch.setattr(Throttle, "_closed", lambda self, offered: self.throttle.any())
    check_throttle(Throttle)


@pytest.mark.parametrize("bug", MUTANTS, ids=lambda bug: bug.__name__)
def test_a_deliberate_bug_is_caught(bug: Caught, monkeypatch: Patch) -> None:
    assert bug.__doc__ is not None
    with pytest.raises(AssertionError):
        bug(monkeypatch)
