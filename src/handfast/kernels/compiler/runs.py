"""The kernel of the band index: tries runs of stored tuples that lie side by side, in vectors, each with one tuple.

A vector may reach beyond its run, and beyond the pane that it lies in: arrays have room for that, and lanes beyond the
run do not count.
"""

from __future__ import annotations

from functools import lru_cache

from llvmlite import ir

from handfast.kernels.compiler.access import ColumnLanes, Literals, entry, pointer, read, read_lanes
from handfast.kernels.compiler.codegen import I64, Emitter, Value, call_intrinsic, element, splat
from handfast.kernels.compiler.loops import Loop, While
from handfast.kernels.compiler.native import Native, load
from handfast.kernels.compiler.program import Slot
from handfast.spec.expression import Expr

I32 = ir.IntType(32)
_ONE, _ZERO = ir.Constant(I64, 1), ir.Constant(I64, 0)

LANES = 8
_AHEAD = 8  # so many runs before its turn what a run reads is fetched
RUN_WORDS = 15
# a pane's words, in this order: number of position 0 of its positions, positions, then values and statuses by column
PANE_BASE, PANE_POSITIONS, PANE_COLUMNS = 0, 1, 2


@lru_cache(maxsize=512)
def run_kernel(shape: Expr, inputs: tuple[tuple[Slot, ...], ...], outer: int, nullable: bool, ranged: bool) -> Native:
    """Find the pairs of a probing tuple, of stream `outer`, and a tuple of its runs for which the condition holds.

    If `ranged`, only stored tuples count whose numbers lie in the probing tuple's range.

    Words: values and statuses of the probing tuples, the panes, words of a pane; by run the place of the probing tuple,
    the number of the pane, the first place in it and the end; run to begin with, end of the runs; start and stop of
    each range, literals, how many pairs there is room for, and the state: its words are the run and the place to go on
    from (below 0 if the run has not begun), places out, numbers out. Returns how many pairs were found.
    """
    function, b = _function("runs", RUN_WORDS)
    values, statuses, panes, pane_words, of_probe, of_pane, of_first, of_end = function.args[:8]
    first_run, end_run, starts, stops, literals, capacity, state = function.args[8:]
    inner = 1 - outer
    constants = Literals(b, shape, literals)
    probing = ColumnLanes(b, inputs[outer], values, statuses, nullable)
    places_out, numbers_out = entry(b, state, 2), entry(b, state, 3)
    found, place = b.alloca(I64), b.alloca(I64)
    b.store(_ZERO, found)
    b.store(entry(b, state, 1), place)
    lane_numbers = ir.Constant(ir.VectorType(I64, LANES), list(range(LANES)))

    full = b.append_basic_block("full")
    with Loop(b, first_run, end_run, _ONE) as loop:
        run = loop.position
        later = b.add(run, ir.Constant(I64, _AHEAD))
        _fetch(b, b.select(b.icmp_signed("<", later, end_run), later, run), function.args, inputs[inner])
        probe = b.zext(read(b, of_probe, I32, run), I64)
        number = b.zext(read(b, of_pane, I32, run), I64)
        pane = b.add(panes, b.mul(b.mul(number, pane_words), ir.Constant(I64, 8)))
        base, positions = entry(b, pane, PANE_BASE), entry(b, pane, PANE_POSITIONS)
        stored_values = b.add(pane, ir.Constant(I64, 8 * PANE_COLUMNS))
        stored_statuses = b.add(stored_values, ir.Constant(I64, 8 * len(inputs[inner])))
        stored = ColumnLanes(b, inputs[inner], stored_values, stored_statuses, nullable)
        held = {column: _widened(b, value) for column, value in probing.read(probe, 1).items()}
        end = b.zext(read(b, of_end, I32, run), I64)
        begun = b.load(place, typ=I64)
        first = b.zext(read(b, of_first, I32, run), I64)
        b.store(b.select(b.icmp_signed("<", begun, _ZERO), first, begun), place)
        if ranged:
            start = splat(b, b.sub(read(b, starts, I64, probe), base), LANES)
            stop = splat(b, b.sub(read(b, stops, I64, probe), base), LANES)
        with While(b, lambda: b.icmp_signed("<", b.load(place, typ=I64), end)):
            at = b.load(place, typ=I64)
            n = b.load(found, typ=I64)
            more = b.append_basic_block("more")
            fits = b.icmp_signed("<=", b.add(n, ir.Constant(I64, LANES)), capacity)
            b.cbranch(fits, more, full)
            b.position_at_end(more)
            emitter = Emitter(b, LANES, {**held, **stored.read(at, LANES)}, constants.literal)
            inside = b.icmp_signed("<", lane_numbers, splat(b, b.sub(end, at), LANES))
            inside = b.and_(inside, emitter.truth(shape))
            if ranged:
                own = b.sext(read_lanes(b, positions, I32, at, LANES), ir.VectorType(I64, LANES))
                inside = b.and_(inside, b.icmp_signed(">=", own, start))
                inside = b.and_(inside, b.icmp_signed("<", own, stop))
            bits = b.zext(b.bitcast(inside, ir.IntType(LANES)), I64)
            with b.if_then(b.icmp_unsigned("!=", bits, _ZERO)):
                own = _compressed(b, read_lanes(b, positions, I32, at, LANES), inside)
                numbers = b.add(b.sext(own, ir.VectorType(I64, LANES)), splat(b, base, LANES))
                b.store(numbers, b.gep(pointer(b, numbers_out), [n], source_etype=I64), align=1)
                b.store(splat(b, probe, LANES), b.gep(pointer(b, places_out), [n], source_etype=I64), align=1)
                count = call_intrinsic(b, "llvm.ctpop.i64", [bits], I64)
                b.store(b.add(n, count), found)
            b.store(b.add(at, ir.Constant(I64, LANES)), place)
        b.store(ir.Constant(I64, -1), place)
    b.branch(full)
    b.position_at_end(full)
    b.store(b.load(loop.counter, typ=I64), pointer(b, state))
    b.store(b.load(place, typ=I64), b.gep(pointer(b, state), [_ONE], source_etype=I64))
    b.ret(b.load(found, typ=I64))
    return load(function.module, {"runs": RUN_WORDS})["runs"]


