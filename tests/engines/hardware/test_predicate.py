"""The predicate as a circuit says of every pair of rows what the oracle says."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import pytest
from amaranth import Const, Module, Signal, Value, signed, unsigned
from amaranth.back import rtlil
from amaranth.sim import Simulator

import handfast as hf
from handfast.engines.hardware import predicate as circuits
from handfast.engines.hardware.fits import OPERATORS, check_fits, column_widths, fits, width_of
from handfast.engines.hardware.predicate import Predicate, predicate
from handfast.errors import InternalError, UnsupportedError
from handfast.judge import evaluation
from handfast.spec.expression import Call, Column, Expr, Op, walk
from handfast.spec.predicate import bind
from handfast.spec.schema import Schema
from handfast.spec.shown import shown
from handfast.spec.types import (
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INT8,
    INT16,
    INT32,
    INT64,
    INTERVAL,
    NULL,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    Type,
    decimal,
)
from tests.strategies.circuits import COLUMNS, SCHEMAS, Row, Sql, rows

pytestmark = pytest.mark.filterwarnings("ignore::amaranth.hdl.UnusedElaboratable")  # what is refused is not used
STREAMS = ("r", "s")
TREES, TOGETHER, PAIRS = 300, 30, 40
Pair = tuple[Row, Row]


def drawn(seeds: Sequence[int]) -> list[Expr]:
    """Random conditions that fit."""
    trees = [bind(Sql(seed).condition(), SCHEMAS) for seed in seeds]
    return [tree for tree in trees if fits(tree)]


def value_of(sql: str) -> Expr:
    """The typed tree of any expression, taken from a comparison with itself."""
    tree = bind(f"({sql}) <=> ({sql})", SCHEMAS)
    assert isinstance(tree, Call)
    return tree.args[0]


def computed(trees: Sequence[Expr], pairs: Sequence[Pair], widths: dict[Column, int] | None = None) -> list[list[Any]]:
    """What the circuits of the trees, side by side, say of every pair; all columns lie in one word."""
    read = {column: width for tree in trees for column, width in column_widths(tree).items()} | (widths or {})
    word = Signal(sum(read.values()) + len(read))
    inputs: dict[Column, tuple[Value, Value]] = {}
    at = 0
    for column, width in read.items():
        inputs[column] = word[at : at + width], word[at + width]
        at += width + 1
    m = Module()
    outputs = []
    for number, tree in enumerate(trees):
        m.submodules[f"tree_{number}"] = part = Module()
        value, null = predicate(part, tree, inputs)
        outputs.append((Signal(value.shape()), Signal()))
        part.d.comb += [outputs[-1][0].eq(value), outputs[-1][1].eq(null)]
    found: list[list[Any]] = []

    async def bench(ctx: Any) -> None:
        for pair in pairs:
            ctx.set(word, _packed(pair, read))
            await ctx.delay(1e-6)
            found.append([None if ctx.get(null) else ctx.get(value) for value, null in outputs])

    simulator = Simulator(m)
    simulator.add_testbench(bench)
    simulator.run()
    return found


def _packed(pair: Pair, read: dict[Column, int]) -> int:
    """The word of a pair; a column that is NULL has all its bits set, which must not matter."""
    word, at = 0, 0
    for column, width in read.items():
        value = pair[column.stream][column.name]
        word |= ((-1 if value is None else int(value)) % (1 << width)) << at
        word |= (value is None) << (at + width)
        at += width + 1
    return word


def differences(trees: Sequence[Expr], pairs: Sequence[Pair]) -> Iterator[str]:
    """Where circuit and oracle differ."""
    for start in range(0, len(trees), TOGETHER):
        part = trees[start : start + TOGETHER]
        for pair, found in zip(pairs, computed(part, pairs), strict=True):
            for tree, value in zip(part, found, strict=True):
                expected = evaluation.evaluate(tree, pair)
                if value != expected:
                    yield f"{shown(tree, STREAMS)} of {pair} is {expected}, and the circuit says {value}"


def test_random_predicates_are_what_the_oracle_says() -> None:
    trees = drawn(range(TREES))
    assert len(trees) > 0.8 * TREES
    assert OPERATORS == {node.op for tree in trees for node in walk(tree) if isinstance(node, Call)}
    assert [] == list(differences(trees, rows(1, PAIRS)))


@pytest.mark.more
def test_many_more_and_deeper_predicates_are_what_the_oracle_says() -> None:
    trees = [bind(Sql(seed).condition(3 + seed % 3), SCHEMAS) for seed in range(TREES, 8 * TREES)]
    assert [] == list(differences([tree for tree in trees if fits(tree)], rows(3, PAIRS)))


VALUES = (
    *(f"{a} {op} {b}" for op in "+-*" for a in ("r.t", "r.h", "r.i", "r.l") for b in ("s.t", "s.i", "s.l", "3", "-1Y")),
    *(
        f"{a} {op} {b}"
        for op in "+-*"
        for a in ("r.p", "r.q", "r.z")
        for b in ("s.p", "s.q", "s.z", "s.i", "0.05", "7")
    ),
    *(f"{name}({a})" for name in ("ABS", "-") for a in ("r.t", "r.h", "r.i", "r.l", "r.p", "r.w", "r.u", "r.v")),
    *(
        f"CAST({a} AS {to})"
        for a in ("r.t", "r.i", "r.l", "r.u")
        for to in ("TINYINT", "INT", "BIGINT", "DECIMAL(4,1)")
    ),
    *(f"CAST({a} AS DECIMAL({to}))" for a in ("r.p", "r.z", "r.u") for to in ("10,4", "5,2", "38,2", "38,30")),
    *(f"r.{time} {op} s.v" for time in ("ts", "n", "v") for op in "+-"),
    *("r.ts - s.ts", "r.n - s.n", "r.da - s.db", "r.n - s.da", "CAST(r.da AS TIMESTAMP_NTZ)", "DATEDIFF(r.da, s.db)"),
    *(
        "r.da + s.i",
        "r.da - s.t",
        "7 + r.da",
        "r.u * s.z",
        "r.u + 1",
        "2147483647 + 1",
        "DATE '9999-12-31' + 2147483647",
    ),
    *(
        "GREATEST(r.t, s.l, 0)",
        "LEAST(r.p, s.q, r.i)",
        "COALESCE(r.t + s.t, s.i)",
        "NULLIF(r.i, s.i)",
        "IF(r.b, r.p, s.q)",
    ),
    *("CASE WHEN r.b THEN r.i + s.i WHEN r.i + 1 > 0 THEN r.t ELSE s.h END", "GREATEST(r.b, s.c)", "NULL"),
)


def test_every_value_is_what_the_oracle_says() -> None:
    trees = [value_of(sql) for sql in VALUES]
    assert [] == list(differences(trees, rows(2, 150)))


@pytest.mark.parametrize(
    ("sql", "r", "s", "expected"),
    [
        ("r.i = s.i", {"i": 5}, {"i": 5}, True),
        ("r.i = s.i", {"i": None}, {"i": None}, None),
        ("r.i <=> s.i", {"i": None}, {"i": None}, True),
        ("NOT (r.i = s.i)", {"i": None}, {"i": 5}, None),
        ("(r.i = s.i) IS NULL", {"i": None}, {"i": 5}, True),
        ("(r.i = s.i) IS NOT TRUE", {"i": None}, {"i": 5}, True),
        ("r.i + s.i > 0", {"i": 2**31 - 1}, {"i": 1}, None),
        # the whole predicate is NULL where Spark's ANSI mode refuses the pair
        ("(r.i + s.i > 0) IS NULL", {"i": 2**31 - 1}, {"i": 1}, None),
        ("r.i + s.i > 0 OR TRUE", {"i": 2**31 - 1}, {"i": 1}, None),
        # unless it is decided before, from left to right
        ("TRUE OR r.i + s.i > 0", {"i": 2**31 - 1}, {"i": 1}, True),
        ("FALSE AND r.i + s.i > 0", {"i": 2**31 - 1}, {"i": 1}, False),
        ("CASE WHEN TRUE THEN 1 ELSE r.i + s.i END = 1", {"i": 2**31 - 1}, {"i": 1}, True),
        ("COALESCE(1, r.i + s.i) = 1", {"i": 2**31 - 1}, {"i": 1}, True),
        ("ABS(r.t) > 0", {"t": -128}, {}, None),
        ("-r.l > 0", {"l": -(2**63)}, {}, None),
        ("r.da + 1 < r.da", {"da": 2**31 - 1}, {}, True),  # days overflow silently
        ("r.p BETWEEN s.p - 0.05 AND s.p + 0.05", {"p": 105}, {"p": 100}, True),
        ("r.p BETWEEN s.p - 0.05 AND s.p + 0.05", {"p": 106}, {"p": 100}, False),
    ],
)
def test_a_pair_by_hand(sql: str, r: Row, s: Row, expected: bool | None) -> None:
    assert [[expected]] == computed([bind(sql, SCHEMAS)], [(r, s)])


def test_words_may_be_narrower_than_the_type() -> None:
    sql = ("r.l + s.l > 3", "r.l * s.i < -r.i", "ABS(r.i - s.i) <= 2", "r.l IN (-2, -1, 0, 1, 100)", "r.p < s.l")
    trees = [bind(text, SCHEMAS) for text in sql]
    for bits in (1, 2, 5):
        half = 1 << (bits - 1)
        values = [None, -half, half - 1, 0, -1]
        pairs = [
            (dict.fromkeys(("i", "l", "p"), a) | {"i": b}, dict.fromkeys(("i", "l"), b) | {"l": a})
            for a in values
            for b in values
        ]
        widths = {column: bits for tree in trees for column in column_widths(tree)}
        expected = [[evaluation.evaluate(tree, pair) for tree in trees] for pair in pairs]
        assert expected == computed(trees, pairs, widths)


def test_a_long_chain_makes_a_circuit_in_proportion() -> None:
    def size(terms: int) -> int:
        sums = " + ".join(["r.i", "s.i"] * terms)
        return len(rtlil.convert(Predicate(bind(f"CASE WHEN {sums} > 0 THEN r.i ELSE {sums} END > s.i", SCHEMAS))))

    assert size(30) < 2.2 * size(15)


def test_what_cannot_overflow_is_not_checked() -> None:
    column = Column(0, "t", INT8)
    _, null = predicate(Module(), bind("ABS(r.t + 1) * 1000 < 5", SCHEMAS), {column: (Signal(8), Const(0, 1))})
    assert isinstance(null, Const) and null.value == 0


def test_a_column_of_nothing_but_nulls_is_not_read() -> None:
    tree = bind("r.x = r.y OR s.x IS NULL", {"r": Schema((("x", NULL), ("y", INT32))), "s": Schema((("x", NULL),))})
    assert {Column(0, "y", INT32): 32} == column_widths(tree)
    assert [[True]] == computed([tree], [({"x": None, "y": 1}, {"x": None})])


def test_a_word_wider_than_its_type_is_a_bug() -> None:
    with pytest.raises(InternalError, match="Column 't' is read from 9 bits; tinyint has 8"):
        predicate(Module(), bind("r.t = 1", SCHEMAS), {Column(0, "t", INT8): (Signal(9), Signal())})


# --- the component ----------------------------------------------------------------------------------------------------


def test_the_component_has_a_port_for_every_column_and_its_null() -> None:
    made = Predicate(bind("r.t < s.p AND s.b", SCHEMAS), STREAMS)
    ports = {name: (member.flow.name, member.shape) for name, member in made.signature.members.items()}
    expected = {"value": ("Out", unsigned(1)), "null": ("Out", 1)}
    for name, shape in (("r_t", signed(8)), ("s_b", unsigned(1)), ("s_p", signed(35))):
        expected |= {f"value_{name}": ("In", shape), f"null_{name}": ("In", 1)}
    assert expected == ports
    word, null = made.inputs[Column(0, "t", INT8)]
    assert word is made.value_r_t and null is made.null_r_t
    assert 5 == len(Predicate(made.tree, STREAMS, widths={Column(0, "t", INT8): 5}).value_r_t)


def test_several_comparisons_in_a_cycle_are_several_instances() -> None:
    """One tuple of r, three of s."""
    tree = bind("r.i BETWEEN s.i - 1 AND s.i + 1", SCHEMAS)
    m = Module()
    r = Signal(32)
    made = [Predicate(tree) for _ in range(3)]
    for number, instance in enumerate(made):
        m.submodules[f"predicate_{number}"] = instance
        m.d.comb += instance.value_r_i.eq(r)
    found = []

    async def bench(ctx: Any) -> None:
        ctx.set(r, 10)
        for value, instance in zip((8, 9, 11), made, strict=True):
            ctx.set(instance.value_s_i, value)
        await ctx.delay(1e-6)
        found.extend(ctx.get(instance.value & ~instance.null) for instance in made)

    simulator = Simulator(m)
    simulator.add_testbench(bench)
    simulator.run()
    assert [0, 1, 1] == found


def test_columns_of_any_name_have_ports() -> None:
    schema = Schema((("a b", INT32), ("a_b", INT32), ("größe", INT32)))
    streams = {"_x": schema, "x": schema}
    names = [f"{stream}.`{column}`" for stream in streams for column in schema.names]
    made = Predicate(bind(" + ".join(names) + " > 0", streams), tuple(streams))
    assert 6 == len({id(word) for word, _ in made.inputs.values()})
    assert "value__x_a_b_2" in rtlil.convert(made)


# --- what does not fit ------------------------------------------------------------------------------------------------

_MORE = {"k": STRING, "d": DOUBLE, "f": FLOAT, "x": BINARY, "w2": decimal(38, 18)}
_ALL = {name: Schema((*COLUMNS.items(), *_MORE.items())) for name in STREAMS}
_ROOM = "which a circuit that decides a pair in one cycle has no room for"


@pytest.mark.parametrize(
    ("sql", "part", "why"),
    [
        ("r.i = s.i AND r.k = s.k", "r.k", "it is text (string), and a circuit computes with integers"),
        ("r.x < s.x", "r.x", "it is text (binary), and a circuit computes with integers"),
        ("r.k IS NULL", "r.k", "it is text (string), and a circuit computes with integers"),
        ("r.k LIKE 'a%'", "r.k LIKE 'a%'", "it works on text, and a circuit computes with integers"),
        ("LENGTH(r.k) > s.i", "LENGTH(r.k)", "it works on text, and a circuit computes with integers"),
        ("UPPER(r.k) = 'A'", "UPPER(r.k)", "it works on text, and a circuit computes with integers"),
        ("r.d > 1", "r.d", f"it is floating point (double), {_ROOM}"),
        ("r.f <=> s.f", "r.f", f"it is floating point (float), {_ROOM}"),
        ("r.i = s.d", "s.d", f"it is floating point (double), {_ROOM}"),
        ("SQRT(r.i) > 3", "SQRT(r.i)", f"it is floating point (double), {_ROOM}"),
        ("CAST(r.i AS DOUBLE) > 3", "CAST(r.i AS double)", f"it is floating point (double), {_ROOM}"),
        ("CAST(r.d AS INT) > 3", "r.d", f"it is floating point (double), {_ROOM}"),
        ("1e0 < 2e0", "1.0", f"it is floating point (double), {_ROOM}"),
        ("r.i / 2 > s.i", "r.i / 2.0", f"it takes a division, {_ROOM}"),
        ("r.i % 2 = 0", "r.i % 2", f"it takes a division, {_ROOM}"),
        ("r.i DIV 2 = 0", "r.i DIV 2", f"it takes a division, {_ROOM}"),
        ("ROUND(r.p, 1) = s.p", "ROUND(r.p, 1)", f"it takes a division, {_ROOM}"),
        ("FLOOR(r.p) = 1", "FLOOR(r.p)", f"it takes a division, {_ROOM}"),
        ("YEAR(r.da) = 2026", "YEAR(r.da)", f"it takes a division, {_ROOM}"),
        ("HOUR(r.ts) = 12", "HOUR(r.ts)", f"it takes a division, {_ROOM}"),
        ("DATE_TRUNC('WEEK', r.ts) = s.ts", "DATE_TRUNC('WEEK', r.ts)", f"it takes a division, {_ROOM}"),
        ("DATE(r.ts) = s.da", "CAST(r.ts AS date)", f"the day of a time takes a division, {_ROOM}"),
        (
            "r.w - s.w2 < 1",
            "CAST(r.w - s.w2 AS decimal(38,17))",
            f"digits behind the point are cut off by a division, {_ROOM}",
        ),
        ("CAST(r.p AS INT) = 1", "CAST(r.p AS int)", f"digits behind the point are cut off by a division, {_ROOM}"),
        ("r.w * s.w2 < 1", "r.w * s.w2", f"its result is rounded to decimal(38,6), by a division, {_ROOM}"),
    ],
)
def test_what_does_not_fit_is_named_with_the_reason_and_the_way_out(sql: str, part: str, why: str) -> None:
    tree = bind(sql, _ALL)
    assert not fits(tree)
    for refused in (check_fits, Predicate, lambda tree, streams: predicate(Module(), tree, {}, streams)):
        with pytest.raises(UnsupportedError) as error:
            refused(tree, STREAMS)
        assert f"Engine 'hardware' cannot compute {part!r}: {why}; use engine 'local' or 'spark'" == str(error.value)


def test_a_python_predicate_does_not_fit() -> None:
    schema = {name: Schema((("i", INT32),)) for name in STREAMS}
    tree = hf.predicate(near).bind(schema)
    with pytest.raises(UnsupportedError, match=r"cannot compute 'near\(r.i, s.i\)': it is a function in Python; use"):
        check_fits(tree, STREAMS)


def near(r_i: int, s_i: int) -> bool:
    return abs(r_i - s_i) < 5


def test_every_operator_fits_or_is_refused_for_a_reason() -> None:
    """An operator that is new to the spec is none that circuits know by chance."""
    assert OPERATORS == circuits._RULES.keys()


@pytest.mark.parametrize(
    ("type_", "width"),
    [
        *((BOOLEAN, 1), (INT8, 8), (INT16, 16), (INT32, 32), (INT64, 64), (DATE, 32)),
        *((TIMESTAMP, 64), (TIMESTAMP_NTZ, 64), (INTERVAL, 64), (decimal(1, 0), 5), (decimal(10, 2), 35)),
        (decimal(38, 18), 128),
    ],
)
def test_the_width_of_a_column_is_what_its_type_needs(type_: Type, width: int) -> None:
    assert width == width_of(type_)


def test_the_columns_that_a_circuit_reads() -> None:
    expected = {Column(0, "t", INT8): 8, Column(1, "b", BOOLEAN): 1, Column(1, "p", decimal(10, 2)): 35}
    found = column_widths(bind("r.t < s.p AND s.b AND s.p > 0", SCHEMAS))
    assert list(expected.items()) == list(found.items())


# --- bugs that these tests must see -----------------------------------------------------------------------------------

Mutant = Callable[[pytest.MonkeyPatch], None]
MUTANTS: list[Mutant] = []


def mutant(bug: Mutant) -> Mutant:
    """Enter a bug into the list."""
    MUTANTS.append(bug)
    return bug


def _change(patch: pytest.MonkeyPatch, op: Op, change: Callable[[Any, Sequence[Any]], Any]) -> None:
    """Change what the rule of an operator makes of its arguments."""
    rule = circuits._RULES[op]
    patch.setitem(circuits._RULES, op, lambda circuit, call, args: change(rule(circuit, call, args), args))


@mutant
def not_of_null_is_known(patch: pytest.MonkeyPatch) -> None:
    _change(patch, Op.NOT, lambda made, args: replace(made, null=Const(0, 1)))


@mutant
def a_sum_that_overflows_is_not_refused(patch: pytest.MonkeyPatch) -> None:
    _change(patch, Op.ADD, lambda made, args: replace(made, error=circuits._any(*(arg.error for arg in args))))


@mutant
def null_plus_anything_is_refused(patch: pytest.MonkeyPatch) -> None:
    _change(patch, Op.ADD, lambda made, args: replace(made, error=circuits._any(made.error, made.null)))


@mutant
def columns_are_read_without_their_sign(patch: pytest.MonkeyPatch) -> None:
    column = circuits._Circuit._column

    def careless(self: Any, read: Column) -> Any:
        made = column(self, read)
        return replace(made, value=made.value.as_unsigned())

    patch.setattr(circuits._Circuit, "_column", careless)


@mutant
def a_refusal_counts_though_the_left_side_has_decided(patch: pytest.MonkeyPatch) -> None:
    _change(patch, Op.OR, lambda made, args: replace(made, error=circuits._any(*(arg.error for arg in args))))


@mutant
def two_nulls_are_not_the_same(patch: pytest.MonkeyPatch) -> None:
    _change(patch, Op.SAME, lambda made, args: replace(made, value=circuits._all(made.value, ~args[0].null)))


@mutant
def a_refusal_counts_though_its_value_is_not_chosen(patch: pytest.MonkeyPatch) -> None:
    _change(patch, Op.CASE, lambda made, args: replace(made, error=circuits._any(*(arg.error for arg in args))))


@mutant
def results_one_bit_too_narrow(patch: pytest.MonkeyPatch) -> None:
    exact = circuits._Circuit._exact
    patch.setattr(
        circuits._Circuit, "_exact", lambda self, value, low, high, name: exact(self, value, low // 2, high // 2, name)
    )


@pytest.mark.parametrize("bug", MUTANTS, ids=lambda bug: bug.__name__)
def test_the_random_predicates_catch(bug: Mutant, monkeypatch: pytest.MonkeyPatch) -> None:
    bug(monkeypatch)
    found = next(differences(drawn(range(TREES)), rows(1, PAIRS)), None)
    assert found is not None, f"{TREES} predicates did not tell that {bug.__name__.replace('_', ' ')}"
