"""The hardware engine's options."""

from __future__ import annotations

from dataclasses import dataclass

from handfast.errors import SpecError

HANDSHAKE, NESTED_LOOP, CIRCULAR, STASHED = ALGORITHMS = ("handshake", "nested_loop", "circular", "stashed")
TREE, ADAPTIVE, PIPELINED = NETWORKS = ("tree", "adaptive", "pipelined")
IMMEDIATE, EAGER = SCANS = ("immediate", "eager")
REGISTERS, RAM = MEMORIES = ("registers", "ram")
ROUND_ROBIN, HIGHEST = TURNS = ("round_robin", "highest")
SUSPEND, THROTTLE, DROP = ADMISSION = ("suspend", "throttle", "drop")
AMARANTH, VERILATOR, MODEL = SIMULATORS = ("amaranth", "verilator", "model")
_CHOICES = {
    "algorithm": (None, *ALGORITHMS),
    "memory": (None, *MEMORIES),
    "scan": SCANS,
    "network": NETWORKS,
    "admission": ADMISSION,
    "turn": TURNS,
    "simulator": (None, *SIMULATORS),
}
_CORES = 4
_LONGEST_RUN = 200_000  # cycles times cores that Amaranth's own simulator does in the time of a build, about
_LONGEST_SHIFT_REGISTER = 64  # slots of a segment that is in registers where nothing else is asked for


