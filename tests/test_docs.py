"""The pages of docs/: the tree is that of src, and an example is what handfast, and Spark itself, make of it."""

from __future__ import annotations

import math
import re
import subprocess
import sys
import tomllib
from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import handfast as hf
from handfast.core.routing.registry import ROUTINGS
from handfast.core.routing.routing import Routing
from handfast.flow.batch import schema_of
from handfast.judge import evaluation
from tests.judges.rows import rows_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROOT = Path(__file__).resolve().parent.parent
SQL = (ROOT / "docs" / "sql.md").read_text(encoding="utf-8")
ARCHITECTURE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
VALUES = {"true": True, "false": False, "NULL": None}


def table(*headings: str) -> list[list[str]]:
    """The cells of all tables of docs/sql.md with these headings."""
    found: list[list[str]] = []
    inside = False
    for line in SQL.splitlines():
        cells = [cell.strip().replace(r"\|", "|") for cell in line.removeprefix("|").removesuffix("|").split(" | ")]
        if not line.startswith("|"):
            inside = False
        elif cells == list(headings):
            inside = True
        elif inside and not line.startswith("|-"):
            found.append(cells)
    return found


def code(cell: str) -> str:
    """What stands in a cell as code."""
    quoted = re.fullmatch(r"(`+) ?(.*?) ?\1", cell)
    assert quoted, f"{cell} is not code"
    return quoted[2]


# --- the two rows ---------------------------------------------------------------------------------------------------

TYPES: dict[str, tuple[pa.DataType, Callable[[str], Any]]] = {
    "timestamp": (pa.timestamp("us", "UTC"), lambda text: datetime.fromisoformat(text).replace(tzinfo=UTC)),
    "timestamp_ntz": (pa.timestamp("us"), datetime.fromisoformat),
    "int": (pa.int32(), int),
    "tinyint": (pa.int8(), int),
    "bigint": (pa.int64(), int),
    "double": (pa.float64(), float),
    "float": (pa.float32(), float),
    "string": (pa.string(), str),
    "boolean": (pa.bool_(), "true".__eq__),
    "date": (pa.date32(), date.fromisoformat),
    "decimal(10,2)": (pa.decimal128(10, 2), Decimal),
    "decimal(38,18)": (pa.decimal128(38, 18), Decimal),
    "binary": (pa.binary(), bytes.fromhex),
    "array<int>": (pa.list_(pa.int32()), str),
}


def one_row_tables() -> dict[str, pa.Table]:
    """The two rows that the examples are about."""
    rows: dict[str, dict[str, pa.Array]] = {"r": {}, "s": {}}
    for name, kind, *values in table("column", "type", "in `r`", "in `s`"):
        arrow, read = TYPES[kind]
        for stream, value in zip(rows, values, strict=True):
            rows[stream][code(name)] = pa.array([None if value == "NULL" else read(value)], arrow)
    return {stream: pa.table(columns) for stream, columns in rows.items()}


TABLES = one_row_tables()
ASKED: dict[str, Any] = {"window": "1 hour", "time": "ts"}
EXAMPLES = [(code(condition), VALUES[value]) for condition, value, _ in table("condition", "is", "because")]
REFUSED = [(code(condition), code(error)) for condition, error, _ in table("condition", "error", "way out")]
FOUND = [(code(condition), found) for condition, found in table("condition", "found")]
COMPILED = [code(cell) for (cell,) in table("compiled")]
FILTERED = [code(cell) for cell, _ in table("filter", "after")]
FAILURES = ("ARITHMETIC_OVERFLOW", "BY_ZERO", "CAST_OVERFLOW", "NUMERIC_VALUE_OUT_OF_RANGE")


def test_the_examples_were_found() -> None:
    assert (18, 18) == (len(TABLES["r"].column_names), len(table("column", "type", "in `r`", "in `s`")))
    assert math.isnan(TABLES["r"]["nan"][0].as_py())
    assert len(EXAMPLES) > 60
    assert len(REFUSED) > 10
    assert len(FOUND) > 10
    assert len(COMPILED) > 15
    assert len(FILTERED) > 5
    assert {True, False, None} == {value for _, value in EXAMPLES}


@pytest.mark.parametrize(("condition", "value"), EXAMPLES)
def test_an_example_is_what_the_page_says(condition: str, value: bool | None) -> None:
    bound = hf.JoinSpec(("r", "s"), condition, **ASKED).bind({n: schema_of(t.schema) for n, t in TABLES.items()})
    assert value is evaluation.evaluate(bound.predicate, [rows_of(TABLES["r"])[0], rows_of(TABLES["s"])[0]])
    assert (value is True) == len(hf.join(TABLES, on=condition, **ASKED))


