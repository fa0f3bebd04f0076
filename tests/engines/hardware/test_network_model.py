"""The plain models of the networks are equal to the circuits on random configurations."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from handfast.engines.hardware.adaptive import AdaptiveNetwork
from handfast.engines.hardware.pipelined import PipelinedNetwork
from handfast.engines.hardware.tree import TreeNetwork
from tests.engines.hardware.plain_network import adaptive_state, adaptive_step, tree_state, tree_step
from tests.engines.hardware.plain_pipelined import pipelined_state, pipelined_step
from tests.engines.hardware.traffic import PATTERNS, SINKS, differences, run_model, simulate, traffic


def random_tree(rng: np.random.Generator) -> dict[str, Any]:
    depth = int(rng.integers(1, 10))
    shape: dict[str, Any] = {
        "n": int(rng.integers(1, 9)),
        "depth": depth,
        "margin": int(rng.integers(0, min(depth, 4))),
        "latency": int(rng.integers(1, 3)),
        "cycles_per_result": int(rng.choice([1, 1, 2, 4])),
    }
    if rng.random() < 0.5:
        return shape | {"merger": "round_robin", "fan_in": int(rng.integers(2, 9))}
    return shape | {"cycles": 5, "writes": [(1, 2), (1, 4), (3, 4)][rng.integers(0, 3)]}


def random_adaptive(rng: np.random.Generator) -> dict[str, Any]:
    depth = int(rng.integers(1, 10))
    return {
        "n": int(rng.integers(1, 7)),
        "depth": depth,
        "margin": int(rng.integers(0, min(depth, 4))),
        "latency": int(rng.integers(1, 3)),
        "port_ties": str(rng.choice(["NEW", "NWE", "ENW", "WNE", "EWN", "WEN"])),
        "rank_ties": str(rng.choice(["E", "W"])),
        "north_last": str(rng.choice(["almost_full", "full"])),
        "hop_bits": int(rng.integers(1, 5)),
    }


def random_pipelined(rng: np.random.Generator) -> dict[str, Any]:
    depth = int(rng.integers(1, 10))
    return {
        "n": int(rng.integers(1, 10)),
        "depth": depth,
        "margin": int(rng.integers(0, min(depth, 4))),
        "latency": int(rng.integers(0, 3)),
        "fan_in": int(rng.integers(2, 9)),
    }


KINDS: dict[str, Any] = {
    "tree": (random_tree, TreeNetwork, tree_state, tree_step),
    "adaptive": (random_adaptive, AdaptiveNetwork, adaptive_state, adaptive_step),
    "pipelined": (random_pipelined, PipelinedNetwork, pipelined_state, pipelined_step),
}


@pytest.mark.parametrize("seed", [*range(5), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(5, 105))])
@pytest.mark.parametrize("kind", KINDS)
def test_model_and_circuit_agree_in_every_cycle_on_a_random_network(kind: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    random_shape, network, state, step = KINDS[kind]
    shape = random_shape(rng)
    pattern, sink = str(rng.choice(PATTERNS)), str(rng.choice(SINKS))
    work = traffic(pattern, sink, n=shape["n"], words=100, cycles=120, seed=seed)
    found = simulate(network(width=12, **shape), work)
    assert not differences(run_model(step, state(**shape), work), found), (shape, pattern, sink)
