"""The loop over the cycles of the fast model, compiled once and kept on disk."""

from __future__ import annotations

from collections.abc import Callable
from hashlib import sha256
from importlib import resources
from typing import Any, NamedTuple

import numpy as np
from numba import njit

from handfast.engines.hardware.model.adaptive import (
    BufferlessTree,
    Ring,
    clock_adaptive,
    run_bufferless_tree,
    run_ring,
)
from handfast.engines.hardware.model.bits import Ints, put, put_in
from handfast.engines.hardware.model.chain import NEVER, NOBODY, Chain, begin_step, gather_offers, go_on, match_of
from handfast.engines.hardware.model.fifos import NONE, Fifos
from handfast.engines.hardware.model.pipelined import Stages, clock_stages, offer_to_stages, run_stages
from handfast.engines.hardware.model.tree import Tree, clock_tree, read_output, run_arbiters, run_states

# The numbers of a run, by their places in `State.counts`.
CYCLE = 0
TICK = 1  # cycles in which the cores were not suspended
STEP = 2  # steps taken
R_COUNT = 3  # slots of R that have entered
S_COUNT = 4
BUSY = 5  # cores that have matches to give
FINISH = 6  # the tick on which all others have finished
READY_AT = 7  # the cycle from which on a step may begin; -1: one is being worked on
WAITING = 8  # cores whose match was offered and not taken
UNDER_WAY = 9  # results that have left the cores and not the circuit
LAST_TAKEN = 10  # the last cycle in which a result left a core
MOVED = 11  # the last cycle in which a step was taken or a result came out
FLAG = 12  # the place among the flags that is read next
FLAGS = 13  # how many of the flags are 1
SUSPENDED = 14  # cycles in which the cores stood still
RESULTS = 15  # results written since the loop was entered
SAMPLES = 16  # samples written since the loop was entered
NEXT_SAMPLE = 17  # the cycle of the next sample
R_SLOT = 18  # slots of R that were offered, discarded ones among them
S_SLOT = 19
DROPPED = 20  # results that were dropped
ADMITTED = 21  # 1: the next step was not discarded when it came, and waits for a chain with a slower clock

IN_TREE, IN_RING, IN_STAGES = 0, 1, 2  # the network that is there
IDLE, GOES_ON, STUCK = 0, 1, 2  # why the loop returns: all is done; there is no room for results; nothing moves


class State(NamedTuple):
    """What a run is besides chain, FIFOs and network."""

    counts: Ints
    flags: Ints  # whether any FIFO was almost full in the last cycles: as many as there are flip-flops


def new_state(delay: int) -> State:
    """The state after reset."""
    counts = np.zeros(22, np.int64)
    counts[LAST_TAKEN] = -2
    return State(counts, np.zeros(delay, np.int64))


