"""Workloads are what they say: the same rows for every cut, the stated rates, never more disorder than the bound."""

from __future__ import annotations

import subprocess
import sys
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from handfast.connectors.generate import KINDS, CellJoin, Equality, Workload, Zipf
from handfast.errors import SpecError

BOTH = pytest.mark.parametrize("stream", ["r", "s"])
PLAIN = settings(deadline=None, derandomize=True)
FAR = 10_000_000_000  # a row number beyond 32 bits

kinds = st.one_of(
    st.builds(CellJoin, domain=st.integers(1, 100_000)),
    st.builds(Equality, match_rate=st.floats(1e-6, 1.0)),
    st.builds(Zipf, keys=st.integers(1, 1_000), exponent=st.floats(0.0, 3.0)),
)
workloads = st.builds(
    Workload,
    kind=kinds,
    seed=st.integers(0, 2**64 - 1),
    rate=st.sampled_from([1, 7, 1_000, 333_333, 3_000_000]),
    start=st.datetimes(datetime(1900, 1, 1), datetime(2100, 1, 1), timezones=st.just(UTC)),
    # As many rows of disorder as stay quick to generate, whatever the rate.
    disorder=st.sampled_from([0, 0, 1, 10, 500]).map(lambda micros: timedelta(microseconds=micros)),
)
slow_workloads = st.builds(
    Workload,
    kind=kinds,
    seed=st.integers(0, 1_000),
    rate=st.sampled_from([1, 7, 100]),
    disorder=st.integers(0, 5_000_000).map(lambda micros: timedelta(microseconds=micros)),
)


def micros(table: pa.Table) -> np.ndarray:
    return table["ts"].cast(pa.int64()).to_numpy()


def disorder(table: pa.Table) -> int:
    """How far, in microseconds, the worst row lies behind the highest time before it."""
    times = micros(table)
    return int((np.maximum.accumulate(times) - times).max())


@PLAIN
@given(workloads | slow_workloads, st.sampled_from(["r", "s"]), st.sampled_from([0, 3, 1_001, FAR]), st.data())
def test_a_stream_is_the_same_however_it_is_cut(workload, stream, start, data):
    stop = start + data.draw(st.integers(0, 300))
    cuts = sorted(data.draw(st.lists(st.integers(start, stop), max_size=4)))
    cuts = [start, *cuts, stop]
    parts = [workload.table(stream, low, high) for low, high in pairwise(cuts)]
    assert workload.table(stream, start, stop) == pa.concat_tables(parts)


@pytest.mark.parametrize("slots", [1, 2, 3])
def test_a_row_alone_is_the_same_as_among_others_where_delays_are_of_few_rows(slots):
    # The fewer rows a delay spans, the further a row can be moved within the bound.
    workload = Workload(Equality(), seed=slots, rate=1_000, disorder=timedelta(milliseconds=slots))
    alone = [workload.table("r", row, row + 1) for row in range(3_000)]
    assert workload.table("r", 0, 3_000) == pa.concat_tables(alone)


@PLAIN
@given(workloads | slow_workloads, st.sampled_from(["r", "s"]))
def test_no_row_arrives_after_one_that_is_more_than_the_bound_younger(workload, stream):
    assert disorder(workload.table(stream, 0, 500)) <= workload.disorder / timedelta(microseconds=1)


@PLAIN
@given(workloads | slow_workloads, st.sampled_from(["r", "s"]))
def test_disorder_moves_rows_and_loses_none(workload, stream):
    ordered = Workload(workload.kind, workload.seed, workload.rate, workload.start)
    arrived = workload.table(stream, 0, 400)
    by_id = arrived.sort_by("id")
    ids = by_id["id"].to_numpy()
    assert len(arrived) == len(np.unique(ids))
    assert ordered.table(stream, 0, int(ids.max()) + 1).take(by_id["id"]) == by_id
    # The 401st row by time arrives after every row that is older by the bound, so those are all here.
    edge = micros(ordered.table(stream, 400, 401))[0] - workload.disorder // timedelta(microseconds=1)
    due = int((micros(ordered.table(stream, 0, 400)) <= edge).sum())
    assert set(range(due)) <= set(ids.tolist())


@BOTH
def test_disorder_comes_near_its_bound(stream):
    workload = Workload(seed=3, rate=100, disorder=timedelta(seconds=5))
    assert 4_500_000 < disorder(workload.table(stream, 0, 5_000)) <= 5_000_000


