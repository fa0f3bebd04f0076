"""The local engine's options."""

from __future__ import annotations

from dataclasses import dataclass

from handfast.errors import SpecError
from handfast.plan import ALGORITHMS, INDEX, LOCAL_JOINS

LOW_LATENCY, HANDSHAKE = FORWARDING = ("low-latency", "handshake")
BLOCK, OVERFLOW, SHED = ADMISSION = ("block", "overflow", "shed")
UNIFORM, OLDEST = SHEDDING = ("uniform", "oldest")
_CHOICES = {"forwarding": FORWARDING, "local_join": LOCAL_JOINS, "admission": ADMISSION, "shedding": SHEDDING}


@dataclass(frozen=True, slots=True)
class LocalOptions:
    """How the local engine runs.

    Args:
        cores: How many JoinCores share the windows. The result is the same for every number.
        forwarding: How tuples meet. "low-latency": on arrival each is shown to every core that may hold partners, and
            stored at one; a match is given at once. "handshake": two streams pass each other along a chain of cores,
            as in the paper; a match is given when both of its tuples have come to the same core. The result is the
            same.
        chain_block: With forwarding="handshake", how many tuples of a stream a message carries at the most. 1 forwards
            tuple by tuple.
        algorithm: How a core joins three to 16 streams. "plain": the partners of new tuples are sought in one window
            after the other. "circular": the streams' windows are stages of a ring, each with a thread of its own, and
            new tuples go round it, as in Circular-MJ. "stashed": the first stage has two windows and keeps the pairs
            that match, and the others follow in a line, as in Stashed-MJ. None: the one that the match rates seen so
            far ask for, decided again while the join runs. The result is the same.
        stage_buffer: How many intermediates may wait before a stage, of each hop.
        stash_size: How many pairs a stash keeps at the most; every pair that is in its windows when None.
        local_join: How a core finds what may match: "index" (by hash and by buckets, where the predicate offers them),
            "merge" (of sorted blocks, where it has a band) or "scan" (every pair). The result is the same.
        admission: What a session does with rows that come faster than they can be joined. "block": `push` returns when
            its rows have been joined. "overflow" and "shed" never wait: `push` returns the matches found by then,
            `poll` those found since, and rows that find no room are shed. "shed" also sheds a part of the rows before
            it comes to that, so that the cores are no busier than `target_load`.
        capacity: With "overflow" and "shed", how many rows may wait to be joined, not counting those that wait for
            their place in the order to be final. However few they are, with forwarding="low-latency" a core has no
            room for more while it is 64 pushes behind.
        shedding: With "shed", which rows of a batch are shed: "uniform", any, or "oldest", those of the lowest times.
        target_load: With "shed", how busy the cores should be, from 0 to 1.
        memory_limit: In a session, how many bytes the stored tuples may take; a batch that would go beyond it is
            refused with an error, and nothing is lost.
    """

    cores: int = 1
    forwarding: str = LOW_LATENCY
    chain_block: int = 256
    algorithm: str | None = None
    stage_buffer: int = 4
    stash_size: int | None = None
    local_join: str = INDEX
    admission: str = BLOCK
    capacity: int = 100_000
    shedding: str = UNIFORM
    target_load: float = 0.8
    memory_limit: int | None = None

    @property
    def handshake(self) -> bool:
        """Whether tuples are forwarded along a chain by handshake."""
        return self.forwarding == HANDSHAKE

    def __post_init__(self) -> None:
        if not _is_positive(self.cores):
            raise SpecError(f"LocalOptions(cores=…) must be a positive number, not {self.cores!r}")
        if not _is_positive(self.chain_block):
            raise SpecError(f"LocalOptions(chain_block=…) must be a positive number, not {self.chain_block!r}")
        for name, known in _CHOICES.items():
            if getattr(self, name) not in known:
                listed = ", ".join(map(repr, known))
                raise SpecError(f"LocalOptions({name}=…) is one of {listed}, not {getattr(self, name)!r}")
        if self.algorithm is not None and self.algorithm not in ALGORITHMS:
            listed = ", ".join(map(repr, ALGORITHMS))
            raise SpecError(f"LocalOptions(algorithm=…) is one of {listed}, or None, not {self.algorithm!r}")
        if not _is_positive(self.stage_buffer):
            raise SpecError(f"LocalOptions(stage_buffer=…) must be a positive number, not {self.stage_buffer!r}")
        if self.stash_size is not None and self.stash_size != 0 and not _is_positive(self.stash_size):
            raise SpecError(f"LocalOptions(stash_size=…) must be a number of pairs, 0 or more, not {self.stash_size!r}")
        if not _is_positive(self.capacity):
            raise SpecError(f"LocalOptions(capacity=…) must be a positive number of rows, not {self.capacity!r}")
        is_number = isinstance(self.target_load, int | float) and not isinstance(self.target_load, bool)
        if not is_number or not 0 < self.target_load <= 1:
            raise SpecError(f"LocalOptions(target_load=…) must be above 0 and at most 1, not {self.target_load!r}")
        if self.memory_limit is not None and not _is_positive(self.memory_limit):
            raise SpecError(
                f"LocalOptions(memory_limit=…) must be a positive number of bytes, not {self.memory_limit!r}"
            )


def _is_positive(number: object) -> bool:
    return isinstance(number, int) and not isinstance(number, bool) and number > 0
