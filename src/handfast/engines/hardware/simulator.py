"""Runs of a built simulator: words in, words out with their cycles, probes when they change."""

from __future__ import annotations

import ctypes
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from handfast.engines.hardware.circuit import Circuit, Port
from handfast.engines.hardware.driver import watched, words
from handfast.errors import EngineError, SpecError

Words: TypeAlias = NDArray[
    np.uint64
]  # one value each; or, for values wider than 64 bits, a row each, lowest word first
Cycles: TypeAlias = NDArray[np.uint64]

_PLACE = re.compile(r"\[\d+\] %Error: circuit\.v:\d+: ")  # in generated text: of no use to anyone
_TURN = 1 << 16  # cycles between two looks at Ctrl-C
_PATIENCE = 1_000  # cycles in which nothing moves, before it is first looked whether the circuit is idle
_LONGEST = (1 << 63) - 1  # cycles that the driver counts


@dataclass(frozen=True, slots=True)
class Feed:
    """Words for a stream, and from which cycle on each of them is offered: as soon as possible if it is not said."""

    words: ArrayLike
    at: ArrayLike | None = None


@dataclass(frozen=True, slots=True)
class Seen:
    """Values and the cycles that they were seen in: of a stream when they moved, of a probe when it changed."""

    words: Words
    cycles: Cycles

    def each_cycle(self, cycles: int) -> Words:
        """The value of a probe in each of the first cycles."""
        ends = np.append(self.cycles[1:], np.uint64(cycles))
        return np.repeat(self.words, (ends - self.cycles).astype(np.int64), axis=0)


@dataclass(frozen=True, slots=True)
class Run:
    """What a run did."""

    cycles: int  # how many it took, counted from 0
    finished: bool  # whether every word was taken
    taken: dict[str, Cycles]  # by input stream: the cycle in which each word was taken
    outputs: dict[str, Seen]  # by output stream
    probes: dict[str, Seen]  # by output that belongs to no stream, and by probe


