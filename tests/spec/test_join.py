"""A join is checked when it is made and when it meets its streams; every error names the way out."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from handfast.errors import SpecError
from handfast.spec.join import JoinSpec
from handfast.spec.schema import Schema
from handfast.spec.types import FLOAT, INT32, STRING, TIMESTAMP, TIMESTAMP_NTZ
from handfast.spec.window import TimeWindow

TRADES = Schema((("ts", TIMESTAMP), ("symbol", STRING), ("price", FLOAT), ("Volume", INT32)))
QUOTES = Schema((("ts", TIMESTAMP), ("symbol", STRING), ("bid", FLOAT)))


def spec(on: str = "r.symbol = s.symbol", **more: Any) -> JoinSpec:
    return JoinSpec(("r", "s"), on, **{"window": "10 minutes", "time": "ts", **more})


def test_one_value_serves_all_streams_or_each_has_its_own() -> None:
    one = spec(window="1 second", lateness="2 seconds")
    each = spec(
        window={"s": TimeWindow(1_000_000), "r": "1000 ms"},
        time={"r": "ts", "s": "ts"},
        lateness={"r": "2 s", "s": "2 s"},
    )
    assert one == each
    midnight = datetime(2020, 1, 1, tzinfo=UTC)
    bounded = spec(valid_from=midnight, valid_to={"r": 1_577_840_400_000_000, "s": None})
    assert [1_577_836_800_000_000] * 2 == [stream.valid_from for stream in bounded.streams]
    assert (1_577_840_400_000_000, spec().streams[1].valid_to) == tuple(stream.valid_to for stream in bounded.streams)
    assert hash(one) == hash(each)


@pytest.mark.parametrize("keyword", ["lateness", "sequence", "idle_timeout", "valid_from", "valid_to"])
def test_what_a_stream_need_not_have_may_be_left_out(keyword: str) -> None:
    value: Any = {"lateness": "2 s", "sequence": "symbol", "idle_timeout": "2 s"}.get(keyword, 5)
    only = spec(**{keyword: {"s": value}})
    assert only == spec(**{keyword: {"r": None, "s": value}})
    assert (spec().streams[0], spec(**{keyword: value}).streams[1]) == only.streams


SPARKS_NAMES = {
    "inner": ("inner", "INNER"),
    "left": ("left", "leftouter", "left_outer", "Left_Outer"),
    "right": ("right", "rightouter", "right_outer", "RIGHT"),
    "full": ("full", "outer", "fullouter", "full_outer", "Outer"),
    "semi": ("semi", "leftsemi", "left_semi", "LEFT_SEMI"),
    "anti": ("anti", "leftanti", "left_anti", "LeftAnti"),
}


@pytest.mark.parametrize(("how", "name"), [(how, name) for how, names in SPARKS_NAMES.items() for name in names])
def test_a_join_may_be_called_as_spark_calls_it(how: str, name: str) -> None:
    assert spec(how=how) == spec(how=name)
    assert how == spec(how=name).how


@pytest.mark.parametrize("on", [7, ["r.a = s.b", 7], {"r": "a"}])
def test_a_predicate_that_is_no_text_is_refused_with_what_it_is(on: Any) -> None:
    with pytest.raises(
        SpecError, match=r"on must be SQL text over stream\.column like 'r\.x = s\.x', .*, not (7|\{'r')"
    ):
        spec(on)


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"window": {"r": "1 s"}}, "window says nothing for stream 's'; give one for every stream, or one for all"),
        ({"window": {"r": "1 s", "s": "1 s", "t": "1 s"}}, "window names a stream 't' that the join does not have"),
        ({"time": {"r": "ts", "S": "ts"}}, "time names a stream 'S' that the join does not have; did you mean 's'?"),
        ({"time": ""}, "time must name the event-time column of stream 'r', not ''"),
        ({"lateness": "-1 s"}, "lateness of stream 'r' cannot be negative: '-1 s'"),
        ({"lateness": "soon"}, "lateness of stream 'r' must be a duration like '10 minutes'"),
        ({"valid_from": "2020-01-01"}, "valid_from of stream 'r' must be a datetime or whole microseconds since 1970"),
        ({"valid_to": 10**18}, "valid_to of stream 'r' must lie in the years 1 to 9999"),
        ({"valid_from": {"r": 3, "s": 2}, "valid_to": 2}, "valid_from of stream 'r' is after its valid_to"),
        ({"idle_timeout": "0 s"}, "idle_timeout of stream 'r' must be longer than nothing, not '0 s'"),
        ({"order": "random"}, "order='random' is not an order that handfast knows; it knows event, arrival"),
        (
            {"order": "arrival", "window": {"r": "5 rows", "s": "1 s"}},
            "order='arrival' goes with count windows only, and the window of stream 's' is 1 s; write '500 rows'",
        ),
        ({"how": "cross"}, "how='cross' is not a join that handfast knows; it knows inner, left, right, full"),
        ({"how": "lefft"}, "how='lefft' is not a join that handfast knows; did you mean 'left'?"),
        ({"how": "left", "in_order": "yes"}, "in_order is True or False, not 'yes'"),
    ],
)
def test_what_does_not_fit_the_streams_is_refused(more: dict[str, Any], message: str) -> None:
    with pytest.raises(SpecError) as error:
        spec(**more)
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("streams", "message"),
    [
        (("r",), "takes two streams or more, not 1"),
        (("r", "R"), "named twice"),
        (("r", "my stream"), "must be a plain identifier like 'r' or 'trades', not 'my stream'"),
    ],
)
def test_the_streams_have_two_plain_names(streams: tuple[str, ...], message: str) -> None:
    with pytest.raises(SpecError, match=message):
        JoinSpec(streams, "TRUE", window="1 s", time="ts")


@pytest.mark.parametrize(
    ("on", "message"),
    [
        ("r.symbl = s.symbol", "Stream 'r' has no column 'symbl'; did you mean 'symbol'? (it has ts, symbol, price, "),
        ("r.symbol = s.prise", "Stream 's' has no column 'prise'"),
        ("trade.symbol = s.symbol", "names a stream 'trade' that the join does not have (it has r, s)"),
        ("symbol = s.symbol", "'symbol' is in several streams; name its stream, one of r, s"),
        ("r.symbol = nothing", "'nothing' is in no stream; name its stream"),
        ("r.price", "must be true or false, but 'r.price' is of type float"),
        ("r.symbol = s.bid", "compares string with float"),
    ],
)
def test_a_slip_of_the_pen_is_named_with_the_nearest_column(on: str, message: str) -> None:
    with pytest.raises(SpecError) as error:
        spec(on).bind({"r": TRADES, "s": QUOTES})
    assert message in str(error.value)


def test_columns_are_found_whatever_the_case_and_without_their_stream_if_that_is_clear() -> None:
    exact = spec("r.Volume > 3 AND r.price = s.bid").bind({"r": TRADES, "s": QUOTES})
    loose = spec("VOLUME > 3 AND R.Price = bid").bind({"r": TRADES, "s": QUOTES})
    assert exact.predicate == loose.predicate


def test_bounded_inputs_arrive_in_no_order_but_that_of_a_column() -> None:
    with pytest.raises(SpecError, match=r"bounded inputs need a column that has it: sequence="):
        spec(window="5 rows", order="arrival").check_bounded()
    spec(window="5 rows", order="arrival", sequence="symbol").check_bounded()
    with pytest.raises(SpecError, match="the sequence columns must be of one type"):
        spec(window="5 rows", order="arrival", sequence={"r": "price", "s": "symbol"}).bind({"r": TRADES, "s": QUOTES})


def test_the_time_column_is_a_timestamp_of_one_kind() -> None:
    with pytest.raises(SpecError, match="time column 'price' of stream 'r' is of type float, not a timestamp"):
        spec(time={"r": "price", "s": "ts"}).bind({"r": TRADES, "s": QUOTES})
    with pytest.raises(SpecError, match="no column 'tss'; did you mean 'ts'"):
        spec(time="tss").bind({"r": TRADES, "s": QUOTES})
    naive = Schema((("ts", TIMESTAMP_NTZ), ("symbol", STRING)))
    with pytest.raises(SpecError, match="all be with time zone or all without"):
        spec().bind({"r": TRADES, "s": naive})


def test_a_column_stands_once_in_its_stream_and_once_in_the_result() -> None:
    with pytest.raises(SpecError, match="Column 'x' stands twice"):
        Schema((("x", INT32), ("x", INT32)))
    schema = Schema((("ts", TIMESTAMP), ("b_c", INT32)))
    other = Schema((("ts", TIMESTAMP), ("c", INT32)))
    with pytest.raises(SpecError, match="would be called 'a_b_c'"):
        JoinSpec(("a", "a_b"), "TRUE", window="1 s", time="ts").bind({"a": schema, "a_b": other})


def test_the_result_has_every_column_and_the_time_of_the_match() -> None:
    bound = spec().bind({"s": QUOTES, "r": TRADES})
    expected = ("r_ts", "r_symbol", "r_price", "r_Volume", "s_ts", "s_symbol", "s_bid", "match_time")
    assert expected == bound.output_names
    assert bound.time_type == TIMESTAMP


def test_the_fingerprint_changes_with_the_join_and_with_the_columns() -> None:
    prints = [
        spec().bind({"r": TRADES, "s": QUOTES}).fingerprint,
        spec(window="11 minutes").bind({"r": TRADES, "s": QUOTES}).fingerprint,
        spec("r.symbol = s.symbol ").bind({"r": TRADES, "s": QUOTES}).fingerprint,
        spec().bind({"r": QUOTES, "s": QUOTES}).fingerprint,
    ]
    assert [1, 1, 1, 1] == [prints.count(own) for own in prints]
    assert spec().bind({"r": TRADES, "s": QUOTES}).fingerprint == prints[0]


def test_the_windows_read_as_an_interval() -> None:
    bound = spec(window={"r": "10 minutes", "s": "30 seconds"}).bind({"r": TRADES, "s": QUOTES})
    assert bound.interval() == "s.ts − r.ts in (−30 s, +10 min)"