def _fetch(b: ir.IRBuilder, run: ir.Value, words: list[ir.Value], inputs: tuple[Slot, ...]) -> None:
    """Have the cache lines fetched in which a run begins."""
    panes, pane_words, of_pane, of_first = words[2], words[3], words[5], words[6]
    number = b.zext(read(b, of_pane, I32, run), I64)
    pane = b.add(panes, b.mul(b.mul(number, pane_words), ir.Constant(I64, 8)))
    first = b.zext(read(b, of_first, I32, run), I64)
    types = [I32, *(element(known.column.type) for known in inputs)]
    shape = ir.FunctionType(ir.VoidType(), [ir.PointerType(), I32, I32, I32])
    prefetch = b.module.globals.get("llvm.prefetch.p0") or ir.Function(b.module, shape, "llvm.prefetch.p0")
    for k, type_ in enumerate(types):
        address = b.gep(pointer(b, entry(b, pane, PANE_POSITIONS + k)), [first], source_etype=type_)
        b.call(prefetch, [address, I32(0), I32(3), I32(1)])


def _compressed(b: ir.IRBuilder, lanes: ir.Value, inside: ir.Value) -> ir.Value:
    """The lanes that count, one behind the other; those behind them have no meaning."""
    # in a register: CPUs that compress into memory as well do so slowly
    shape = ir.FunctionType(lanes.type, [lanes.type, inside.type, lanes.type])
    name = f"llvm.experimental.vector.compress.v{LANES}i32"
    function = b.module.globals.get(name) or ir.Function(b.module, shape, name)
    return b.call(function, [lanes, inside, ir.Constant(lanes.type, ir.Undefined)])


def _widened(b: ir.IRBuilder, value: Value) -> Value:
    """A value of one lane in all lanes."""
    zero = ir.Constant(I32, 0)

    def wide(lanes: ir.Value | None) -> ir.Value | None:
        return None if lanes is None else splat(b, b.extract_element(lanes, zero), LANES)

    return Value(splat(b, b.extract_element(value.lanes, zero), LANES), wide(value.null), wide(value.error))


def _function(name: str, words: int) -> tuple[ir.Function, ir.IRBuilder]:
    module = ir.Module(name)
    function = ir.Function(module, ir.FunctionType(I64, [I64] * words), name)
    return function, ir.IRBuilder(function.append_basic_block("entry"))
