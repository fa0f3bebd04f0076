"""What a user calls, on tables in this process."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import handfast as hf

START = datetime(2026, 1, 1, tzinfo=UTC)
R = pa.table(
    {
        "ts": pa.array([START + timedelta(seconds=k) for k in range(6)], pa.timestamp("us", "UTC")),
        "sym": ["a", "b", "a", None, "b", "a"],
        "price": [10.0, 20.0, 11.0, 12.0, float("nan"), 10.4],
    }
)
S = pa.table(
    {
        "at": pa.array([START + timedelta(seconds=k, milliseconds=500) for k in range(6)], pa.timestamp("us", "UTC")),
        "sym": ["a", "a", "b", "b", "a", None],
        "price": [10.2, 10.9, 20.1, 20.0, 10.1, 10.0],
    }
)
ASKED: dict[str, Any] = {
    "on": "r.sym = s.sym AND ABS(r.price - s.price) <= 0.5",
    "window": {"r": "3 seconds", "s": "2 seconds"},
    "time": {"r": "ts", "s": "at"},
}


def _pairs(table: pa.Table) -> list[tuple[datetime, datetime]]:
    return sorted(zip(table["r_ts"].to_pylist(), table["s_at"].to_pylist(), strict=True))


def test_the_result_by_hand() -> None:
    def at(seconds: float) -> datetime:
        return START + timedelta(seconds=seconds)

    # r at 0 (a 10.0) meets s at 0.5 (a 10.2); r at 1 (b 20.0) meets s at 2.5 (b 20.1) and 3.5 (b 20.0); r at 2 (a 11.0)
    # meets s at 1.5 (a 10.9); r at 5 (a 10.4) meets s at 4.5 (a 10.1) but no longer, after 2 s, the one at 1.5
    expected = [(at(0), at(0.5)), (at(1), at(2.5)), (at(1), at(3.5)), (at(2), at(1.5)), (at(5), at(4.5))]
    result = hf.join({"r": R, "s": S}, **ASKED)
    assert expected == _pairs(result)
    assert ["r_ts", "r_sym", "r_price", "s_at", "s_sym", "s_price", "match_time"] == result.schema.names
    assert sorted(max(pair) for pair in expected) == sorted(result["match_time"].to_pylist())


@pytest.mark.parametrize("cores", [1, 2, 3, 7])
def test_arrow_pandas_and_polars_in_any_mixture(cores: int) -> None:
    expected = _pairs(hf.join({"r": R, "s": S}, **ASKED))
    shapes = {
        "arrow": lambda t: t,
        "batch": lambda t: t.to_batches()[0],
        "pandas": lambda t: t.to_pandas(),
        "categories": lambda t: t.to_pandas().astype({"sym": "category"}),
        "polars": pl.from_arrow,
        "lazy": lambda t: pl.from_arrow(t).lazy(),
    }
    for first, make in shapes.items():
        for second, other in shapes.items():
            found = hf.join({"r": make(R), "s": other(S)}, **ASKED, options=hf.LocalOptions(cores=cores))
            assert expected == _pairs(found), (first, second)


def test_a_join_spec_is_the_same_thing_as_a_value() -> None:
    spec = hf.JoinSpec(("r", "s"), **ASKED)
    assert _pairs(hf.join({"r": R, "s": S}, **ASKED)) == _pairs(hf.join({"r": R, "s": S}, spec))
    assert spec == hf.JoinSpec(("r", "s"), **ASKED)


def test_times_finer_than_a_microsecond_are_floored() -> None:
    nanos = pa.table({"ts": pa.array([1_999, -1], pa.timestamp("ns", "UTC"))})
    micros = pa.table({"ts": pa.array([1, -1], pa.timestamp("us", "UTC"))})
    found = hf.join({"r": nanos, "s": micros}, on="TRUE", window=hf.TimeWindow(1), time="ts")
    assert [-1, 1] == sorted(found["match_time"].cast(pa.int64()).to_pylist())


def test_payload_of_any_type_rides_along() -> None:
    strange = pa.table(
        {
            "ts": R["ts"].slice(0, 2),
            "list": [[1, 2], None],
            "struct": [{"a": 1, "b": None}, {"a": None, "b": "x"}],
            "map": pa.array([[("k", 1)], []], pa.map_(pa.string(), pa.int32())),
            "binary": [b"\x00", None],
            "decimal": pa.array([1, None], pa.decimal128(20, 2)),
            "unsigned": pa.array([2**64 - 1, 0], pa.uint64()),
        }
    )
    found = hf.join({"r": strange, "s": R}, on="TRUE", window=hf.TimeWindow(1), time="ts")
    for name in strange.schema.names:
        assert strange[name].to_pylist() == found.sort_by("match_time")[f"r_{name}"].to_pylist()


def test_empty_inputs_give_an_empty_result_with_its_columns() -> None:
    found = hf.join({"r": R.slice(0, 0), "s": S}, **ASKED)
    assert (0, 7) == found.shape


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"on": None}, "needs a predicate"),
        ({"window": None}, "needs windows"),
        ({"time": None}, "needs the event-time column"),
        ({"on": "r.sym = s.symb"}, "did you mean 'sym'"),
        ({"on": "r.sym ="}, "not valid SQL at line 1"),
        ({"on": "r.price"}, "must be true or false"),
        ({"on": "r.sym = s.price"}, "compares string with double"),
        ({"window": "0 seconds"}, "longer than nothing"),
        ({"window": "ten minutes"}, "must be a duration like"),
        ({"window": {"r": "1 s"}}, "says nothing for stream 's'"),
        ({"window": {"r": "1 s", "t": "1 s"}}, "names a stream 't'"),
        ({"time": "ts"}, "Stream 's' has no column 'ts'; did you mean 'at'"),
        ({"time": {"r": "price", "s": "at"}}, "of type double, not a timestamp"),
        ({"how": "cross"}, "how='cross'"),
    ],
)
def test_errors_say_what_is_wrong(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(hf.SpecError, match=message.replace("(", r"\(")):
        hf.join({"r": R, "s": S}, **{**ASKED, **changes})


def test_errors_of_inputs() -> None:
    with pytest.raises(hf.SpecError, match="takes two streams or more, not 1"):
        hf.join({"r": R}, **ASKED)
    with pytest.raises(hf.SpecError, match="how='left' joins two streams, not 3; join all but one with"):
        hf.join({"r": R, "s": S, "t": S}, **{**ASKED, "time": {"r": "ts", "s": "at", "t": "at"}}, how="left")
    with pytest.raises(hf.SpecError, match=r"Stream 's' is a builtins\.list"):
        hf.join({"r": R, "s": [1]}, **ASKED)
    with pytest.raises(hf.SpecError, match=r"A join has no widnow=…; did you mean window=…\?"):
        hf.explain({"r": R, "s": S}, **ASKED, widnow="1 s")
    with pytest.raises(hf.SpecError, match="must be a mapping"):
        hf.join([R, S], **ASKED)  # type: ignore[arg-type]
    with pytest.raises(hf.SpecError, match="given twice"):
        hf.join({"r": R, "s": S}, hf.JoinSpec(("r", "s"), **ASKED), on="TRUE")
    with pytest.raises(hf.SpecError, match="joins r, s, but the inputs are r, q"):
        hf.join({"r": R, "q": S}, hf.JoinSpec(("r", "s"), **ASKED))
    with pytest.raises(hf.SpecError, match="with time zone or all without"):
        naive = pd.DataFrame({"at": [datetime(2026, 1, 1)], "sym": ["a"], "price": [1.0]})
        hf.join({"r": R, "s": naive}, **ASKED)
    with pytest.raises(hf.SpecError, match="positive number, not 0"):
        hf.LocalOptions(cores=0)


def test_the_engine_is_chosen_by_the_inputs_or_by_name() -> None:
    expected = _pairs(hf.join({"r": R, "s": S}, **ASKED))
    assert expected == _pairs(hf.join({"r": R, "s": S}, **ASKED, engine="local"))
    with pytest.raises(hf.SpecError, match="engine='gpu' is not an engine; it is one of 'local', 'spark', 'hardware'"):
        hf.join({"r": R, "s": S}, **ASKED, engine="gpu")
    with pytest.raises(hf.SpecError, match=r"engine='spark' joins Spark DataFrames.*spark\.createDataFrame"):
        hf.join({"r": R, "s": S}, **ASKED, engine="spark")
    with pytest.raises(hf.SpecError, match="HardwareOptions are for the hardware engine; write engine='hardware'"):
        hf.join({"r": R, "s": S}, **ASKED, options=hf.HardwareOptions())
    with pytest.raises(hf.SpecError, match="SparkOptions are for Spark DataFrames"):
        hf.join({"r": R, "s": S}, **ASKED, options=hf.SparkOptions())
    with pytest.raises(hf.SpecError, match=r"batch_join=…\) is one of 'cores', 'native', or None, not 'fast'"):
        hf.SparkOptions(batch_join="fast")
    with pytest.raises(hf.SpecError, match=r"options must be hf\.HardwareOptions"):
        hf.join({"r": R, "s": S}, **ASKED, engine="hardware", options=hf.LocalOptions())
    frame = type("DataFrame", (), {"__module__": "pyspark.sql.dataframe"})
    for engine in ("local", "hardware"):
        with pytest.raises(hf.SpecError, match=r"the inputs are Spark DataFrames.*toArrow\(\)"):
            hf.join({"r": frame(), "s": frame()}, **ASKED, engine=engine)