@BOTH
def test_without_disorder_rows_arrive_by_time_and_every_second_has_as_many_as_the_rate(stream):
    table = Workload(seed=3, rate=700).table(stream, 0, 7_000)
    assert list(range(7_000)) == table["id"].to_pylist()
    assert disorder(table) == 0
    seconds = pc.value_counts(pc.floor_temporal(table["ts"], unit="second")).field("counts")
    assert seconds.to_pylist() == [700] * 10
    assert table["ts"][0].as_py() >= datetime(2020, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize("name", sorted(KINDS))
def test_seeds_and_streams_differ_and_the_same_seed_does_not(name):
    def times(seed: int, stream: str) -> list[int]:
        return micros(Workload.named(name, seed=seed).table(stream, 0, 50)).tolist()

    assert times(1, "r") == times(1, "r")
    assert len({tuple(times(seed, stream)) for seed in (1, 2) for stream in ("r", "s")}) == 4


def test_the_numbers_of_a_seed_never_change():
    workload = Workload.named("celljoin", seed=7, rate=1_000)
    r, s = (workload.table(stream, 1_000, 1_001).to_pylist()[0] for stream in ("r", "s"))
    at = datetime(2020, 1, 1, 0, 0, 1, tzinfo=UTC)
    assert {
        "id": 1_000,
        "ts": at + timedelta(microseconds=652),
        "x": 1798,
        "y": 4938.435546875,
        "z": "arwmskkqsdwqoxwhqcmh",
    } == r
    assert {
        "id": 1_000,
        "ts": at + timedelta(microseconds=735),
        "a": 8508,
        "b": 5189.5322265625,
        "c": 5687.847448720217,
        "d": False,
    } == s


def test_celljoin_has_the_columns_of_the_paper():
    head = [("id", pa.int64()), ("ts", pa.timestamp("us", tz="UTC"))]
    workload = Workload()
    r = pa.schema([*head, ("x", pa.int32()), ("y", pa.float32()), ("z", pa.string())])
    s = pa.schema([*head, ("a", pa.int32()), ("b", pa.float32()), ("c", pa.float64()), ("d", pa.bool_())])
    assert r == workload.schema("r") == workload.table("r", 0, 5).schema
    assert s == workload.schema("s") == workload.table("s", 0, 5).schema
    band = "r.x BETWEEN s.a - 10 AND s.a + 10 AND r.y BETWEEN s.b - 10. AND s.b + 10."
    assert band == workload.on
    assert {20} == set(pc.utf8_length(workload.table("r", 0, 100)["z"]).to_pylist())


@pytest.mark.parametrize(("stream", "column"), [("r", "x"), ("r", "y"), ("s", "a"), ("s", "b"), ("s", "c")])
def test_celljoin_values_are_uniform_from_1_to_the_domain(stream, column):
    values = Workload(seed=11).table(stream, 0, 200_000)[column].to_numpy()
    assert 1 <= values.min() < 2
    assert 9_999 < values.max() <= 10_000
    counts, _ = np.histogram(values, bins=100, range=(1, 10_001))
    deviations = (counts - 2_000) / 2_000**0.5
    assert abs(deviations).max() < 4.5
    assert 50 < (deviations**2).sum() < 150  # chi-square of 99 degrees of freedom: 99 ± 14


def test_celljoin_columns_do_not_follow_each_other():
    r, s = (Workload(seed=11).table(stream, 0, 50_000) for stream in ("r", "s"))
    columns = [r["x"], r["y"], s["a"], s["b"], s["c"], s["d"].cast(pa.int8())]
    correlations = np.corrcoef([column.to_numpy() for column in columns]) - np.eye(len(columns))
    assert abs(correlations).max() < 0.02
    assert abs(pc.mean(s["d"].cast(pa.int8())).as_py() - 0.5) < 0.01


@pytest.mark.parametrize(
    ("workload", "rows"),
    [
        (Workload(CellJoin(domain=10_000), seed=5), 20_000),
        (Workload(CellJoin(domain=100), seed=5), 4_000),
        (Workload(CellJoin(domain=5), seed=5), 500),
        (Workload(CellJoin(domain=1), seed=5), 100),
        (Workload(Equality(match_rate=0.001), seed=5), 20_000),
        (Workload(Equality(match_rate=0.03), seed=5), 4_000),
        (Workload(Equality(match_rate=0.7), seed=5), 4_000),
        (Workload(Equality(match_rate=1.0), seed=5), 500),
        (Workload(Zipf(keys=1_000, exponent=1.0), seed=5), 20_000),
        (Workload(Zipf(keys=50, exponent=0.0), seed=5), 10_000),
        (Workload(Zipf(keys=100_000, exponent=1.5), seed=5), 20_000),
    ],
    ids=lambda value: repr(getattr(value, "kind", value)),
)
def test_pairs_match_as_often_as_stated(workload, rows):
    r, s = workload.table("r", 0, rows), workload.table("s", 0, rows)
    with duckdb.connect() as judge:
        judge.register("r", r)
        judge.register("s", s)
        found = judge.sql(f"SELECT count(*) FROM r, s WHERE {workload.on}").fetchall()[0][0]
    assert workload.match_rate == pytest.approx(found / rows**2, rel=0.08)


def test_celljoin_matches_about_as_often_as_in_the_paper():
    assert Workload().match_rate == pytest.approx(1 / 250_000, rel=0.06)


def test_equality_has_strangers_only_where_no_number_of_keys_gives_the_rate():
    even = Workload(Equality(match_rate=1 / 49)).table("r", 0, 10_000)["key"]
    assert list(range(1, 50)) == sorted(pc.unique(even).to_pylist())
    odd = Workload(Equality(match_rate=0.4))
    keys = pa.concat_arrays([odd.table(stream, 0, 1_000)["key"].combine_chunks() for stream in ("r", "s")])
    strangers = keys.filter(pc.less(keys, 0))
    assert len(strangers) == len(strangers.unique()) > 50


@BOTH
def test_zipf_keys_come_as_often_as_their_weight_says(stream):
    rows, exponent = 200_000, 1.2
    keys = Workload(Zipf(keys=500, exponent=exponent), seed=2).table(stream, 0, rows)["key"].to_numpy()
    weights = np.arange(1, 501) ** -exponent
    expected = rows * weights / weights.sum()
    counts = np.bincount(keys, minlength=501)[1:]
    assert len(counts) == 500
    assert (abs(counts - expected) / expected**0.5).max() < 4.5


@pytest.mark.parametrize("name", sorted(KINDS))
def test_parameters_may_be_text(name):
    spoken = Workload.named(name, seed="7", rate="50", start="2024-02-29T12:00:00+01:00", disorder="1 minute 500 ms")
    at = datetime(2024, 2, 29, 11, tzinfo=UTC)
    assert Workload(KINDS[name](), 7, 50, at, timedelta(seconds=60.5)) == spoken
    assert name == spoken.name


def test_a_kind_takes_its_own_parameters():
    assert CellJoin(domain=50) == Workload.named("celljoin", domain="50").kind
    assert Equality(match_rate=0.25) == Workload.named("equality", match_rate="0.25").kind
    assert Zipf(keys=9, exponent=1.5) == Workload.named("zipf", keys="9", exponent=1.5).kind


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"name": "celljon"}, "No workload is called 'celljon'; did you mean 'celljoin'? (there are celljoin, "),
        ({"domian": 5}, "Workload 'celljoin' has no parameter 'domian'; did you mean 'domain'? (there are domain, "),
        ({"name": "zipf", "match_rate": 0.1}, "Workload 'zipf' has no parameter 'match_rate'"),
        ({"seed": -1}, "A workload's seed must be a whole number from 0 to 18,446,744,073,709,551,615, not -1"),
        ({"seed": "seven"}, "A workload's seed must be a whole number, not 'seven'"),
        ({"seed": 7.5}, "A workload's seed must be a whole number from 0 to"),
        ({"rate": 0}, "A workload's rate must be a whole number from 1 to 1,000,000,000, not 0"),
        ({"domain": True}, "A workload's domain must be a whole number from 1 to 1,000,000,000, not True"),
        ({"name": "equality", "match_rate": 1.5}, "A workload's match_rate must be a number from 1e-12 to 1, not 1.5"),
        ({"name": "equality", "match_rate": "half"}, "A workload's match_rate must be a number, not 'half'"),
        ({"name": "zipf", "exponent": float("nan")}, "A workload's exponent must be a number from 0 to 20, not nan"),
        ({"name": "zipf", "keys": 0}, "A workload's keys must be a whole number from 1 to 10,000,000, not 0"),
        ({"start": "2024-01-01"}, "A workload's start must be a datetime with a time zone, not '2024-01-01 00:00:00'"),
        ({"start": "noon"}, "A workload's start must be a time like '2020-01-01T00:00:00+00:00', not 'noon'"),
        ({"disorder": "2 parsecs"}, "A workload's disorder must be a duration like '10 minutes'"),
        ({"disorder": "-1 s"}, "A workload's disorder must be a timedelta of 0 to 366 days, not '-1 day, 23:59:59'"),
        ({"disorder": 5}, "A workload's disorder must be a timedelta of 0 to 366 days, not '5'"),
    ],
)
def test_a_wrong_parameter_is_named_with_the_rule_and_the_way_out(parameters, message):
    with pytest.raises(SpecError) as error:
        Workload.named(**({"name": "celljoin"} | parameters))
    assert str(error.value).startswith(message)


def test_rows_that_do_not_exist_are_refused():
    workload = Workload()
    with pytest.raises(SpecError, match="A workload has the streams r and s, not 't'"):
        workload.table("t", 0, 1)
    for start, stop in ((-1, 5), (5, 4), (0, 1 << 43)):
        with pytest.raises(SpecError, match=f"there are none from {start} to {stop}"):
            workload.table("r", start, stop)
    with pytest.raises(SpecError, match="ask for fewer at a time, or a lower rate or disorder"):
        Workload(rate=1_000_000, disorder=timedelta(hours=1)).table("r", 0, 1)


def test_workloads_need_no_spark():
    code = "import sys, handfast.connectors.generate; sys.exit('pyspark' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
