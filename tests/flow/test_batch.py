"""Tables on admission: what Arrow cannot take is refused by the names of stream and column."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import handfast as hf
from handfast.flow.batch import as_table

TIMES = [datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 1, 2, tzinfo=UTC)]


@pytest.mark.parametrize(
    "values",
    [
        [1, "a"],
        [object(), object()],
        [1j, 2j],
        [2**70, 1],
        [{"a": 1}, {"a": "x"}],
        [[1], ["a"]],
        pd.Categorical([1, "a"]),
        pd.arrays.SparseArray([1, 0]),
        np.array([1, 2], np.longdouble),
    ],
    ids=["mixed", "objects", "complex", "large", "dicts", "lists", "categories", "sparse", "longdouble"],
)
def test_a_pandas_column_that_arrow_cannot_take_is_named(values: Any) -> None:
    frame = pd.DataFrame({"ts": TIMES, "good": [1, 2], "x": values})
    _refused(frame, "Column 'x' of stream 'r' cannot become an Arrow column: ")


@pytest.mark.parametrize(
    "series",
    [
        pl.Series([object(), object()], dtype=pl.Object),
        pl.Series([1, 2], dtype=pl.Int128),
    ],
    ids=lambda series: str(series.dtype),
)
def test_a_polars_column_that_arrow_cannot_take_is_named(series: pl.Series) -> None:
    frame = pl.DataFrame({"ts": TIMES, "good": [1, 2], "x": series})
    _refused(frame, "Column 'x' of stream 'r' cannot become an Arrow column: ")
    _refused(frame.lazy(), "Column 'x' of stream 'r' cannot become an Arrow column: ")


def _refused(data: Any, message: str) -> None:
    other = pa.table({"ts": TIMES})
    with pytest.raises(hf.SpecError) as error:
        hf.join({"r": data, "s": other}, on="TRUE", window="1 s", time="ts")
    assert str(error.value).startswith(message)
    assert not str(error.value).endswith(".")
    spec = hf.JoinSpec(("r", "s"), "TRUE", window="1 s", time="ts", lateness="0 s")
    with (
        hf.session(spec, {"r": other.schema, "s": other.schema}) as session,
        pytest.raises(hf.SpecError) as error,
    ):
        session.push("r", data)
    assert str(error.value).startswith(message)


@pytest.mark.parametrize(
    "values",
    [
        pd.period_range("2026", periods=2, freq="D"),
        pd.interval_range(0, 2),
        pd.to_timedelta([1, 2], unit="s"),
        [Decimal("1.5"), Decimal("2.5")],
        [{1}, {2}],
        np.array([1, 2], np.float16),
        pd.Categorical(["a", None]),
    ],
    ids=["period", "interval", "timedelta", "decimal", "sets", "float16", "categories"],
)
def test_a_pandas_column_that_arrow_can_take_rides_along(values: Any) -> None:
    frame = pd.DataFrame({"ts": TIMES, "x": values})
    found = hf.join({"r": frame, "s": pa.table({"ts": TIMES})}, on="TRUE", window="1 s", time="ts")
    assert pa.Table.from_pandas(frame)["x"].to_pylist() == found["r_x"].to_pylist()


def _twice() -> dict[str, Any]:
    frame = pd.DataFrame({"ts": TIMES, "x": [1, 2], "y": [1, 2]})
    table = pa.table({"ts": TIMES, "x": [1, 2], "y": [1, 2]}).rename_columns(["ts", "x", "x"])
    return {"pandas": frame.set_axis(["ts", "x", "x"], axis=1), "table": table, "batch": table.to_batches()[0]}


@pytest.mark.parametrize("kind", _twice())
def test_a_name_that_stands_twice_is_refused(kind: str) -> None:
    _refused(_twice()[kind], "Stream 'r' has the column 'x' twice; rename one of the two")


def test_names_that_become_the_same_text_are_refused() -> None:
    frame = pd.DataFrame({0: [1, 2], "0": [1, 2]})
    with pytest.raises(hf.SpecError, match="Stream 'r' has the column '0' twice"):
        as_table(frame, "r")


@pytest.mark.parametrize("data", [pd.Series([1, 2]), pl.Series([1, 2]), [{"ts": 1}], None])
def test_what_is_no_table_is_refused(data: Any) -> None:
    with pytest.raises(hf.SpecError, match=r"Stream 'r' is a .*; handfast joins Spark DataFrames, or Arrow, pandas"):
        as_table(data, "r")


def test_large_unsigned_numbers_give_the_order_of_arrival() -> None:
    # by arrival: b, a, c
    numbers = {"a": 2**63, "b": 5, "c": 2**64 - 1}
    rows = pa.table({"ts": [TIMES[0]] * 3, "name": list(numbers), "n": pa.array(numbers.values(), pa.uint64())})
    late = pa.table({"ts": [TIMES[0]], "n": pa.array([2**63 + 1], pa.uint64())})
    found = hf.join(
        {"r": rows, "s": late}, on="TRUE", window={"r": "1 row", "s": "1 row"}, time="ts", order="arrival", sequence="n"
    )
    assert ["a", "c"] == sorted(found["r_name"].to_pylist())
    report = hf.verify(
        {"r": rows, "s": late}, on="TRUE", window="1 row", time="ts", order="arrival", sequence="n", engines=["local"]
    )
    assert report
