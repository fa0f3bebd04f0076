"""The grid of a hypercube: the best there is, found in few tries, and never one that sends more than hash routing."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator, Sequence
from itertools import combinations, pairwise, product

import pytest

from handfast.core.planner import make_plan
from handfast.core.routing import grid
from handfast.core.routing.grid import Search, grid_of
from handfast.core.routing.hash import HashRouting
from handfast.core.routing.hypercube import HypercubeRouting
from handfast.core.routing.spread import SpreadRouting
from handfast.plan import Plan
from handfast.spec.join import JoinSpec
from handfast.spec.schema import Schema
from handfast.spec.types import INT64, TIMESTAMP

Reach = list[frozenset[int]]

STREAMS = tuple(f"s{number}" for number in range(16))
SCHEMA = Schema((("ts", TIMESTAMP), *((f"k{number}", INT64) for number in range(16))))

CHAIN = "s0.k0 = s1.k0 AND s1.k1 = s2.k1"
TRIANGLE = f"{CHAIN} AND s2.k2 = s0.k2"


def chain(streams: int) -> Reach:
    return [frozenset({k, k + 1}) for k in range(streams - 1)]


def ring(streams: int) -> Reach:
    return [frozenset({k, (k + 1) % streams}) for k in range(streams)]


def star(streams: int) -> Reach:
    return [frozenset({0, k}) for k in range(1, streams)]


def clique(streams: int) -> Reach:
    return [frozenset(pair) for pair in combinations(range(streams), 2)]


def tangled(chance: random.Random, streams: int) -> Reach:
    """Dimensions of any streams, none of which divides only what another does."""
    drawn = {frozenset(chance.sample(range(streams), chance.randint(2, streams))) for _ in range(chance.randint(1, 4))}
    return sorted((own for own in drawn if not any(own < other for other in drawn)), key=sorted)


def plan(on: str, streams: int, cores: int) -> Plan:
    names = STREAMS[:streams]
    return make_plan(JoinSpec(names, on, window="1 hour", time="ts").bind(dict.fromkeys(names, SCHEMA)), cores)


def joined(reach: Reach) -> str:
    """A predicate with a key of its own for each set of streams."""
    pairs = ((number, *pair) for number, own in enumerate(reach) for pair in pairwise(sorted(own)))
    return " AND ".join(f"s{a}.k{number} = s{b}.k{number}" for number, a, b in pairs)


def sizes_within(dimensions: int, cores: int) -> Iterator[tuple[int, ...]]:
    return (own for own in product(range(1, cores + 1), repeat=dimensions) if math.prod(own) <= cores)


def share(sizes: Sequence[int], reach: Reach, streams: int) -> float:
    """How much of all tuples a cell gets, by the definition: of each stream one part of those it is cut into."""
    parts = [math.prod(size for size, own in zip(sizes, reach, strict=True) if k in own) for k in range(streams)]
    return sum(1 / own for own in parts)


@pytest.mark.parametrize("seed", range(60))
def test_no_other_sizes_give_a_cell_less(seed: int) -> None:
    chance = random.Random(seed)
    streams, cores = chance.randint(3, 6), chance.randint(1, 20)
    reach = tangled(chance, streams)
    found = Search(reach, streams, cores).sizes()
    best = min(share(sizes, reach, streams) for sizes in sizes_within(len(reach), cores))
    assert math.prod(found) <= cores
    assert best == pytest.approx(share(found, reach, streams))


@pytest.mark.parametrize("make", [chain, ring, star, clique])
@pytest.mark.parametrize("cores", [2, 8, 200, 1000])
def test_the_search_ends_after_few_tries_and_has_not_become_worse(make: Callable[[int], Reach], cores: int) -> None:
    search = Search(make(16), 16, cores)
    begun = share(search._best[-1], make(16), 16)
    assert share(search.sizes(), make(16), 16) <= begun
    assert search.tried <= grid.MOST_TRIES


@pytest.mark.parametrize("make", [chain, ring, star])
def test_four_streams_over_a_thousand_cores_are_searched_to_the_end(make: Callable[[int], Reach]) -> None:
    search = Search(make(4), 4, 1000)
    search.sizes()
    assert search.tried < grid.MOST_TRIES


@pytest.mark.parametrize("tries", [1, 20_000])
@pytest.mark.parametrize("seed", range(40))
def test_a_hypercube_is_taken_only_where_it_sends_less(seed: int, tries: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """However early the search is stopped."""
    monkeypatch.setattr(grid, "MOST_TRIES", tries)
    grid_of.cache_clear()
    chance = random.Random(seed)
    streams, cores = chance.randint(3, 6), chance.choice([2, 3, 4, 8, 16, 64])
    laid_out = plan(joined(tangled(chance, streams)), streams, cores)
    grid_of.cache_clear()
    if laid_out.routing == HypercubeRouting():
        own, others = laid_out.routing.copies(laid_out.offer), (HashRouting(), SpreadRouting())
        assert all(sum(own) < sum(other.copies(laid_out.offer)) for other in others)
        assert max(own) <= cores
    else:
        assert HashRouting() == laid_out.routing


@pytest.mark.parametrize("seed", range(40))
def test_a_hypercube_is_taken_wherever_it_sends_a_core_less(seed: int) -> None:
    """Less than one key alone does, and than copies of all streams but one; both with all the cores."""
    chance = random.Random(seed)
    streams, cores = chance.randint(3, 6), chance.randint(2, 16)
    reach = tangled(chance, streams)
    laid_out = plan(joined(reach), streams, cores)
    grids = [sizes for sizes in sizes_within(len(reach), cores) if sum(size > 1 for size in sizes) > 1]
    others = (HashRouting().copies(laid_out.offer), SpreadRouting().copies(laid_out.offer))
    least = min(sum(copies) / cores for copies in others)
    is_less = any(share(sizes, reach, streams) < least - 1e-9 for sizes in grids)
    assert is_less == (laid_out.routing == HypercubeRouting())


@pytest.mark.parametrize(
    ("on", "cores", "shape", "copies"),
    [
        (TRIANGLE, 4, "2 x 2", (2, 1, 2)),
        (TRIANGLE, 8, "2 x 2 x 2", (2, 2, 2)),
        (TRIANGLE, 27, "3 x 3 x 3", (3, 3, 3)),
        (TRIANGLE, 200, "8 x 5 x 5", (5, 5, 8)),
        (CHAIN, 8, "4 x 2", (2, 1, 4)),
        (CHAIN, 200, "14 x 14", (14, 1, 14)),
        (f"{CHAIN} AND s1.k4 = s2.k4", 16, "4 x 4", (4, 1, 4)),
        (f"{CHAIN} AND s2.k2 = s3.k2", 16, "4 x 4", (4, 4, 4, 4)),
    ],
)
def test_grids_are_as_they_stand_in_checkpoints(on: str, cores: int, shape: str, copies: tuple[int, ...]) -> None:
    """State is divided by them: where one changes, `HypercubeRouting.rule` must."""
    laid_out = plan(on, len(copies), cores)
    assert HypercubeRouting() == laid_out.routing
    assert (shape, copies) == (str(grid_of(laid_out.classes, cores)), laid_out.routing.copies(laid_out.offer))


@pytest.mark.parametrize(
    ("on", "cores"),
    [
        ("s0.k0 = s1.k0 AND s1.k0 = s2.k0", 200),  # one key for all
        ("s0.k0 = s1.k0 AND s1.k0 = s2.k0 AND s0.k1 = s1.k1", 200),  # and another for some
        ("s0.k0 = s1.k0 AND s1.k1 < s2.k1", 200),  # a key for two
        (TRIANGLE, 2),  # too few cores to be cut both ways
    ],
)
def test_by_one_class_of_keys_alone_it_stays_hash(on: str, cores: int) -> None:
    assert HashRouting() == plan(on, 3, cores).routing


def test_without_keys_one_stream_is_divided() -> None:
    assert SpreadRouting() == plan("s0.k0 < s1.k0 AND s1.k1 < s2.k1", 3, 200).routing


def test_two_streams_never_need_a_grid() -> None:
    assert HashRouting() == plan("s0.k0 = s1.k0 AND s0.k1 = s1.k1 AND s0.k2 = s1.k3", 2, 200).routing
