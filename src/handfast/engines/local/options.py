"""What can be tuned of the local engine."""

from __future__ import annotations

from dataclasses import dataclass

from handfast.errors import SpecError
from handfast.plan import INDEX, LOCAL_JOINS

LOW_LATENCY, HANDSHAKE = "low-latency", "handshake"


@dataclass(frozen=True, slots=True)
class LocalOptions:
    """How the local engine runs.

    Args:
        cores: How many JoinCores share the windows. The result is the same for every number.
        forwarding: How tuples meet. "low-latency": each is shown, when it comes, to every core that may hold partners,
            and stored at one; a match is given at once. "handshake": two streams walk past each other along the cores,
            as in the paper; a match is given when its tuples have walked to one core. The result is the same.
        local_join: How a core finds what may match: "index" (by hash and by buckets, where the predicate offers them),
            "merge" (of sorted blocks, where it has a band) or "scan" (every pair). The result is the same.
        memory_limit: In a session, how many bytes the stored tuples may take; a batch that would go beyond it is
            refused before anything is lost.
    """

    cores: int = 1
    forwarding: str = LOW_LATENCY
    local_join: str = INDEX
    memory_limit: int | None = None

    def __post_init__(self) -> None:
        if not _is_positive(self.cores):
            raise SpecError(f"LocalOptions(cores=…) must be a positive number, not {self.cores!r}")
        if self.forwarding not in (LOW_LATENCY, HANDSHAKE):
            raise SpecError(f"LocalOptions(forwarding=…) is {LOW_LATENCY!r} or {HANDSHAKE!r}, not {self.forwarding!r}")
        if self.local_join not in LOCAL_JOINS:
            known = ", ".join(map(repr, LOCAL_JOINS))
            raise SpecError(f"LocalOptions(local_join=…) is one of {known}, not {self.local_join!r}")
        if self.memory_limit is not None and not _is_positive(self.memory_limit):
            raise SpecError(
                f"LocalOptions(memory_limit=…) must be a positive number of bytes, not {self.memory_limit!r}"
            )


def _is_positive(number: object) -> bool:
    return isinstance(number, int) and not isinstance(number, bool) and number > 0
