"""Predicates with holes: the pool that random joins draw from."""

from __future__ import annotations

from dataclasses import dataclass

R, S = 0, 1


@dataclass(frozen=True)
class Shape:
    """A predicate with holes: columns of the streams by role and type, constants by kind.

    `{rt}` and `{st}` are the first two streams' own time columns. `more` has the columns of a third stream and others.
    """

    name: str
    on: str
    r: str = ""
    s: str = ""
    holes: str = ""
    more: tuple[str, ...] = ()

    @property
    def streams(self) -> int:
        """How many streams it joins."""
        return 2 + len(self.more)

    @property
    def roles(self) -> dict[str, tuple[int, str]]:
        """Every role's stream and type."""
        own = enumerate((self.r, self.s, *self.more))
        return {role: (stream, kind) for stream, text in own for role, kind in _pairs(text)}

    @property
    def constants(self) -> dict[str, str]:
        """Every hole's kind of constant."""
        return dict(_pairs(self.holes))


def _pairs(text: str) -> list[tuple[str, str]]:
    return [(name, kind) for name, _, kind in (part.partition(":") for part in text.split())]


_BETWEEN = "{x} BETWEEN {a} - {d} AND {a} + {d}"

EQUALITIES = (
    Shape("eq int", "{x} = {a}", "x:int", "a:int"),
    Shape("eq bigint", "{a} = {x}", "x:bigint", "a:bigint"),
    Shape("eq int bigint", "{x} = {a}", "x:int", "a:bigint"),
    Shape("eq int double", "{x} = {a}", "x:int", "a:double"),
    Shape("eq double", "{x} = {a}", "x:double", "a:double"),
    Shape("eq float double", "{x} = {a}", "x:float", "a:double"),
    Shape("eq string", "{x} = {a}", "x:string", "a:string"),
    Shape("eq two columns", "{x} = {a} AND {y} = {b}", "x:int y:string", "a:int b:string"),
    Shape("eq boolean", "{x} = {a} AND {y} = {b}", "x:bool y:tinyint", "a:bool b:smallint"),
    Shape("eq timestamp", "{x} = {a}", "x:moment", "a:moment"),
    Shape("eq date", "{x} = {a}", "x:date", "a:date"),
    Shape("eq sum", "{x} + {y} = {a}", "x:int y:int", "a:int"),
    Shape("eq both sums", "{x} - {y} = {a} + {c}", "x:bigint y:int", "a:int", "c:int"),
    Shape("eq small widths", "{x} + 1 = {a}", "x:tinyint", "a:smallint"),
    Shape("eq decimal", "{x} = {a}", "x:price", "a:price"),
    Shape("eq decimal int", "{x} = {a}", "x:money", "a:int"),
    Shape("eq decimal double", "{x} = {a}", "x:money", "a:double"),
    Shape("eq binary", "{x} = {a}", "x:bytes", "a:bytes"),
    Shape("eq upper", "UPPER({x}) = UPPER({a})", "x:string", "a:string"),
    Shape("eq part", "SUBSTRING({x}, 1, 1) || {c} = {a} || {c}", "x:string", "a:string", "c:string"),
    Shape("eq and one-sided", "{x} = {a} AND {y} < {b}", "x:string y:int", "a:string b:int"),
)

BANDS = (
    Shape("band between int", _BETWEEN, "x:int", "a:int", "d:width"),
    Shape("band between swapped", "{a} BETWEEN {x} - {d} AND {x} + {e}", "x:int", "a:int", "d:width e:width"),
    Shape("band between bigint", _BETWEEN, "x:bigint", "a:bigint", "d:width"),
    Shape("band between float", _BETWEEN, "x:float", "a:float", "d:decimal"),
    Shape("band between double", _BETWEEN, "x:double", "a:double", "d:double"),
    Shape("band between int decimal", _BETWEEN, "x:int", "a:int", "d:decimal"),
    Shape("band int double", _BETWEEN, "x:int", "a:double", "d:decimal"),
    Shape("band abs", "ABS({x} - {a}) <= {d}", "x:int", "a:int", "d:width"),
    Shape("band abs swapped", "{d} > ABS({a} - {x})", "x:bigint", "a:int", "d:width"),
    Shape("band abs double", "ABS({x} - {a}) < {d}", "x:double", "a:double", "d:double"),
    Shape("band abs float", "ABS({x} - {a}) <= CAST({d} AS FLOAT)", "x:float", "a:float", "d:tenths"),
    Shape("band abs tinyint", "ABS({x} - {a}) <= {d}", "x:tinyint", "a:tinyint", "d:width"),
    Shape("band chain", "{x} >= {a} - {d} AND {x} <= {a} + {d}", "x:int", "a:int", "d:width"),
    Shape("band chain strict", "{x} > {a} - {d} AND {a} + {e} > {x}", "x:double", "a:double", "d:decimal e:decimal"),
    Shape("band differences", "{x} - {a} < {d} AND {a} - {x} <= {e}", "x:int", "a:int", "d:width e:width"),
    Shape("band one difference", "{x} - {a} > -{d} AND {x} - {a} < {e}", "x:bigint", "a:bigint", "d:width e:width"),
    Shape("band off centre", "{x} BETWEEN {a} + {c} AND {a} + {d}", "x:int", "a:int", "c:int d:width"),
    Shape("band sum", "{x} + {y} BETWEEN {a} - {d} AND {a} + {d}", "x:int y:int", "a:int", "d:width"),
    Shape("band sums", "ABS(({x} - {y}) - ({a} + {b})) <= {d}", "x:double y:float", "a:double b:int", "d:decimal"),
    Shape("band between decimal", _BETWEEN, "x:price", "a:price", "d:decimal"),
    Shape("band wide decimal", _BETWEEN, "x:money", "a:money", "d:decimal"),
    Shape("band abs decimal", "ABS({x} - {a}) <= {d}", "x:price", "a:money", "d:decimal"),
    Shape("band decimal int", "{x} - {a} < {d} AND {a} - {x} < {d}", "x:price", "a:int", "d:decimal"),
    Shape("band decimal double", _BETWEEN, "x:price", "a:double", "d:decimal"),
    Shape("band date", _BETWEEN, "x:date", "a:date", "d:width"),
    Shape("band timestamp", _BETWEEN, "x:moment", "a:moment", "d:gap"),
    Shape("band event time", "{st} - {rt} < {d} AND {rt} - {st} <= {e}", holes="d:gap e:gap"),
    Shape("band interval", "ABS({x} - {a}) <= {d}", "x:moment", "a:moment", "d:gap"),
    Shape(
        "band two dimensions",
        _BETWEEN + " AND {y} BETWEEN {b} - {e} AND {b} + {e}",
        "x:int y:float",
        "a:int b:float",
        "d:wide e:wide",
    ),
    Shape(
        "band two abs",
        "ABS({x} - {a}) <= {d} AND ABS({y} - {b}) < {e}",
        "x:double y:double",
        "a:double b:double",
        "d:wide e:wide",
    ),
    Shape("band and eq", "{y} = {b} AND ABS({x} - {a}) <= {d}", "x:int y:string", "a:int b:string", "d:wide"),
    Shape("band and rest", "{y} <> {b} AND " + _BETWEEN, "x:double y:int", "a:double b:int", "d:decimal"),
)

