"""The loop over the cycles of the fast model, compiled once and kept on disk."""

from __future__ import annotations

from collections.abc import Callable
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
from handfast.engines.hardware.model.bits import UNCOUNTED, Ints, put_in
from handfast.engines.hardware.model.chain import NEVER, NOBODY, Chain, begin_step, gather_offers, go_on, match_of
from handfast.engines.hardware.model.fifos import NONE, Fifos, pop, push
from handfast.engines.hardware.model.pipelined import Stages, clock_stages, offer_to_stages, run_stages
from handfast.engines.hardware.model.sources import sources
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


def _compiled(digest: str) -> Callable[..., int]:
    """The loop; what Numba keeps of it on the disk goes by the text of all files of the model."""

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
        if not digest:  # named here, so that it is part of the function
            return STUCK
        counts, flags, level, calendar = state.counts, state.flags, fifos.level, chain.calendar
        offering, refused, discards = chain.offering, chain.refused, chain.discards
        entered, orders, r_slots = chain.entered, chain.orders, chain.r_slots
        cycle, tick, step = counts[CYCLE], counts[TICK], counts[STEP]
        busy, finish, ready_at = counts[BUSY], counts[FINISH], counts[READY_AT]
        waiting, under_way, moved = counts[WAITING], counts[UNDER_WAY], counts[MOVED]
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
                        discarded[step] = discarded[step] or level[core] >= fifos.limit[core]
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
            if under_way == 0 and flags_set == 0 and waiting == 0 and (works or step < len(taken)):
                before, until = cycle, NEVER
                if step < len(taken) and (discards or not works):
                    until = max(step * every, cycle + 1)
                while cycle < until and (not works or busy or tick < finish):
                    beats = ratio == 1 or cycle % ratio == 0
                    if (beats and calendar[tick & (len(calendar) - 1)] != NOBODY) or (
                        levels_every and cycle == next_sample
                    ):
                        break
                    tick += int(beats)
                    cycle += 1
                if network == IN_TREE:
                    tree.phase[0] = (tree.phase[0] + cycle - before) % tree.cycles
                if cycle > before:
                    continue

            count = gather_offers(chain, not suspended, tick, waiting) if beats else 0
            almost_full = suspends and fifos.full[0] != 0
            if network == IN_RING:
                now = ring.phase[0]
                ring.phase[0] = 1 - now
                word = run_bufferless_tree(now, bufferless, fifos)
                for i in range(count):
                    core = offering[i]
                    ring.offered[core] = match_of(chain, core)
                    put_in(ring.visited, now, core)
                run_ring(now, ring, refused, fifos)
                clock_adaptive(1 - now, bufferless, fifos)
            elif network == IN_STAGES:
                now = stages.phase[0]
                stages.phase[0] = 1 - now
                for i in range(count):
                    core = offering[i]
                    refused[core] = not offer_to_stages(now, core, match_of(chain, core), stages, fifos)
                word = run_stages(now, stages, fifos)
                clock_stages(1 - now, stages, fifos)
            else:
                word = read_output(cycle, tree, fifos)
                if tree.round_robin:
                    run_arbiters(tree, fifos)
                else:
                    run_states(tree, fifos)
                for i in range(count):
                    core = offering[i]
                    refused[core] = level[core] == fifos.depth[core]
                    if not refused[core]:
                        push(fifos, core, match_of(chain, core))
                    # Where the FIFO is almost full, its oldest result makes room, if no merger takes it.
                    crowded = drops and level[core] >= fifos.limit[core]
                    if crowded and fifos.front[core] != NONE and not fifos.popped[core]:
                        pop(fifos, core)
                        counts[DROPPED] += 1
                        under_way -= 1
                clock_tree(tree, fifos)
            if word != NONE:
                words[results] = word
                cycles[results] = moved = cycle
                results += 1
                under_way -= 1

            # What the cores do next.
            if beats:
                waiting = 0
                tick += int(not suspended)
            for i in range(count):
                core = offering[i]
                if refused[core]:
                    refused[core] = 0
                    chain.waiting[waiting] = core
                    waiting += 1
                    continue
                under_way += 1
                last_taken = cycle
                done = go_on(chain, core, tick)
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
        counts[WAITING], counts[UNDER_WAY], counts[MOVED] = waiting, under_way, moved
        counts[FLAG], counts[FLAGS], counts[SUSPENDED] = flag, flags_set, suspended_cycles
        counts[LAST_TAKEN], counts[NEXT_SAMPLE] = last_taken, next_sample
        counts[RESULTS], counts[SAMPLES] = results, samples_written
        return status

    compiled: Callable[..., int] = njit(cache=True, **UNCOUNTED)(advance)
    return compiled


advance = _compiled(sources())