class Simulator:
    """A circuit that runs. Every run begins at power-up; several may run in threads."""

    def __init__(self, circuit: Circuit, library: ctypes.CDLL, waveform: bool) -> None:
        self.circuit = circuit
        self._waveform = waveform
        self._open = _function(library, "simulation_open", _POINTER, ctypes.c_char_p)
        self._close = _function(library, "simulation_close", None, _POINTER)
        self._feed = _function(library, "simulation_feed", None, _POINTER, ctypes.c_int, _POINTER, _NUMBER, _POINTER)
        self._ready = _function(library, "simulation_ready", None, _POINTER, ctypes.c_int, _POINTER, _NUMBER)
        self._level = _function(library, "simulation_level", None, _POINTER, ctypes.c_int, _POINTER, _NUMBER)
        self._run = _function(library, "simulation_run", ctypes.c_int, _POINTER, _NUMBER, _NUMBER)
        self._said = _function(library, "simulation_said", ctypes.c_char_p, _POINTER)
        self._cycle = _function(library, "simulation_cycle", _NUMBER, _POINTER)
        self._taken = _function(library, "simulation_taken", _NUMBER, _POINTER, ctypes.c_int, _OUT)
        self._record = _function(
            library, "simulation_record", _NUMBER, _POINTER, ctypes.c_int, ctypes.c_int, _OUT, _OUT
        )

    def run(
        self,
        streams: Mapping[str, ArrayLike | Feed] | None = None,
        *,
        inputs: Mapping[str, ArrayLike] | None = None,
        ready: Mapping[str, ArrayLike] | None = None,
        cycles: int | None = None,
        quiet: int = 4096,
        idle: str | None = None,
        waveform: str | os.PathLike[str] | None = None,
        progress: Callable[[int], None] | None = None,
    ) -> Run:
        """Run from power-up.

        Args:
            streams: Words by input stream (`write`; `inputs__0` for an element of an array). Not named: no words.
            inputs: By input that belongs to no stream: one value, or one for each cycle, of which the last one stays.
            ready: By output stream: in which cycles a word is taken, over and over. Not named: in every cycle.
            cycles: Run for so many. Not said: until nothing has moved for `quiet` cycles, on any stream.
            quiet: Longer than the circuit is ever silent while it still works.
            idle: An output that is 1 when there is nothing left to do: the run ends once that is so and nothing moves
                any more, and `quiet` is only for a circuit that stands still. It goes on for as long again, at most,
                as the circuit was ever silent.
            waveform: A VCD to write; the simulator must have been built for that.
            progress: Called now and then with the cycles so far.

        Raises:
            SpecError: A name that the circuit does not have, or a value that does not fit.
            EngineError: An assertion inside the circuit failed; the message has its text and the cycle.
        """
        if waveform is not None and not self._waveform:
            raise SpecError("This simulator writes no waveforms; build it with waveform=True")
        fed = {number: _fed(given) for number, given in self._streams_in(streams).items()}
        held: list[NDArray[Any]] = []  # what the simulation reads while it runs
        handle = self._open(None if waveform is None else os.fsencode(Path(waveform)))
        try:
            self._offer(handle, fed, held)
            self._set(handle, inputs, held)
            self._drain(handle, ready, held)
            self._until(handle, cycles, min(quiet, _LONGEST), idle, progress)
            return self._result(handle, {number: len(np.asarray(feed.words)) for number, feed in fed.items()})
        finally:
            self._close(handle)

    def _streams_in(self, streams: Mapping[str, Any] | None) -> dict[int, Any]:
        return _by_name("input stream", streams, [each.name for each in self.circuit.streams_in])

    def _offer(self, handle: int, fed: Mapping[int, Feed], held: list[NDArray[Any]]) -> None:
        for number, feed in fed.items():
            values = _words(feed.words, self.circuit.streams_in[number].payload)
            at = None if feed.at is None else np.asarray(feed.at, np.uint64)
            if at is not None and at.shape != values.shape[:1]:
                raise SpecError(f"Each word has its cycle, and there are {len(values)} words and {at.size} cycles")
            self._feed(handle, number, _hold(values, held), len(values), None if at is None else _hold(at, held))

    def _set(self, handle: int, inputs: Mapping[str, Any] | None, held: list[NDArray[Any]]) -> None:
        for number, given in _by_name("input", inputs, [port.name for port in self.circuit.inputs]).items():
            port = self.circuit.inputs[number]
            values = _words(np.atleast_1d(np.asarray(given)) if words(port) == 1 else given, port)
            self._level(handle, number, _hold(values, held), len(values))

    def _drain(self, handle: int, ready: Mapping[str, Any] | None, held: list[NDArray[Any]]) -> None:
        names = [each.name for each in self.circuit.streams_out]
        for number, given in _by_name("output stream", ready, names).items():
            pattern = np.atleast_1d(np.asarray(given, np.bool_))
            if len(pattern) == 0:
                raise SpecError(f"The pattern of {names[number]!r} has at least one cycle")
            self._ready(handle, number, _hold(pattern.astype(np.uint8), held), len(pattern))

    def _until(
        self, handle: int, cycles: int | None, quiet: int, idle: str | None, progress: Callable[[int], None] | None
    ) -> None:
        left, patience = cycles, quiet if idle is None else min(quiet, _PATIENCE)
        while left is None or left > 0:
            turn = _TURN if left is None else min(_TURN, left)
            status = self._run(handle, turn, patience if cycles is None else 0)
            if status == _STOPPED:
                said = _PLACE.sub("; ", self._said(handle).decode(errors="replace").strip())
                raise EngineError(f"The circuit stopped in cycle {self._cycle(handle)}: {said}")
            if progress is not None:
                progress(self._cycle(handle))
            if status == _QUIET:
                if patience == quiet or (idle is not None and self._now(handle, idle)):
                    return
                patience = min(2 * patience, quiet)
            left = None if left is None else left - turn

    def _now(self, handle: int, name: str) -> int:
        """What an output of no more than 64 bits is."""
        outputs = watched(self.circuit)
        (number,) = _by_name("output", {name: None}, [own for own, _ in outputs])
        return int(self._seen(handle, 1, number, outputs[number][1]).words[-1])

    def _result(self, handle: int, counts: Mapping[int, int]) -> Run:
        circuit = self.circuit
        taken = {}
        for number, stream in enumerate(circuit.streams_in):
            place = _POINTER()
            count = self._taken(handle, number, ctypes.byref(place))
            taken[stream.name] = _copy(place, count)
        finished = all(len(taken[circuit.streams_in[number].name]) == count for number, count in counts.items())
        outputs = {
            each.name: self._seen(handle, 0, number, each.payload) for number, each in enumerate(circuit.streams_out)
        }
        probes = {name: self._seen(handle, 1, number, port) for number, (name, port) in enumerate(watched(circuit))}
        return Run(self._cycle(handle), finished, taken, outputs, probes)

    def _seen(self, handle: int, kind: int, number: int, port: Port) -> Seen:
        values, cycles = _POINTER(), _POINTER()
        count = self._record(handle, kind, number, ctypes.byref(values), ctypes.byref(cycles))
        width = words(port)
        found = _copy(values, count * width)
        return Seen(found if width == 1 else found.reshape(count, width), _copy(cycles, count))


