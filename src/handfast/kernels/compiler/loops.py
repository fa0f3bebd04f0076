"""Loops of a kernel, as Python's `with`: what is emitted inside is the body."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from llvmlite import ir

from handfast.kernels.compiler.codegen import I64


@dataclass
class Loop:
    """`for position in range(start, stop, step)`, as long as `also` is true of the position."""

    builder: ir.IRBuilder
    start: ir.Value
    stop: ir.Value
    step: ir.Value
    also: Callable[[ir.Value], ir.Value] | None = None

    def __enter__(self) -> Loop:
        b = self.builder
        with b.goto_entry_block():
            self.counter = b.alloca(I64)
        b.store(self.start, self.counter)
        self._head, self._body, self._end = (b.append_basic_block() for _ in range(3))
        b.branch(self._head)
        b.position_at_end(self._head)
        self.position = b.load(self.counter, typ=I64)
        going = b.icmp_signed("<", self.position, self.stop)
        if self.also is not None:
            going = b.and_(going, self.also(self.position))
        b.cbranch(going, self._body, self._end)
        b.position_at_end(self._body)
        return self

    def __exit__(self, *_: object) -> None:
        b = self.builder
        if _ and _[0] is not None:
            return
        b.store(b.add(self.position, self.step), self.counter)
        b.branch(self._head)
        b.position_at_end(self._end)


class While:
    """`while going() and also() …`: each is looked at only where those before it are true."""

    def __init__(self, builder: ir.IRBuilder, *going: Callable[[], ir.Value]) -> None:
        self.builder = builder
        self.going = going

    def __enter__(self) -> None:
        b = self.builder
        *heads, self._body, self._end = (b.append_basic_block() for _ in range(len(self.going) + 2))
        self._head = heads[0]
        b.branch(self._head)
        for head, going, then in zip(heads, self.going, [*heads[1:], self._body], strict=True):
            b.position_at_end(head)
            b.cbranch(going(), then, self._end)
        b.position_at_end(self._body)

    def __exit__(self, *_: object) -> None:
        b = self.builder
        if _ and _[0] is not None:
            return
        b.branch(self._head)
        b.position_at_end(self._end)
