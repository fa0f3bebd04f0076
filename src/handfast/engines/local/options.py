"""What can be tuned of the local engine."""

from __future__ import annotations

from dataclasses import dataclass

from handfast.errors import SpecError


@dataclass(frozen=True, slots=True)
class LocalOptions:
    """How the local engine runs.

    Args:
        cores: How many JoinCores share the windows. The result is the same for every number.
    """

    cores: int = 1

    def __post_init__(self) -> None:
        if not isinstance(self.cores, int) or self.cores < 1:
            raise SpecError(f"LocalOptions(cores=…) must be a positive number, not {self.cores!r}")