@pytest.mark.spark
def test_spark_itself_says_the_same(spark: SparkSession) -> None:
    from pyspark.errors import PySparkException

    for name, rows in TABLES.items():
        spark.createDataFrame(rows).createOrReplaceTempView(name)
    differ = []
    for condition, value in EXAMPLES:
        try:
            said = spark.sql(f"SELECT {condition} AS said FROM r CROSS JOIN s").collect()[0].said
        except PySparkException as error:
            assert any(failure in str(error) for failure in FAILURES), f"{condition}: {error}"
            said = None
        if said is not value:
            differ.append((condition, value, said))
    for name in TABLES:
        spark.catalog.dropTempView(name)
    assert [] == differ


@pytest.mark.parametrize(("condition", "message"), REFUSED)
def test_a_refusal_is_what_the_page_says(condition: str, message: str) -> None:
    with pytest.raises(hf.SpecError) as error:
        hf.join(TABLES, on=condition, **ASKED)
    assert re.fullmatch(re.escape(message).replace("…", ".*"), str(error.value)), str(error.value)


@pytest.mark.parametrize(("condition", "found"), FOUND)
def test_what_is_found_is_what_the_page_says(condition: str, found: str) -> None:
    assert f"  = {found}" in hf.explain(TABLES, on=condition, **ASKED)


@pytest.mark.parametrize("condition", COMPILED)
def test_what_the_page_calls_compiled_never_falls_back(condition: str) -> None:
    assert "\n  filter " not in hf.explain(TABLES, on=condition, **ASKED)


@pytest.mark.parametrize("condition", FILTERED)
def test_what_falls_back_is_said_with_its_reason(condition: str) -> None:
    explained = hf.explain(TABLES, on=condition, **ASKED)
    assert 1 == explained.count("\n  filter ")
    assert 1 == explained.count("because no kernel says")


def test_the_example_in_python_runs_as_the_page_has_it() -> None:
    [example] = re.findall(r"```python\n(.*?)```", SQL, re.DOTALL)
    *before, last = example.strip().splitlines()
    scope: dict[str, Any] = {"hf": hf, **TABLES}
    exec("\n".join(before), scope)  # noqa: S102 — our own page
    assert 1 == len(eval(last, scope))  # noqa: S307


@pytest.mark.parametrize("literal", [code(part) for cell, _ in table("literal", "type") for part in cell.split(", ")])
def test_every_literal_can_be_written(literal: str) -> None:
    assert 1 == len(hf.join(TABLES, on=f"{literal} <=> {literal}", **ASKED))


# --- the tree -------------------------------------------------------------------------------------------------------


def test_the_tree_is_that_of_the_source() -> None:
    printed = subprocess.run(
        [sys.executable, "scripts/architecture.py"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    assert f"```text\n{printed}```\n<!-- end of tree -->" in ARCHITECTURE, (
        "the tree in docs/architecture.md is out of date: python scripts/architecture.py --write"
    )


def test_the_chain_of_imports_is_that_of_the_contract() -> None:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"][
        "contracts"
    ]
    layers = next(own["layers"] for own in contracts if own["name"] == "Imports go downwards only")
    named = [[name.strip("()") for name in layer.split(" | ")] for layer in layers]
    here = {path.stem for path in (ROOT / "src" / "handfast").iterdir()}
    chain = " → ".join(", ".join(name for name in names if name in here) for names in named)
    assert f"`{chain}`" in " ".join(ARCHITECTURE.split())


@pytest.mark.parametrize("name", sorted(set(re.findall(r"`([a-z_/]+\.py)`", ARCHITECTURE))))
def test_every_file_that_the_page_names_is_there(name: str) -> None:
    assert list((ROOT / "src" / "handfast").rglob(name)) or (ROOT / name).exists()


@pytest.mark.parametrize("routing", ROUTINGS, ids=lambda routing: routing.name)
def test_every_routing_has_its_line(routing: Routing) -> None:
    assert f"\n| {routing.name} | " in ARCHITECTURE


@pytest.mark.parametrize("page", sorted(path.name for path in (ROOT / "docs").glob("*.md")))
def test_every_link_leads_somewhere(page: str) -> None:
    targets = re.findall(r"\]\(([^)#]+)\)", (ROOT / "docs" / page).read_text(encoding="utf-8"))
    assert [] == [target for target in targets if "://" not in target and not (ROOT / "docs" / target).exists()]
