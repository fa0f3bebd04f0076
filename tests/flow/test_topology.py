"""The chain as a value: neighbours, entries and paths fit together, whatever its length."""

from __future__ import annotations

from dataclasses import FrozenInstanceError

import pytest

from handfast.errors import SpecError
from handfast.flow.topology import STREAMS, ChainTopology, R, S, Side, by_size

LENGTHS = (1, 2, 3, 7)


def test_a_chain_of_three_cores() -> None:
    chain = ChainTopology(3)
    assert [(None, 0), (0, 1), (1, 2), (2, None)] == chain.links
    assert ([0, 1, 2], [2, 1, 0]) == (list(chain.path(R)), list(chain.path(S)))
    assert (Side.LEFT, Side.RIGHT) == (chain.entry(R), chain.entry(S))
    assert (0, 2) == (chain.neighbour(1, Side.LEFT), chain.neighbour(1, Side.RIGHT))
    assert (2, 0) == (chain.following(1, R), chain.following(1, S))


@pytest.mark.parametrize("cores", LENGTHS)
def test_the_right_neighbour_of_a_left_neighbour_is_the_core_itself(cores: int) -> None:
    chain = ChainTopology(cores)
    for core in range(cores):
        for side in Side:
            beside = chain.neighbour(core, side)
            assert core == chain.core_at(side) if beside is None else core == chain.neighbour(beside, side.opposite)


@pytest.mark.parametrize("cores", LENGTHS)
def test_every_link_joins_neighbours_and_the_driver_stands_at_both_ends(cores: int) -> None:
    chain = ChainTopology(cores)
    assert cores + 1 == len(chain.links)
    for left, right in chain.links:
        assert right == (chain.core_at(Side.LEFT) if left is None else chain.neighbour(left, Side.RIGHT))
        assert left == (chain.core_at(Side.RIGHT) if right is None else chain.neighbour(right, Side.LEFT))


@pytest.mark.parametrize("cores", LENGTHS)
def test_each_stream_passes_every_core_once_and_the_other_in_the_opposite_direction(cores: int) -> None:
    chain = ChainTopology(cores)
    assert list(range(cores)) == sorted(chain.path(R))
    assert list(chain.path(R)) == list(chain.path(S))[::-1]


@pytest.mark.parametrize("cores", LENGTHS)
@pytest.mark.parametrize("stream", STREAMS)
def test_a_stream_leaves_where_the_other_enters(cores: int, stream: int) -> None:
    chain = ChainTopology(cores)
    path = list(chain.path(stream))
    assert (chain.first(stream), chain.last(stream)) == (path[0], path[-1])
    assert chain.exit(stream) is chain.entry(1 - stream)
    assert chain.last(stream) == chain.first(1 - stream)
    assert chain.following(chain.last(stream), stream) is None


def test_a_core_alone_is_both_ends() -> None:
    chain = ChainTopology(1)
    assert [(None, 0), (0, None)] == chain.links
    assert [None, None] == [chain.neighbour(0, side) for side in Side]
    assert {0} == {chain.first(R), chain.last(R), chain.first(S), chain.last(S)}


def test_by_size_a_core_forwards_while_it_has_more_than_the_core_that_follows() -> None:
    assert [True, False, False] == [by_size(own, 5) for own in (6, 5, 4)]
    assert by_size is ChainTopology(2).policy


def test_a_topology_is_a_value() -> None:
    assert ChainTopology(3) == ChainTopology(3) != ChainTopology(4)
    assert ChainTopology(3, policy=lambda own, following: True) != ChainTopology(3)
    with pytest.raises(FrozenInstanceError):
        ChainTopology(3).cores = 4  # type: ignore[misc]


@pytest.mark.parametrize("cores", [0, -1])
def test_a_chain_has_a_core(cores: int) -> None:
    with pytest.raises(SpecError, match=f"The number of cores must be at least 1, not {cores}"):
        ChainTopology(cores)
