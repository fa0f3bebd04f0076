"""Hypercube: the cores are a grid with a dimension for each class of equal keys; a tuple goes where its keys say."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from handfast.core.routing.grid import Cells, Dimension, Grid, grid_of
from handfast.core.routing.outgoing import Outgoing, Sent, share_of
from handfast.core.routing.routing import Routing
from handfast.flow.block import HOME
from handfast.kernels.index.keys import equal_keys
from handfast.plan import Offer, Plan
from handfast.spec.shown import shown


class HypercubeRouting(Routing):
    """A tuple goes to the cores that have its keys' places, and to all of them along dimensions it has no keys for.

    In each dimension those members of a match that have keys there have equal ones, and at least one member has: so
    all members are together at one core, and only there. Each core emits what it finds.
    """

    name = "hypercube"
    rule = 1

    def takes(self, offer: Offer) -> bool:
        """Streams that share keys, but not all the same: hash routing would be this with one dimension only."""
        return bool(self.copies(offer))

    def title(self, offer: Offer) -> str:
        return f"hypercube {grid_of(offer.classes, offer.cores)}"

    def copies(self, offer: Offer) -> tuple[int, ...]:
        grid = grid_of(offer.classes, offer.cores)
        return grid.copies if len(grid.dimensions) > 1 else ()

    def destinations(self, tuples: Outgoing) -> Iterator[Sent]:
        grid = grid_of(tuples.plan.classes, tuples.plan.cores)
        content = tuples.content()
        homes = grid.places(share_of(content, grid.cells))
        keyless = np.zeros(len(content), np.bool_)
        keyed = [number for number, own in enumerate(grid.dimensions) if own.keys[tuples.stream]]
        for number in keyed:
            homes[number], without = _places(tuples, grid, number)
            keyless |= without
        # without a key a tuple meets nobody: any core will do
        home = np.where(keyless, tuples.core_of(content), grid.cells_at(homes))
        keys_say = np.where(keyless, -1, _first_cells(grid, homes, keyed))
        first_cells = _first_cells(grid, grid.places(np.arange(grid.cells)), keyed)
        for core in range(tuples.plan.cores):
            here = keyless & (home == core)
            if core < grid.cells:
                here |= keys_say == first_cells[core]
            rows = np.flatnonzero(here)
            yield core, rows, np.where(home[rows] == core, HOME, 0).astype(np.uint8)

    def words(self, plan: Plan) -> tuple[str, str]:
        grid = grid_of(plan.classes, plan.cores)
        places = ", times ".join(f"{own.size} by {_equalities(own, plan.join.spec.names)}" for own in grid.dimensions)
        idle = plan.cores - grid.cells
        return (
            self.title(plan.offer),
            f"no key is common to all streams, so the cores are a grid: {places}; a tuple goes to every core that "
            f"its keys allow{f'; cores left over: {idle}' if idle else ''}",
        )


def _places(tuples: Outgoing, grid: Grid, number: int) -> tuple[Cells, NDArray[np.bool_]]:
    """Where the tuples are in a dimension that their stream has keys for, and which of them have none there."""
    keys = [tuples.recipe.program.position(key) for key in grid.dimensions[number].keys[tuples.stream]]
    bits, keyless = equal_keys(tuples.columns, keys)
    # of a whole cell only this dimension counts: so columns with the same values do not leave cores without tuples
    return grid.places(share_of(bits, grid.cells))[number], keyless


def _first_cells(grid: Grid, places: Sequence[Cells], keyed: Sequence[int]) -> Cells:
    """The first of the cells at these places of the dimensions with keys: one number for all cells a tuple goes to."""
    first = np.zeros_like(places[0])
    return grid.cells_at([own if number in keyed else first for number, own in enumerate(places)])


def _equalities(dimension: Dimension, names: Sequence[str]) -> str:
    """The keys of a dimension, as they are equal in every match."""
    equal = zip(*(own for own in dimension.keys if own), strict=True)
    return " and ".join(" = ".join(shown(key, names) for key in keys) for keys in equal)