@dataclass(frozen=True, slots=True)
class HardwareOptions:
    """The circuit that the hardware engine builds, and how it runs. The result of a join is the same for every circuit.

    Args:
        cores: How many join cores the chain has; 4 when None. The nested-loop join has none, and a ring one stage for
            each stream.
        algorithm: For two streams "handshake", the chain of cores, or "nested_loop", which the papers compare it with:
            two whole windows, each scanned by one unit. For three and more "circular", a ring of stages, or
            "stashed", a line of stages whose first keeps the matching pairs of the first two streams. When None,
            "handshake" or "circular".
        segment: How many tuples of each stream a core holds, or the stage of a ring. When None, as many as it takes for
            the windows; a chain that is too short for them is refused.
        memory: Where segments are: "registers" (shift registers) or "ram". When None, long ones are in RAM.
        comparisons: How many tuples of a segment a new tuple is compared with at a time: as many predicate circuits in
            each core, and a scan is that many times shorter.
        scan: How a core scans for the new tuples of a step: "immediate", S for the one of R and then R for the one of
            S, with one set of predicate circuits, or "eager", both at the same time, with two.
        network: How results are collected: "pipelined", a buffer behind every core and mergers of one register each;
            "tree", binary, with a buffer in every merger and behind every core; or "adaptive", a ring of nodes that
            spreads them over its buffers.
        core_buffer: How many results fit into the buffer behind a core, before a tree; other networks have their own.
        network_buffer: How many results fit into each buffer of the network.
        margin: A buffer with so few free slots, or fewer, is almost full.
        admission: What happens when a buffer is almost full: "suspend", all cores stand still until none is;
            "throttle", new tuples are discarded at the entrance; or "drop", results that wait behind a core are
            dropped, and in a ring intermediates that find no room. The last two lose something, which is counted:
            `handfast simulate` takes them, and joins do not.
        in_flight: How many tuples may be under way in a ring: the more, the less do stages wait for each other where
            many tuples match. A window has as many slots more.
        stage_buffer: How many intermediates there is room for at each stage of a ring, for each number of stages that
            they have come past.
        stash_size: How many pairs of the first two streams are kept with "stashed". Where some are missing that have
            been overwritten, they are computed again.
        turn: Which of those that wait at a stage of a ring is next, new tuples and intermediates: "round_robin", by the
            number of stages that they have come past; or "highest", one that has come past the most, as in the paper.
        step_every: A step, which is a tuple of either stream or one of each, comes every so many cycles. When None,
            one comes as soon as the circuit takes it, but with "throttle", which takes or discards what comes, as often
            as a step without a match is through.
        merge_clock: How many times faster the network that collects results is clocked than the chain: for joins with
            many matches. Cycles are those of the faster clock.
        simulator: What the circuit runs on: "amaranth", which starts at once and is slow; "verilator", which is fast
            once a C++ compiler has built it for this circuit, and the build is kept; or "model", the fastest, which
            does in every cycle what the circuit does, but takes what matches from the kernels of the other engines.
            When None, the circuit itself: "verilator" for long runs. The model would not notice a predicate's circuit
            that decides wrongly, so it is for those who want to know when results come, and is never taken unasked.
    """

    cores: int | None = None
    algorithm: str | None = None
    segment: int | None = None
    memory: str | None = None
    comparisons: int = 1
    scan: str = IMMEDIATE
    network: str = PIPELINED
    core_buffer: int = 8
    network_buffer: int = 8
    margin: int = 3
    admission: str = SUSPEND
    in_flight: int = 128
    stage_buffer: int = 8
    stash_size: int = 1024
    turn: str = ROUND_ROBIN
    step_every: int | None = None
    merge_clock: int = 1
    simulator: str | None = None

    def __post_init__(self) -> None:
        if self.cores is not None and not _is_number(self.cores, 1):
            raise SpecError(f"HardwareOptions(cores=…) must be a positive number, not {self.cores!r}")
        if self.cores is not None and self.algorithm == NESTED_LOOP:
            raise SpecError(
                "HardwareOptions(cores=…) is for the handshake; the nested-loop join has two units: leave it out"
            )
        if self.scan == EAGER and self.algorithm == NESTED_LOOP:
            raise SpecError(
                "HardwareOptions(scan=…) is for the handshake; the nested-loop join scans both windows at the same "
                "time: leave it out"
            )
        if self.segment is not None and not _is_number(self.segment, 1):
            raise SpecError(f"HardwareOptions(segment=…) must be a positive number of tuples, not {self.segment!r}")
        for name in ("comparisons", "merge_clock", "in_flight", "stage_buffer"):
            if not _is_number(getattr(self, name), 1):
                raise SpecError(f"HardwareOptions({name}=…) must be a positive number, not {getattr(self, name)!r}")
        for name, known in _CHOICES.items():
            if getattr(self, name) not in known:
                listed = ", ".join(map(repr, known))
                raise SpecError(f"HardwareOptions({name}=…) is one of {listed}, not {getattr(self, name)!r}")
        if self.admission == DROP and self.network != TREE and self.algorithm != CIRCULAR:
            raise SpecError(
                "HardwareOptions(admission='drop') drops from the buffers behind the cores, which only a tree has, or "
                f"intermediates of a ring; take HardwareOptions(network='tree'), not {self.network!r}, or for three "
                "streams and more algorithm='circular'"
            )
        if self.step_every is not None and not _is_number(self.step_every, 1):
            raise SpecError(
                f"HardwareOptions(step_every=…) must be a positive number of cycles, not {self.step_every!r}"
            )
        if not _is_number(self.stash_size, 0):
            raise SpecError(
                f"HardwareOptions(stash_size=…) must be a number of pairs, 0 or more, not {self.stash_size!r}"
            )
        if not _is_number(self.margin, 1):
            raise SpecError(
                f"HardwareOptions(margin=…) must be a positive number of slots, not {self.margin!r}: the cores learn "
                "one cycle late that a buffer is almost full"
            )
        for name in ("core_buffer", "network_buffer"):
            if not _is_number(getattr(self, name), self.margin + 1):
                raise SpecError(
                    f"HardwareOptions({name}=…) must be more than its margin={self.margin!r}, not "
                    f"{getattr(self, name)!r}: the buffer would be almost full while empty"
                )

    @property
    def chain_length(self) -> int:
        """How many segments a window is cut into."""
        return 1 if self.algorithm == NESTED_LOOP else self.cores or _CORES

    def algorithm_for(self, streams: int) -> str:
        """The algorithm for so many streams."""
        return self.algorithm or (HANDSHAKE if streams == 2 else CIRCULAR)

    def simulator_for(self, cycles: int, *, stages: int | None = None) -> str:
        """The simulator for a run of about so many cycles, of a chain or of so many stages."""
        return self.simulator or (VERILATOR if cycles * (stages or self.chain_length) > _LONGEST_RUN else AMARANTH)

    def check_ring(self) -> None:
        """Refuse what a ring of stages has no use for."""
        for name, needed in (("cores", None), ("scan", IMMEDIATE), ("network", PIPELINED)):
            if getattr(self, name) != needed:
                raise SpecError(
                    f"HardwareOptions({name}=…) is for joins of two streams; a ring has a stage for each stream, with "
                    "a window in RAM, and the pipelined network: leave it out"
                )
        if self.memory == REGISTERS:
            raise SpecError("HardwareOptions(memory='registers') is for the handshake; a ring's windows are in RAM")
        if self.merge_clock != 1:
            raise SpecError("HardwareOptions(merge_clock=…) is for joins of two streams: leave it out")
        if self.admission == THROTTLE:
            raise SpecError("HardwareOptions(admission='throttle') is for joins of two streams: leave it out")

    def in_ram(self, size: int) -> bool:
        """Whether segments of so many slots are in RAM."""
        return self.memory == RAM if self.memory is not None else size > _LONGEST_SHIFT_REGISTER


def _is_number(value: object, least: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= least