RESIDUALS = (
    Shape("less", "{x} < {a}", "x:int", "a:int"),
    Shape("unequal", "{x} <> {a}", "x:bigint", "a:int"),
    Shape("or", "{x} = {a} OR {y} = {b}", "x:int y:string", "a:int b:string"),
    Shape("or band", "ABS({x} - {a}) < {d} OR {y} < {b}", "x:int y:double", "a:int b:double", "d:width"),
    Shape("not between", "NOT ({x} BETWEEN {a} - {d} AND {a} + {d})", "x:int", "a:int", "d:width"),
    Shape("in", "{x} IN ({a}, {b}, {c})", "x:int", "a:int b:smallint", "c:int"),
    Shape("product", "{x} * {a} > {c}", "x:int", "a:int", "c:int"),
    Shape("quotient", "{x} / {a} >= {c}", "x:int", "a:int", "c:double"),
    Shape("guarded quotient", "{a} <> 0 AND {x} / {a} < {c}", "x:double", "a:int", "c:double"),
    Shape("remainder", "({x} + {a}) % {d} = {c}", "x:bigint", "a:int", "d:divisor c:rest"),
    Shape("remainder by column", "{x} % {a} < {c}", "x:double", "a:double", "c:double"),
    Shape("is null", "{x} IS NULL OR {x} = {a}", "x:string", "a:string"),
    Shape("null-safe", "{x} <=> {a}", "x:double", "a:double"),
    Shape("is not true", "({x} < {a}) IS NOT TRUE AND {y} = {b}", "x:int y:tinyint", "a:int b:tinyint"),
    Shape("booleans", "{x} AND NOT {a} OR {y} = {b}", "x:bool y:int", "a:bool b:int"),
    Shape("string order", "{x} < {a} AND {x} <> {c}", "x:string", "a:string", "c:string"),
    Shape("like", "{x} LIKE {a}", "x:string", "a:pattern"),
    Shape("like and less", "{y} < {b} AND {x} NOT LIKE {a}", "x:string y:int", "a:pattern b:int"),
    Shape("like constant", "{x} LIKE {c} AND {y} < {b}", "x:string y:price", "b:price", "c:pattern"),
    Shape("or like", "{x} LIKE {a} OR {y} = {b}", "x:string y:int", "a:pattern b:int"),
    Shape("concatenated", "{x} || {a} > {c}", "x:string", "a:string", "c:string"),
    Shape("greatest", "GREATEST({x}, {a}) = {c}", "x:string", "a:string", "c:string"),
    Shape("case", "CASE WHEN {x} > {a} THEN {y} ELSE {b} END > {c}", "x:int y:price", "a:int b:int", "c:int"),
    Shape("guarded case", "CASE WHEN {a} > 0 THEN {x} / {a} ELSE {c} END < {d}", "x:int", "a:int", "c:double d:double"),
    Shape(
        "long list",
        "{x} + {a} IN (-9, -8, -7, -6, -5, -4, -3, -2, -1, {c}, 10, 11, 12, 13, 14, 15, 16)",
        "x:int",
        "a:int",
        "c:int",
    ),
    Shape(
        "long list of one",
        "{x} IN ('x', 'y', 'z', 'a', 'c', 'd', 'e', 'f', 'g', 'h', 'i', 'j', 'k', 'l', 'm', 'n', {c}) AND {y} < {b}",
        "x:string y:int",
        "b:int",
        "c:string",
    ),
    Shape("decimal quotient", "{x} / {a} >= {c}", "x:price", "a:price", "c:decimal"),
    Shape("decimal product", "{x} * {a} > {c}", "x:price", "a:money", "c:int"),
    Shape("binary order", "{x} < {a}", "x:bytes", "a:bytes"),
    Shape("date difference", "DATEDIFF({x}, {a}) >= {c}", "x:date", "a:date", "c:int"),
    Shape("one stream alone", "{x} > {c} AND {a} = {d}", "x:int", "a:string", "c:int d:string"),
    Shape("every pair", "TRUE"),
    Shape("negative", "-{x} <= {a} + {c}", "x:int", "a:int", "c:int"),
)

SHAPES = EQUALITIES + BANDS + RESIDUALS
