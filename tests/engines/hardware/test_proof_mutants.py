"""Deliberate bugs in the parts that are proven: the model checker finds each, and names the claim that it breaks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from amaranth.hdl import Const, Module, Signal, Value

from handfast.engines.hardware.adaptive import AdaptiveNetwork, RingNode
from handfast.engines.hardware.admission import Suspend, Throttle
from handfast.engines.hardware.check import check
from handfast.engines.hardware.circular.layout import WindowsLayout
from handfast.engines.hardware.fifo import Fifo
from handfast.engines.hardware.merger import BufferlessMerger, Merger, RegisterMerger, RoundRobinMerger
from handfast.engines.hardware.pipelined import PipelinedNetwork
from handfast.engines.hardware.proofs.admission import SuspendProof, ThrottleProof
from handfast.engines.hardware.proofs.circuit import CircuitProof
from handfast.engines.hardware.proofs.fifo import FifoProof
from handfast.engines.hardware.proofs.merging import OrderProof, TurnProof
from handfast.engines.hardware.proofs.proven import PROOFS
from handfast.engines.hardware.proofs.ring import NodeProof, RingProof
from handfast.engines.hardware.proofs.stages import RangeProof, StandstillProof, StashProof, stash_layout
from handfast.engines.hardware.shape import CircuitShape
from handfast.engines.hardware.stashed.stash import Stash
from handfast.engines.hardware.tree import BufferlessTree, TreeNetwork

pytestmark = pytest.mark.usefixtures("yosys")

Patch = pytest.MonkeyPatch
Bug = Callable[[Patch], Any]  # makes the harness of a part, with the part broken
MUTANTS: list[tuple[str, str, Bug]] = []  # the part that is proven, the words of the claim that breaks, the bug


def breaks(part: str, claim: str) -> Callable[[Bug], Bug]:
    """Enter a bug into the list."""

    def enter(bug: Bug) -> Bug:
        MUTANTS.append((part, claim, bug))
        return bug

    return enter


class WithoutMargin(Fifo):
    """A FIFO that is almost full only when it is full."""

    def elaborate(self, platform: Any) -> Module:
        asked, self.margin = self.margin, 0
        m = super().elaborate(platform)
        self.margin = asked
        return m


class ShortCount(Throttle):
    """A throttle whose count has one bit less than it says."""

    def elaborate(self, platform: Any) -> Module:
        said, self.count_bits = self.count_bits, self.count_bits - 1
        m = super().elaborate(platform)
        self.count_bits = said
        return m


class BlindSuspend(Suspend):
    """A control that looks at one FIFO only."""

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        known = Signal()
        m.d.sync += known.eq(self.almost_full[0])
        m.d.comb += self.suspend.eq(known)
        return m


@breaks("FIFO", "words leave unchanged and in the order they entered in")
def an_address_that_wraps_a_slot_early(patch: Patch) -> Any:
    patch.setattr(Fifo, "_after", lambda self, address: Const(0))
    return FifoProof(Fifo(width=1, depth=2, margin=1, latency=1))


@breaks("FIFO", "the level is the number of words inside")
def a_level_that_counts_what_nobody_was_offered(patch: Patch) -> Any:
    patch.setattr(Fifo, "_taken", lambda self: self.read.ready & (self.level != 0))
    return FifoProof(Fifo(width=1, depth=3, margin=1, latency=2))


@breaks("FIFO", "almost full is a margin of free slots or fewer")
def a_flag_without_margin(patch: Patch) -> Any:
    return FifoProof(WithoutMargin(width=1, depth=2, margin=1, latency=1))


@breaks("merger of three states", "what is written to a FIFO finds room there")
def a_merger_that_reads_its_ports_though_almost_full(patch: Patch) -> Any:
    patch.setattr("handfast.engines.hardware.merger.Fifo", WithoutMargin)
    merger = Merger(width=2, depth=2, margin=1)
    return OrderProof(merger, room=3, within=4, unrefused=[merger.fifo])


@breaks("merger of three states", "a word leaves within 4 cycles with a ready output")
def a_loop_that_ends_before_the_second_word_is_written(patch: Patch) -> Any:
    merger = Merger(width=2, depth=2, margin=1)
    merger.cycles = 2
    return OrderProof(merger, room=3, within=4)


@breaks("merger with an arbiter and a FIFO", "an input waits for at most 5 cycles in a row with a ready output")
def a_token_that_stays(patch: Patch) -> Any:
    patch.setattr("handfast.engines.hardware.merger._behind", lambda place, fan_in: place)
    return TurnProof(RoundRobinMerger(width=1, fan_in=4, depth=2, margin=1), within=5)


@breaks("arbiter before a register", "an input waits for at most 7 cycles in a row with a ready output")
def a_token_that_skips_an_input(patch: Patch) -> Any:
    patch.setattr("handfast.engines.hardware.merger._behind", lambda place, fan_in: (place + 2)[:3])
    return TurnProof(RegisterMerger(width=1, fan_in=8), within=7)


@breaks("arbiter before a register", "a word that is offered stays until it is taken")
def a_register_that_is_written_though_it_holds_a_word(patch: Patch) -> Any:
    patch.setattr(RegisterMerger, "_free", lambda self, valid: Const(1))
    return OrderProof(RegisterMerger(width=3, fan_in=3), room=1, within=1)


@breaks("merger without a buffer", "an input waits for at most 1 cycle in a row with a ready output")
def a_merger_that_prefers_one_side(patch: Patch) -> Any:
    patch.setattr(BufferlessMerger, "_second_goes", lambda self, turn, valid: valid[1] & ~valid[0])
    return TurnProof(BufferlessMerger(width=1), within=1)


@breaks("merger without a buffer", "words leave unchanged and in the order they entered in")
def a_merger_that_takes_turns_whoever_has_a_word(patch: Patch) -> Any:
    patch.setattr(BufferlessMerger, "_second_goes", lambda self, turn, valid: turn)
    return OrderProof(BufferlessMerger(width=2), room=2, within=9)


@breaks("ring node", "a tuple has made one hop more")
def a_hop_counter_that_wraps(patch: Patch) -> Any:
    patch.setattr(RingNode, "_one_more", lambda self, hops: hops + 1)
    return NodeProof(RingNode(width=1, depth=2, hop_bits=2))


@breaks("ring node", "what goes north finds room there")
def a_node_that_forgets_the_word_on_its_way_north(patch: Patch) -> Any:
    patch.setattr(RingNode, "_no_room", lambda self, being_written: self.own >= self.depth)
    return NodeProof(RingNode(width=1, depth=2, hop_bits=2))


@breaks("ring node", "as many tuples go out as came in")
def two_ports_of_the_same_rank(patch: Patch) -> Any:
    def goes_before(self: RingNode, port: str, other: str, counters: dict[str, Value]) -> Value:
        return counters[port] < counters[other]

    patch.setattr(RingNode, "_goes_before", goes_before)
    return NodeProof(RingNode(width=1, depth=2, hop_bits=2))


@breaks("ring and FIFOs of the adaptive network", "with silent cores ring and FIFOs are empty after 7 cycles in a row")
def ties_that_do_not_go_north(patch: Patch) -> Any:
    network = AdaptiveNetwork(n=2, width=1, depth=2, margin=1, latency=1, hop_bits=2, port_ties="EWN")
    return RingProof(network, gone_within=7, taken_within=9)


@breaks("ring and FIFOs of the adaptive network", "what goes north finds room there")
def a_full_fifo_that_does_not_mask_north(patch: Patch) -> Any:
    patch.setattr(RingNode, "_north_goes_last", lambda self, no_room: Const(0))
    network = AdaptiveNetwork(n=2, width=1, depth=2, margin=1, latency=1, hop_bits=2)
    return RingProof(network, gone_within=7, taken_within=9)


@breaks("ring and FIFOs under admission control", "every node takes every result at once")
def a_ring_with_a_margin_of_the_delay(patch: Patch) -> Any:
    network = AdaptiveNetwork(n=2, width=1, depth=2, margin=0, latency=1, hop_bits=2)
    return RingProof(network, gone_within=9, control=Suspend(n=1), circles_within=9)


@breaks("tree of mergers", "a word leaves within 5 cycles with a ready output")
def a_tree_whose_loops_end_before_the_second_word_is_written(patch: Patch) -> Any:
    tree = TreeNetwork(n=2, width=2, depth=2, margin=1)
    tree.mergers[0].cycles = 2
    return OrderProof(tree, room=3, within=5)


@breaks("tree of mergers without buffers", "words leave unchanged and in the order they entered in")
def a_tree_that_takes_turns_whoever_has_a_word(patch: Patch) -> Any:
    patch.setattr(BufferlessMerger, "_second_goes", lambda self, turn, valid: turn)
    return OrderProof(BufferlessTree(n=2, width=2), room=2, within=9)


@breaks("pipelined network", "a word that is offered stays until it is taken")
def a_tree_whose_registers_are_written_though_they_hold_a_word(patch: Patch) -> Any:
    patch.setattr(RegisterMerger, "_free", lambda self, valid: Const(1))
    return OrderProof(PipelinedNetwork(n=2, width=2, depth=2, margin=1, fan_in=2), room=3, within=5)


@breaks("pipelined network", "an input waits for at most 4 cycles in a row with a ready output")
def a_tree_whose_tokens_stay(patch: Patch) -> Any:
    patch.setattr("handfast.engines.hardware.merger._behind", lambda place, fan_in: place)
    return TurnProof(PipelinedNetwork(n=4, width=1, depth=2, margin=1, fan_in=2), within=4)


@breaks("suspension before FIFOs", "no core finds its FIFO full")
def cores_with_flags_without_margin(patch: Patch) -> Any:
    return SuspendProof(
        Suspend(n=2), [Fifo(width=1, depth=2, margin=0, latency=1) for _ in range(2)], suspended_within=3
    )


@breaks("suspension before FIFOs", "no core finds its FIFO full")
def a_control_that_looks_at_one_fifo_only(patch: Patch) -> Any:
    return SuspendProof(BlindSuspend(n=2), [Fifo(width=1, depth=2, margin=1) for _ in range(2)], suspended_within=3)


@breaks("throttle", "a word that is offered stays until it is taken")
def a_throttle_that_takes_back_what_it_offered(patch: Patch) -> Any:
    patch.setattr(Throttle, "_closed", lambda self, offered: self.throttle.any())
    return ThrottleProof(Throttle(n=2, width=1, count_bits=2))


@breaks("throttle", "discarded tuples are counted, as far as the count goes")
def a_count_that_stops_early(patch: Patch) -> Any:
    return ThrottleProof(ShortCount(n=2, width=1, count_bits=2))


def _whole(network: str, **shape: Any) -> CircuitShape:
    return CircuitShape(cores=2, sizes=(1, 1), scan="eager", network=network, **shape)


@breaks("whole circuit, tree", "no core waits for room for a result")
def a_tree_without_margin(patch: Patch) -> Any:
    return CircuitProof(_whole("tree", core_buffer=1, network_buffer=1, margin=0), unrefused=True, within=14)


@breaks("whole circuit, pipelined network", "no core waits for room for a result")
def a_pipelined_network_without_margin(patch: Patch) -> Any:
    return CircuitProof(_whole("pipelined", network_buffer=1, margin=0), unrefused=True, within=14)


@breaks("whole circuit, adaptive network", "without steps it is idle after 6 cycles in a row with results taken")
def a_circuit_in_which_a_result_circles(patch: Patch) -> Any:
    shape = _whole("adaptive", network_buffer=2, margin=1, latency=1, port_ties="EWN")
    return CircuitProof(shape, unrefused=False, within=14, idle_within=6)


@breaks("ring of stages", "while results are taken, a stage moves if any waits")
def a_ring_in_which_all_hops_share_their_room(patch: Patch) -> Any:
    patch.setattr(StandstillProof, "_room", lambda self, stage: stage.room[1:].all().replicate(3))
    return StandstillProof(streams=4, buffer=1)


@breaks("ranges in a ring", "a tuple that is looked for is stored and not overwritten")
def windows_with_too_little_room_for_what_has_expired(patch: Patch) -> Any:
    patch.setattr(WindowsLayout, "groups", lambda self, stream: self.held[stream] + self.in_flight - 2)
    return RangeProof(streams=3, rows=1, in_flight=3, stream=1)


@breaks("ranges in a ring", "a range has every tuple that the window holds")
def ranges_that_forget_a_tuple(patch: Patch) -> Any:
    whole = RangeProof(streams=3, rows=2, in_flight=3, stream=1)
    whole.chain.counted = (1, 1, 1)
    return whole


@breaks("ranges in a ring", "a range has no tuple that came later or has expired")
def ranges_that_reach_beyond_the_window(patch: Patch) -> Any:
    whole = RangeProof(streams=3, rows=2, in_flight=3, stream=1)
    whole.rows = 1
    return whole


@breaks("stash", "a whole stash has every pair that is in both windows")
def a_stash_that_remembers_only_the_last_pair_it_lost(patch: Patch) -> Any:
    patch.setattr(Stash, "_later", staticmethod(lambda still, last, own: own))
    return StashProof(Stash(layout=stash_layout(), size=1))


@pytest.mark.parametrize(("part", "claim", "bug"), [pytest.param(*each, id=each[2].__name__) for each in MUTANTS])
def test_a_deliberate_bug_is_found_with_the_claim_that_it_breaks(
    part: str, claim: str, bug: Bug, monkeypatch: Patch
) -> None:
    verdict = check(bug(monkeypatch), depth=14)
    assert verdict.failure is not None
    assert claim in verdict.failure.assertion
    assert str(verdict).startswith(f"fails in cycle {verdict.failure.cycle}: {claim}")


def test_of_every_part_that_is_proven_a_broken_variant_is_found() -> None:
    assert {proof.part for proof in PROOFS} == {part for part, _, _ in MUTANTS}