def _fed(given: Any) -> Feed:
    return given if isinstance(given, Feed) else Feed(given)


def _hold(array: NDArray[Any], held: list[NDArray[Any]]) -> int:
    """The address of an array, which stays as long as it is held."""
    held.append(np.ascontiguousarray(array))
    return held[-1].ctypes.data


def _by_name(kind: str, given: Mapping[str, Any] | None, names: list[str]) -> dict[int, Any]:
    """What was given, by the number of the port."""
    for name in given or {}:
        if name not in names:
            raise SpecError(f"The circuit has no {kind} {name!r}; it has {', '.join(names) or 'none'}")
    return {names.index(name): value for name, value in (given or {}).items()}


def _words(given: ArrayLike, port: Port) -> Words:
    """Values as 64-bit words that fit the port."""
    array = np.asarray(given)
    if array.size == 0:
        array = array.astype(np.uint64).reshape((0,) if words(port) == 1 else (0, words(port)))
    if array.dtype.kind not in "ub" and not (array.dtype.kind == "i" and array.min() >= 0):
        raise SpecError(f"Values of {port.name!r} are unsigned integers, not {array.dtype}")
    expected = 1 if words(port) == 1 else 2
    if array.ndim != expected or (expected == 2 and array.shape[1] != words(port)):
        raise SpecError(
            f"{port.name!r} has {port.width} bits: {words(port)} words a value, not an array of shape {array.shape}"
        )
    values = array.astype(np.uint64)
    spare = words(port) * 64 - port.width
    highest = values if expected == 1 else values[:, -1]
    if spare and len(highest) and int(highest.max()) >> (64 - spare):
        raise SpecError(f"{port.name!r} has {port.width} bits, and a value does not fit")
    return values


def _copy(place: ctypes.c_void_p, count: int) -> NDArray[np.uint64]:
    if count == 0:
        return np.empty(0, np.uint64)
    return np.ctypeslib.as_array(ctypes.cast(place, ctypes.POINTER(ctypes.c_uint64)), (count,)).copy()


_POINTER = ctypes.c_void_p
_NUMBER = ctypes.c_uint64
_OUT = ctypes.POINTER(ctypes.c_void_p)
_QUIET, _STOPPED = 1, 2  # what simulation.h answers


def _function(library: ctypes.CDLL, name: str, result: Any, *arguments: Any) -> Any:
    function = getattr(library, name)
    function.restype = result
    function.argtypes = arguments
    return function
