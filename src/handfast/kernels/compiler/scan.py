"""The scan: kernels that try a block of outer tuples on a run of inner ones, vector by vector, and write what holds.

The inner tuples lie in tiles that stay in the cache while all outer ones pass over them. Every outer tuple has a range
of its own in which it meets inner ones; a vector may reach beyond it, then the bits of the others do not count.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from functools import lru_cache, reduce

from llvmlite import ir

from handfast.kernels.compiler.access import ColumnLanes, Literals, StampLanes, pointer, read, write
from handfast.kernels.compiler.codegen import I1, I8, I32, I64, Emitter, Value, call_intrinsic, element, splat
from handfast.kernels.compiler.loops import Loop, While
from handfast.kernels.compiler.native import Native, load
from handfast.kernels.compiler.possible import Possible, is_exact
from handfast.kernels.compiler.program import Slot
from handfast.kernels.compiler.window import holds
from handfast.kernels.sizes import Vectors
from handfast.kernels.target import Target
from handfast.spec.expression import Column, Expr

_ONE, _ZERO = ir.Constant(I64, 1), ir.Constant(I64, 0)
_WORD = 64  # bits of the word that has one for each pair of a group
_LINE = 64  # bytes of a line of the cache
_CHUNK = 8  # pairs whose positions are written together
SPARE = 64  # what a kernel may read or write behind the last tuple or pair
SCAN_WORDS = 20


class Form(Enum):
    """How pairs are written."""

    RARE = "rare"  # a branch for a group of vectors, seldom taken; each pair in it is looked at on its own
    DENSE = "dense"  # no branch: every vector writes the positions of all its pairs, those that hold to the front


@dataclass(frozen=True, slots=True)
class Scan:
    """What a scan's code is made of.

    Attributes:
        shape: The condition.
        inputs: What it reads of stream 0 and of stream 1.
        counted: Which window counts tuples.
        outer: The stream whose tuples pass over the other's.
        form: How pairs are written.
        nullable: Whether some tuples have a NULL, or what could not be computed.
        windowed: Whether a tuple's range may hold some that are not in a window with it.
    """

    shape: Expr
    inputs: tuple[tuple[Slot, ...], ...]
    counted: tuple[bool, bool]
    outer: int
    form: Form
    nullable: bool
    windowed: bool


def tile_of(slots: tuple[Slot, ...], tile: int, most: int) -> int:
    """How many inner tuples are in a tile of so many bytes: a power of two, `most` at the most."""
    row = sum(_bytes(element(slot.column.type)) for slot in slots)
    count = max(1, min(tile // max(row, 1), most))
    return 1 << (count.bit_length() - 1)


def _bytes(type_: ir.Type) -> int:
    """What a value takes in memory."""
    if isinstance(type_, ir.IntType):
        return int(type_.width) // 8
    return 4 if isinstance(type_, ir.FloatType) else 8


@lru_cache(maxsize=512)
def scan_kernel(scan: Scan, vectors: Vectors, tile: int, target: Target) -> Native:
    """Find the pairs of an outer and an inner run of tuples for which condition and windows hold.

    Words: outer values, outer statuses, outer stamps, outer start, outer stop, then the same five of the inner stream,
    and how many tuples the inner arrays hold, at least SPARE; where the range of each outer tuple starts and where it
    stops (the starts never go down), the lengths of both windows, literals, outer positions out, inner positions out as
    distances from the inner start, their capacity, and the state. Positions are written as 32 bits.

    The state is where to begin and, afterwards, where to go on: the first inner position of the tile, and the outer
    position in it; and two counts that are added to, of pairs looked at and of pairs tried. Returns how many pairs were
    found. There is more to do as long as the inner position is before the inner stop; the capacity must have room for
    a tile and a block of outer tuples.
    """
    module = ir.Module("scan")
    function = ir.Function(module, ir.FunctionType(I64, [I64] * SCAN_WORDS), "scan")
    builder = ir.IRBuilder(function.append_basic_block("entry"))
    emission = _Emission(builder, function.args, scan, vectors, tile, spans=target.has_masks)
    emission.tiles()
    return load(module, {"scan": SCAN_WORDS}, target)["scan"]


class _Emission:
    """The code of one scan, written where the builder stands."""

    def __init__(
        self,
        builder: ir.IRBuilder,
        words: tuple[ir.Value, ...],
        scan: Scan,
        vectors: Vectors,
        tile: int,
        *,
        spans: bool,
    ) -> None:
        self._b = builder
        self._spans = spans
        self._scan = scan
        self._vectors = vectors
        self._tile = tile
        o_values, o_statuses, o_stamps, self._o_start, self._o_stop = words[0:5]
        i_values, i_statuses, i_stamps, self._i_start, self._i_stop = words[5:10]
        self._i_size, self._starts, self._stops, *lengths, literals = words[10:16]
        self._o_out, self._i_out, self._capacity, self._state = words[16:20]
        inner = 1 - scan.outer
        self._lengths = lengths
        self._constants = Literals(builder, scan.shape, literals)
        self._outer = ColumnLanes(builder, scan.inputs[scan.outer], o_values, o_statuses, scan.nullable)
        self._inner = ColumnLanes(builder, scan.inputs[inner], i_values, i_statuses, scan.nullable)
        self._outer_stamps = StampLanes(builder, o_stamps, scan.counted)
        self._inner_stamps = StampLanes(builder, i_stamps, scan.counted)
        self._found, self._looked, self._tried = (self._counter(_ZERO) for _ in range(3))
        self._phase = self._aligned(i_values, scan.inputs[inner])

    # -- tiles -----------------------------------------------------------------------------------

    def tiles(self) -> None:
        """All of the kernel: tile after tile, until there is no room for what the next tuples may find."""
        b = self._b
        state = [read(b, self._state, I64, ir.Constant(I64, k)) for k in range(4)]
        tile, first, last = self._counter(state[0]), self._counter(self._o_start), self._counter(state[1])
        full = self._counter(_ZERO)
        block = self._vectors.block if self._scan.form is Form.RARE else 1
        most = ir.Constant(I64, self._tile * block)
        with While(
            b,
            lambda: b.icmp_signed("<", self._now(tile), self._i_stop),
            lambda: b.icmp_signed("<", self._now(first), self._o_stop),
            lambda: b.icmp_signed("==", self._now(full), _ZERO),
        ):
            start = self._now(tile)
            stop = self._least(self._boundary(start), self._i_stop)
            with While(
                b,
                lambda: b.icmp_signed("<", self._now(first), self._o_stop),
                lambda: b.icmp_signed("<=", read(b, self._stops, I64, self._now(first)), start),
            ):
                self._add(first, _ONE)
            b.store(self._most(self._now(first), self._now(last)), last)
            with While(
                b,
                lambda: b.icmp_signed("<", self._now(last), self._o_stop),
                lambda: b.icmp_signed("<", read(b, self._starts, I64, self._now(last)), stop),
                lambda: b.icmp_signed("==", self._now(full), _ZERO),
            ):
                room = b.icmp_signed("<=", b.add(self._now(self._found), most), self._capacity)
                with b.if_else(room) as (then, otherwise):
                    with then:
                        o = self._now(last)
                        passed = (
                            self._rare(o, start, stop) if self._scan.form is Form.RARE else self._dense(o, start, stop)
                        )
                        self._add(last, passed)
                    with otherwise:
                        b.store(_ONE, full)
            with b.if_then(b.icmp_signed("==", self._now(full), _ZERO)):
                b.store(stop, tile)
                b.store(self._o_start, last)
        over = b.icmp_signed(">=", self._now(first), self._o_stop)
        b.store(b.select(over, self._i_stop, self._now(tile)), tile)
        counts = b.add(state[2], self._now(self._looked)), b.add(state[3], self._now(self._tried))
        for k, value in enumerate((self._now(tile), self._now(last), *counts)):
            write(b, self._state, ir.Constant(I64, k), value)
        b.ret(self._now(self._found))

    def _boundary(self, start: ir.Value) -> ir.Value:
        """Where the tile that has this position ends: from there on, vectors begin where lines of the cache do."""
        b = self._b
        passed = b.add(b.sub(start, self._phase), ir.Constant(I64, self._tile))
        return b.add(b.and_(passed, ir.Constant(I64, -self._tile)), self._phase)

    def _aligned(self, values: ir.Value, slots: tuple[Slot, ...]) -> ir.Value:
        """The first position at which the first of the columns has a line of the cache to itself."""
        size = _bytes(element(slots[0].column.type)) if slots else _LINE
        lanes = _LINE // size
        if self._tile < lanes or lanes < 2:
            return _ZERO
        b = self._b
        address = read(b, values, I64, _ZERO)
        passed = b.lshr(b.and_(address, ir.Constant(I64, _LINE - 1)), ir.Constant(I64, size.bit_length() - 1))
        return b.and_(b.sub(_ZERO, passed), ir.Constant(I64, lanes - 1))

    # -- few pairs -------------------------------------------------------------------------------

    def _rare(self, o: ir.Value, start: ir.Value, stop: ir.Value) -> ir.Value:
        """Some outer tuples from `o` on over one tile; how many they are."""
        b, block, pairs = self._b, self._vectors.block, self._vectors.pairs
        many, low, high = self._together(o, block)
        low, high = self._most(low, start), self._least(high, stop)
        last = b.sub(self._o_stop, _ONE)
        held = [self._outer.read(self._least(b.add(o, ir.Constant(I64, k)), last), 1) for k in range(block)]
        limit = b.sub(self._i_size, ir.Constant(I64, pairs))
        self._add(self._tried, b.mul(self._most(b.sub(high, low), _ZERO), many))
        with b.goto_entry_block():
            masks = b.alloca(I64, ir.Constant(I32, block))
        whole = b.add(low, b.and_(self._most(b.sub(high, low), _ZERO), ir.Constant(I64, -pairs)))
        is_left = b.icmp_signed("<", whole, high)
        # first all whole groups, and then, where some tuples are left, the one that has them
        with Loop(b, _ZERO, b.select(is_left, ir.Constant(I64, 2), _ONE), _ONE) as turn:
            is_last = b.icmp_signed("==", turn.position, _ONE)
            first = b.select(is_last, whole, low)
            start = b.select(is_last, self._least(whole, limit), low)
            stop = b.select(is_last, b.add(start, _ONE), whole)
            with Loop(b, start, stop, ir.Constant(I64, pairs)) as loop:
                bits = self._group(held, loop.position)
                some = reduce(b.or_, [part for own in bits for part in own])
                lanes = ir.IntType(self._vectors.lanes)
                with b.if_then(b.icmp_unsigned("!=", b.bitcast(some, lanes), ir.Constant(lanes, 0)), likely=False):
                    for k, own in enumerate(bits):
                        b.store(self._word(own), b.gep(masks, [ir.Constant(I64, k)], source_etype=I64))
                    self._visit_block(o, many, masks, loop.position, first, high)
        return many

    def _together(self, o: ir.Value, block: int) -> tuple[ir.Value, ir.Value, ir.Value]:
        """How many tuples from `o` on pass together, and the range that has all of theirs: a whole block, or one."""
        b = self._b
        start, stop = read(b, self._starts, I64, o), read(b, self._stops, I64, o)
        if block == 1:
            return _ONE, start, stop
        last = b.sub(self._o_stop, _ONE)
        others = [self._least(b.add(o, ir.Constant(I64, k)), last) for k in range(1, block)]
        stops = [read(b, self._stops, I64, other) for other in others]
        widest, narrowest = reduce(self._most, stops, stop), reduce(self._least, stops, stop)
        latest = read(b, self._starts, I64, others[-1])  # the starts never go down
        apart = b.add(b.sub(widest, narrowest), b.sub(latest, start))
        near = b.icmp_signed("<=", apart, b.ashr(b.sub(stop, start), _ONE))
        whole = b.icmp_signed("<=", b.add(o, ir.Constant(I64, block)), self._o_stop)
        together = b.and_(near, whole)
        return b.select(together, ir.Constant(I64, block), _ONE), start, b.select(together, widest, stop)

    def _group(self, held: list[dict[Column, Value]], at: ir.Value) -> list[list[ir.Value]]:
        """By outer tuple, and by vector of inner ones, the lanes where the condition can be true."""
        b, lanes = self._b, self._vectors.lanes
        bits: list[list[ir.Value]] = [[] for _ in held]
        wide = [{column: _widen(b, value, lanes) for column, value in own.items()} for own in held]
        for part in range(self._vectors.group):
            read_here = self._inner.read(b.add(at, ir.Constant(I64, part * lanes)), lanes)
            for own, found in zip(wide, bits, strict=True):
                columns = {**own, **read_here}
                plain = {column: Value(value.lanes) for column, value in columns.items()}
                exact_one = Emitter(b, lanes, columns, self._constants.literal)
                plain_one = Emitter(b, lanes, plain, self._constants.literal, plain=True)
                found.append(Possible(b, exact_one, plain_one, spans=self._spans).emit(self._scan.shape))
        return bits

    def _word(self, bits: list[ir.Value]) -> ir.Value:
        """A bit for each pair of a group."""
        b, lanes = self._b, self._vectors.lanes
        words = [b.zext(b.bitcast(own, ir.IntType(lanes)), I64) for own in bits]
        return reduce(b.or_, [b.shl(word, ir.Constant(I64, k * lanes)) for k, word in enumerate(words)])

    def _visit_block(
        self, o: ir.Value, many: ir.Value, masks: ir.Value, at: ir.Value, first: ir.Value, high: ir.Value
    ) -> None:
        """Look at the pairs of a group at `at`, by outer tuple: those from `first` up to `high` and in its range."""
        b = self._b
        with Loop(b, _ZERO, many, _ONE) as each:
            outer = b.add(o, each.position)
            mask = b.load(b.gep(masks, [each.position], source_etype=I64), typ=I64)
            low = self._most(first, read(b, self._starts, I64, outer))
            stop = self._least(high, read(b, self._stops, I64, outer))
            self._visit(outer, at, b.and_(mask, self._between(b.sub(low, at), b.sub(stop, at))))

    def _visit(self, outer: ir.Value, at: ir.Value, mask: ir.Value) -> None:
        """Write the pairs of a group whose bits are set, those of them that hold."""
        b = self._b
        left = self._counter(_ZERO)
        b.store(mask, left)
        with While(b, lambda: b.icmp_unsigned("!=", self._now(left), _ZERO)):
            now = self._now(left)
            inner = b.add(at, call_intrinsic(b, "llvm.cttz.i64", [now, ir.Constant(I1, 1)], I64))
            b.store(b.and_(now, b.sub(now, _ONE)), left)
            self._add(self._looked, _ONE)
            scan = self._scan
            if is_exact(scan.shape, scan.inputs, scan.nullable, spans=self._spans) and not scan.windowed:
                self._write(outer, inner)
            else:
                hit = b.extract_element(self._holds(outer, inner, 1), ir.Constant(I32, 0))
                with b.if_then(hit):
                    self._write(outer, inner)

    def _write(self, outer: ir.Value, inner: ir.Value) -> None:
        b = self._b
        n = self._now(self._found)
        write(b, self._o_out, n, b.trunc(outer, I32))
        write(b, self._i_out, n, b.trunc(b.sub(inner, self._i_start), I32))
        b.store(b.add(n, _ONE), self._found)

    # -- many pairs ------------------------------------------------------------------------------

    def _dense(self, o: ir.Value, start: ir.Value, stop: ir.Value) -> ir.Value:
        """One outer tuple over one tile."""
        b, lanes = self._b, self._vectors.lanes
        low = self._most(read(b, self._starts, I64, o), start)
        high = self._least(read(b, self._stops, I64, o), stop)
        count = self._most(b.sub(high, low), _ZERO)
        self._add(self._tried, count)
        before = self._now(self._found)
        whole = b.add(low, b.and_(count, ir.Constant(I64, -lanes)))
        with Loop(b, low, whole, ir.Constant(I64, lanes)) as loop:
            self._spread(o, loop.position, b.bitcast(self._holds(o, loop.position, lanes), ir.IntType(lanes)))
        with b.if_then(b.icmp_signed("<", whole, high)):
            at = self._least(whole, b.sub(self._i_size, ir.Constant(I64, lanes)))
            own = b.trunc(self._between(b.sub(whole, at), b.sub(high, at)), ir.IntType(lanes))
            self._spread(o, at, b.and_(b.bitcast(self._holds(o, at, lanes), ir.IntType(lanes)), own))
        self._add(self._looked, b.sub(self._now(self._found), before))
        return _ONE

    def _spread(self, outer: ir.Value, at: ir.Value, bits: ir.Value) -> None:
        """Write the pairs of a vector whose bits are set."""
        b, lanes = self._b, self._vectors.lanes
        chunk = min(_CHUNK, lanes)
        table = _places(b.module, chunk)
        ints = ir.VectorType(I32, chunk)
        base = b.trunc(b.sub(at, self._i_start), I32)
        word = b.zext(bits, I64) if lanes < _WORD else bits
        n = self._now(self._found)
        for part in range(lanes // chunk):
            own = b.and_(b.lshr(word, ir.Constant(I64, part * chunk)), ir.Constant(I64, (1 << chunk) - 1))
            row = b.gep(table, [b.mul(own, ir.Constant(I64, chunk))], source_etype=I8)
            places = b.zext(b.load(row, typ=ir.VectorType(I8, chunk), align=1), ints)
            first = splat(b, b.add(base, ir.Constant(I32, part * chunk)), chunk)
            write_lanes(b, self._i_out, n, b.add(places, first))
            write_lanes(b, self._o_out, n, splat(b, b.trunc(outer, I32), chunk))
            n = b.add(n, call_intrinsic(b, "llvm.ctpop.i64", [own], I64))
        b.store(n, self._found)

    # -- pieces ----------------------------------------------------------------------------------

    def _holds(self, outer: ir.Value, inner: ir.Value, width: int) -> ir.Value:
        """Lanes of bits: where condition and windows hold."""
        b, scan = self._b, self._scan
        columns = {column: _widen(b, value, width) for column, value in self._outer.read(outer, 1).items()}
        columns.update(self._inner.read(inner, width))
        truth = Emitter(b, width, columns, self._constants.literal).truth(scan.shape)
        if not scan.windowed:
            return truth
        stamps = [
            [_wide(b, own, width) for own in self._outer_stamps.read(outer, 1)],
            self._inner_stamps.read(inner, width),
        ]
        r, s = stamps if scan.outer == 0 else reversed(stamps)
        first, second = (splat(b, length, width) for length in self._lengths)
        return b.and_(holds(b, scan.counted, r, s, (first, second)), truth)

    def _between(self, low: ir.Value, high: ir.Value) -> ir.Value:
        """A word with the bits from one place up to another set; both may lie outside."""
        return self._b.and_(self._below(high), self._b.not_(self._below(low)))

    def _below(self, place: ir.Value) -> ir.Value:
        b = self._b
        place = self._most(self._least(place, ir.Constant(I64, _WORD)), _ZERO)
        bits = b.sub(b.shl(_ONE, b.and_(place, ir.Constant(I64, _WORD - 1))), _ONE)
        return b.select(b.icmp_signed("==", place, ir.Constant(I64, _WORD)), ir.Constant(I64, -1), bits)

    def _counter(self, value: ir.Value) -> ir.Value:
        with self._b.goto_entry_block():
            counter = self._b.alloca(I64)
        self._b.store(value, counter)
        return counter

    def _now(self, counter: ir.Value) -> ir.Value:
        return self._b.load(counter, typ=I64)

    def _add(self, counter: ir.Value, value: ir.Value) -> None:
        self._b.store(self._b.add(self._now(counter), value), counter)

    def _most(self, a: ir.Value, b: ir.Value) -> ir.Value:
        return self._b.select(self._b.icmp_signed(">", a, b), a, b)

    def _least(self, a: ir.Value, b: ir.Value) -> ir.Value:
        return self._b.select(self._b.icmp_signed("<", a, b), a, b)


def write_lanes(builder: ir.IRBuilder, array: ir.Value, position: ir.Value, lanes: ir.Value) -> None:
    """Write a vector from a position of an array on."""
    address = builder.gep(pointer(builder, array), [position], source_etype=lanes.type.element)
    builder.store(lanes, address, align=1)


def _places(module: ir.Module, chunk: int) -> ir.Value:
    """A table that has, for every word of so many bits, the places of those that are set, in order."""
    rows = []
    for word in range(1 << chunk):
        places = [bit for bit in range(chunk) if word >> bit & 1]
        rows += places + [0] * (chunk - len(places))
    if (known := module.globals.get("places")) is not None:
        return known
    type_ = ir.ArrayType(I8, len(rows))
    table = ir.GlobalVariable(module, type_, "places")
    table.linkage, table.global_constant, table.initializer = "private", True, ir.Constant(type_, bytearray(rows))
    return table


def _widen(builder: ir.IRBuilder, value: Value, width: int) -> Value:
    """A value of one lane in `width` lanes."""
    if width == 1:
        return value
    null = _wide(builder, value.null, width) if value.null is not None else None
    error = _wide(builder, value.error, width) if value.error is not None else None
    return Value(_wide(builder, value.lanes, width), null, error)


def _wide(builder: ir.IRBuilder, lanes: ir.Value, width: int) -> ir.Value:
    return lanes if width == 1 else splat(builder, builder.extract_element(lanes, ir.Constant(I32, 0)), width)
