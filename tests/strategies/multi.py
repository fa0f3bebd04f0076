"""Predicates over three streams and four."""

from __future__ import annotations

from tests.strategies.shapes import Shape

_BETWEEN = "{x} BETWEEN {a} - {d} AND {a} + {d}"

THREE = (
    Shape("one key", "{x} = {a} AND {a} = {m}", "x:int", "a:int", more=("m:int",)),
    Shape("one key, other types", "{x} = {a} AND {x} = {m}", "x:bigint", "a:int", more=("m:double",)),
    Shape("two keys", "{x} = {a} AND {b} = {m}", "x:string", "a:string b:int", more=("m:int",)),
    Shape("key and band", "{x} = {a} AND ABS({b} - {m}) <= {d}", "x:int", "a:int b:double", "d:wide", ("m:double",)),
    Shape("bands", _BETWEEN + " AND ABS({x} - {m}) <= {d}", "x:int", "a:int", "d:wide", ("m:int",)),
    Shape(
        "triangle",
        "{x} = {a} AND {b} <= {m} AND {n} < {y}",
        "x:string y:int",
        "a:string b:int",
        more=("m:int n:bigint",),
    ),
    Shape("three at once", "{x} + {a} > {m} AND {x} <> {a}", "x:int", "a:int", more=("m:int",)),
    Shape("three at once and a key", "{x} = {a} AND {x} * {b} = {m}", "x:int", "a:int b:int", more=("m:bigint",)),
    Shape("three in an or", "{x} = {a} OR {a} = {m}", "x:int", "a:int", more=("m:smallint",)),
    Shape("unconnected", "{x} = {a} AND {m} > {c}", "x:int", "a:int", "c:int", ("m:int",)),
    Shape("every triple", "TRUE", more=("",)),
    Shape("three strings in order", "{x} < {a} AND {a} <= {m}", "x:string", "a:string", more=("m:string",)),
    Shape("three may be NULL", "{x} <=> {a} AND ({m} IS NULL OR {m} = {x})", "x:int", "a:int", more=("m:int",)),
    Shape("patterns of two", "{x} = {a} AND {b} LIKE {m}", "x:int", "a:int b:string", more=("m:pattern",)),
    Shape(
        "patterns of three",
        "{x} || {a} LIKE {m} AND {y} <= {n}",
        "x:string y:price",
        "a:string",
        more=("m:pattern n:price",),
    ),
    Shape("prices", _BETWEEN + " AND ABS({x} - {m}) <= {d}", "x:price", "a:price", "d:decimal", ("m:money",)),
    Shape("quotient of three", "({x} + {a}) / {m} >= {c}", "x:int", "a:int", "c:double", ("m:int",)),
)
FOUR = (
    Shape("four by one key", "{x} = {a} AND {a} = {m} AND {m} = {o}", "x:int", "a:int", more=("m:int", "o:int")),
    Shape(
        "chain",
        "{x} = {a} AND {b} = {m} AND ABS({n} - {o}) <= {d}",
        "x:int",
        "a:int b:string",
        "d:width",
        ("m:string n:int", "o:int"),
    ),
    Shape("star", "{x} = {a} AND {y} = {m} AND {z} < {o}", "x:int y:string z:int", "a:int", more=("m:string", "o:int")),
    Shape("four at once", "{x} + {a} = {m} + {o}", "x:int", "a:int", more=("m:int", "o:int")),
)
MULTI = THREE + FOUR