def _compiled(sources: str) -> Callable[..., int]:
    """The loop; what Numba keeps of it on the disk goes by the text of all files of the model."""

    @njit(cache=True, nogil=True, _nrt=False)
    def advance(
        state: State,
        chain: Chain,
        fifos: Fifos,
        tree: Tree,
        ring: Ring,
        bufferless: BufferlessTree,
        stages: Stages,
        network: int,
        ratio: int,
        suspends: bool,
        drops: bool,
        r_shifts: Any,
        s_shifts: Any,
        brings: Any,
        every: int,
        taken: Ints,
        discarded: Any,
        words: Ints,
        cycles: Ints,
        samples: Ints,
        levels_every: int,
        quiet: int,
    ) -> int:
        if not sources:  # named here, so that it is part of the function
            return STUCK
        counts, flags = state.counts, state.flags
        # Arrays as local names: reaching into a state costs a count of references each time.
        partners, entering, first, behind = chain.partners, chain.entering, chain.first, chain.behind
        at, left, edge, offsets, scan = chain.at, chain.left, chain.edge, chain.offsets, chain.scan
        ahead, length, waiting, offering = chain.ahead, chain.length, chain.waiting, chain.offering
        calendar, next_core = chain.calendar, chain.next_core
        entered, orders, r_slots, discards = chain.entered, chain.orders, chain.r_slots, chain.discards
        r_size, s_size, ram, comparisons = chain.r_size, chain.s_size, chain.ram, chain.comparisons
        depth, limit, level, highest, oldest = fifos.depth, fifos.limit, fifos.level, fifos.highest, fifos.oldest
        stored, front, popped, pushed = fifos.words, fifos.front, fifos.popped, fifos.pushed
        touched, full, latency = fifos.touched, fifos.full, fifos.latency
        children, parent, port, ports, fed = tree.children, tree.parent, tree.port, tree.ports, tree.fed
        closed, bar, token, held, holding = tree.closed, tree.bar, tree.token, tree.held, tree.holding
        groups, phase, free_at = tree.groups, tree.phase, tree.free_at
        merger_cycles, first_write, second_write = tree.cycles, tree.first_write, tree.second_write
        north, rising, from_west, from_east = ring.north, ring.rising, ring.from_west, ring.from_east
        west_hops, east_hops, visited, ring_phase = ring.west_hops, ring.east_hops, ring.visited, ring.phase
        offered, refused = ring.offered, chain.refused
        leaves, leaf_held, result, turn = bufferless.children, bufferless.held, bufferless.result, bufferless.turn
        above, active = bufferless.parent, bufferless.active
        stage_children, stage_parent, stage_port = stages.children, stages.parent, stages.port
        registers, stage_ports, stage_token = stages.word, stages.ports, stages.token
        stage_active, stage_phase = stages.active, stages.phase
        calendar_mask = len(calendar) - 1

        cycle, tick, step = counts[CYCLE], counts[TICK], counts[STEP]
        busy, finish, ready_at = counts[BUSY], counts[FINISH], counts[READY_AT]
        waiting_count, under_way, moved = counts[WAITING], counts[UNDER_WAY], counts[MOVED]
        flag, flags_set, suspended_cycles = counts[FLAG], counts[FLAGS], counts[SUSPENDED]
        last_taken, next_sample = counts[LAST_TAKEN], counts[NEXT_SAMPLE]
        results = samples_written = 0
        status = GOES_ON
        while results < len(words):
            if levels_every and cycle == next_sample:
                if samples_written == len(samples):
                    break
                for i in range(len(level)):
                    samples[samples_written, i] = level[i]
                samples_written += 1
                next_sample += levels_every

            # Whether the chain waits for a step, and whether it gets one.
            suspended = flags[flag] != 0
            beats = ratio == 1 or cycle % ratio == 0  # the chain works in this cycle
            if ready_at < 0 and busy == 0 and tick >= finish:
                ready_at = cycle
                if chain.nested_loop:  # it takes one more cycle to insert S, suspended or not
                    ready_at += 1 + (-cycle) % ratio
            ready = ready_at >= 0 and cycle >= ready_at
            if step == len(taken):
                if ready and under_way == 0 and cycle >= last_taken + 2:
                    status = IDLE
                    break
            elif cycle < step * every:
                moved = cycle  # it waits for the step, not for itself
            else:
                enters = ready and beats and not suspended
                if discards and brings[step] and not counts[ADMITTED]:
                    discarded[step] = not ready
                    for core in range(chain.cores):
                        discarded[step] = discarded[step] or level[core] >= limit[core]
                    counts[ADMITTED] = not discarded[step]
                    enters = enters and not discarded[step]
                if enters:
                    counts[ADMITTED] = 0
                    if r_shifts[step]:
                        entered[counts[R_COUNT]] = counts[R_SLOT]
                        orders[counts[R_SLOT]] = counts[R_COUNT]
                    if s_shifts[step]:
                        entered[r_slots + counts[S_COUNT]] = counts[S_SLOT]
                        orders[r_slots + counts[S_SLOT]] = counts[S_COUNT]
                    busy, finish = begin_step(
                        chain, r_shifts[step], s_shifts[step], counts[R_COUNT], counts[S_COUNT], tick
                    )
                    counts[R_COUNT] += r_shifts[step]
                    counts[S_COUNT] += s_shifts[step]
                    ready_at = -1
                if enters or discarded[step]:
                    counts[R_SLOT] += r_shifts[step]
                    counts[S_SLOT] += s_shifts[step]
                    taken[step] = moved = cycle
                    step += 1
            if cycle - moved > quiet:
                status = STUCK
                break

            # With nothing under way nothing happens before the next match, the end of the step, or the next one.
            works = ready_at < 0
            if under_way == 0 and flags_set == 0 and waiting_count == 0 and (works or step < len(taken)):
                before, until = cycle, NEVER
                if step < len(taken) and (discards or not works):
                    until = max(step * every, cycle + 1)
                while cycle < until and (not works or busy or tick < finish):
                    beats = ratio == 1 or cycle % ratio == 0
                    if (beats and calendar[tick & calendar_mask] != NOBODY) or (levels_every and cycle == next_sample):
                        break
                    tick += int(beats)
                    cycle += 1
                if network == IN_TREE:
                    phase[0] = (phase[0] + cycle - before) % merger_cycles
                if cycle > before:
                    continue

            count = 0
            if beats:
                count = gather_offers(not suspended, tick, waiting_count, waiting, offering, calendar, next_core)
            almost_full = suspends and full[0] != 0
            if network == IN_RING:
                now = ring_phase[0]
                ring_phase[0] = 1 - now
                word = run_bufferless_tree(now, leaves, leaf_held, result, turn, above, active, front, popped, touched)
                for i in range(count):
                    core = offering[i]
                    offered[core] = match_of(core, scan, entering, partners, at)
                    put_in(visited, now, core)
                run_ring(
                    now, north, rising, from_west, from_east, west_hops, east_hops, visited, offered, refused,
                    ring.north_before_east, ring.north_before_west, ring.east_before_west, ring.east_older,
                    ring.north_last_when_almost_full, ring.most_hops, depth, limit, level, pushed, touched,
                )  # fmt: skip
                clock_adaptive(
                    1 - now, above, active, len(turn), depth, limit, level, highest, oldest, stored, front, popped,
                    pushed, touched, full, latency,
                )  # fmt: skip
            elif network == IN_STAGES:
                now = stage_phase[0]
                stage_phase[0] = 1 - now
                for i in range(count):
                    core = offering[i]
                    match = match_of(core, scan, entering, partners, at)
                    refused[core] = not offer_to_stages(
                        now, core, match, stage_parent, stage_port, stage_ports, stage_active, len(registers), depth,
                        level, front, pushed, touched,
                    )  # fmt: skip
                word = run_stages(
                    now, stage_children, stage_parent, stage_port, registers, stage_ports, stage_token, stage_active,
                    stages.fan_in, front, popped, touched,
                )  # fmt: skip
                clock_stages(
                    1 - now, stage_parent, stage_port, stage_ports, stage_active, len(registers), depth, limit, level,
                    highest, oldest, stored, front, popped, pushed, touched, full, latency,
                )  # fmt: skip
            else:
                word = read_output(cycle, tree.root, front, popped, touched, free_at, tree.cycles_per_result)
                if tree.round_robin:
                    run_arbiters(fed, closed, children, ports, token, front, popped, pushed, touched, tree.fan_in)
                else:
                    run_states(
                        groups, phase, fed, closed, children, held, holding, depth, level, front, popped, pushed,
                        touched, merger_cycles, first_write, second_write,
                    )  # fmt: skip
                for i in range(count):
                    core = offering[i]
                    if level[core] < depth[core]:
                        pushed[core] = match_of(core, scan, entering, partners, at)
                        put(touched, core)
                    else:
                        refused[core] = 1
                    # Where the FIFO is almost full, its oldest result makes room, if no merger takes it.
                    if drops and level[core] >= limit[core] and front[core] != NONE and not popped[core]:
                        popped[core] = 1
                        put(touched, core)
                        counts[DROPPED] += 1
                        under_way -= 1
                clock_tree(
                    parent, port, ports, fed, closed, bar, depth, limit, level, highest, oldest, stored, front, popped,
                    pushed, touched, full, latency,
                )  # fmt: skip
            if word != NONE:
                words[results] = word
                cycles[results] = moved = cycle
                results += 1
                under_way -= 1

            # What the cores do next.
            if beats:
                waiting_count = 0
                tick += int(not suspended)
            for i in range(count):
                core = offering[i]
                if refused[core]:
                    refused[core] = 0
                    waiting[waiting_count] = core
                    waiting_count += 1
                    continue
                under_way += 1
                last_taken = cycle
                done = go_on(
                    core, tick, r_size, s_size, r_slots, partners, orders, first, behind, at, left, edge, offsets, ahead, scan,
                    length, calendar, next_core, ram, comparisons, discards,
                )  # fmt: skip
                if done >= 0:
                    busy -= 1
                    finish = max(finish, done)
            suspended_cycles += suspended
            flags_set += int(almost_full) - flags[flag]
            flags[flag] = almost_full
            flag = flag + 1 if flag + 1 < len(flags) else 0
            cycle += 1

        counts[CYCLE], counts[TICK], counts[STEP] = cycle, tick, step
        counts[BUSY], counts[FINISH], counts[READY_AT] = busy, finish, ready_at
        counts[WAITING], counts[UNDER_WAY], counts[MOVED] = waiting_count, under_way, moved
        counts[FLAG], counts[FLAGS], counts[SUSPENDED] = flag, flags_set, suspended_cycles
        counts[LAST_TAKEN], counts[NEXT_SAMPLE] = last_taken, next_sample
        counts[RESULTS], counts[SAMPLES] = results, samples_written
        return status

    return advance


def _sources() -> str:
    """A digest of all files of the model."""
    folder = resources.files("handfast.engines.hardware.model")
    texts = sorted((file.name, file.read_bytes()) for file in folder.iterdir() if file.name.endswith(".py"))
    return sha256(repr(texts).encode()).hexdigest()


advance = _compiled(_sources())
