"""What a routing answers for: the questions that the planner, the router, the cores and the engines ask it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from handfast.core.probe import Members, NewTuples
from handfast.core.routing.outgoing import Outgoing, Sent
from handfast.core.segment import Segment
from handfast.flow.block import Block
from handfast.plan import Offer, Plan


@dataclass(frozen=True)
class Routing(ABC):
    """How tuples are divided among the cores, so that every match is emitted, and emitted once.

    A routing has no state: two of the same class are equal, and one travels inside its plan to other processes.
    `kept` and `emitted` are asked only where there are several cores.

    Attributes:
        name: Stands in fingerprints, in checkpoints too, and so never changes.
        rule: The number of the rule by which tuples find their cores. It stands in fingerprints, so that state is
            never taken over by another rule: give it another number wherever a tuple may go elsewhere than before.
        is_handshake: Whether the cores form a chain and hand the tuples on from one to the next.
        any_core_may_store: Whether every core sees every tuple and any of them may store it: then an engine may choose
            a tuple's home by load rather than by content.
        given: When a match is given, in words.
    """

    name: ClassVar[str]
    rule: ClassVar[int]
    is_handshake: ClassVar[bool] = False
    any_core_may_store: ClassVar[bool] = False
    given: ClassVar[str] = "as soon as its last tuple arrives"

    @abstractmethod
    def takes(self, offer: Offer) -> bool:
        """Whether this routing is the one for a join that none before it in the registry takes."""

    def anchor(self, offer: Offer) -> int:
        """The stream of which each tuple is at one core: the preserved one, so that its tuples meet all partners."""
        return offer.join.preserved[0] if offer.join.preserved else 0

    def title(self, offer: Offer) -> str:
        """What it is called among the ways to divide three streams or more."""
        return self.name

    def copies(self, offer: Offer) -> tuple[int, ...]:
        """By stream, to how many cores a tuple that may match goes; empty where three streams cannot go this way."""
        return ()

    @abstractmethod
    def destinations(self, tuples: Outgoing) -> Iterator[Sent]:
        """For each core the tuples that it gets, with their flags there. Every tuple has exactly one home."""

    def kept(self, block: Block) -> NDArray[np.bool_]:
        """Which tuples of a block that has come to a core are stored there; all, unless the routing says otherwise."""
        return np.ones(len(block), np.bool_)

    def emitted(self, plan: Plan, new: NewTuples, stored: Sequence[Segment], members: Members) -> Members:
        """Which of the matches found at a core are for this core to emit; all, unless some are found elsewhere too."""
        return members

    @abstractmethod
    def words(self, plan: Plan) -> tuple[str, str]:
        """How the tuples are divided, and why so, for `hf.explain`."""
