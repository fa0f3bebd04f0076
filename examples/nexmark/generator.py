"""NEXMark's events, made here: persons register, open auctions and bid; each event is a function of seed and number.

Of every 50 events one is a person, three are auctions and 46 are bids, as in NEXMark. So are the habits: some sellers
and some auctions are hot, and an auction may be opened a moment before its seller has registered. Columns that no query
here reads (credit cards, descriptions, addresses of pages) are left out.
"""

import random
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa

STREAMS = ("person", "auction", "bid")
RATE = 500  # events a second

_START = datetime(2026, 1, 31, 12, tzinfo=UTC)
_FIRST_ID = 1000
_ACTIVE, _LEAD = 200, 10  # sellers and bidders are of the latest persons, or of the next ones
_IN_FLIGHT = 100  # auctions that are bid for
_HOT = 20  # every so manieth person is a hot seller, every so manieth auction a hot auction
_TIME = pa.timestamp("us", "UTC")
_SCHEMAS = {
    "person": pa.schema([("id", pa.int64()), ("name", pa.string()), ("city", pa.string()), ("date_time", _TIME)]),
    "auction": pa.schema(
        [
            ("id", pa.int64()),
            ("item", pa.string()),
            ("reserve", pa.int64()),
            ("seller", pa.int64()),
            ("category", pa.int32()),
            ("date_time", _TIME),
            ("expires", _TIME),
        ]
    ),
    "bid": pa.schema([("auction", pa.int64()), ("bidder", pa.int64()), ("price", pa.int64()), ("date_time", _TIME)]),
}
_NAMES = ("Ada", "Bo", "Cleo", "Dan", "Eve", "Finn", "Gus", "Hal")
_CITIES = ("Boise", "Portland", "Bend", "Redmond", "Seattle", "Kent", "Phoenix")
_ITEMS = ("lamp", "chair", "clock", "radio", "globe", "piano")


def tables(events: int, *, seed: int = 8) -> dict[str, pa.Table]:
    """The first events of each kind, in the order of their times."""
    rows: dict[str, list[dict[str, Any]]] = {stream: [] for stream in STREAMS}
    for number in range(events):
        stream, row = _event(number, random.Random(f"{seed}:{number}"))
        rows[stream].append(row)
    return {stream: pa.Table.from_pylist(rows[stream], _SCHEMAS[stream]) for stream in STREAMS}


def _event(number: int, rng: random.Random) -> tuple[str, dict[str, Any]]:
    round_, place = divmod(number, 50)
    now = _START + timedelta(seconds=number / RATE)
    if place == 0:
        person = {"id": _FIRST_ID + round_, "name": rng.choice(_NAMES), "city": rng.choice(_CITIES), "date_time": now}
        return "person", person
    if place <= 3:
        return "auction", {
            "id": _FIRST_ID + 3 * round_ + place - 1,
            "item": rng.choice(_ITEMS),
            "reserve": _price(rng),
            "seller": _person(round_, rng),
            "category": rng.randint(10, 14),
            "date_time": now,
            "expires": now + timedelta(seconds=rng.randint(2, 10)),
        }
    newest = 3 * round_ + 2
    auction = newest // _HOT * _HOT if rng.random() < 0.5 else rng.randint(max(0, newest - _IN_FLIGHT), newest)
    bid = {"auction": _FIRST_ID + auction, "bidder": _person(round_, rng), "price": _price(rng), "date_time": now}
    return "bid", bid


def _person(newest: int, rng: random.Random) -> int:
    if rng.random() < 0.25:
        return _FIRST_ID + newest // _HOT * _HOT
    return _FIRST_ID + rng.randint(max(0, newest - _ACTIVE), newest + _LEAD)


def _price(rng: random.Random) -> int:
    """A price in cents: most are small, some are large."""
    return round(10 ** rng.uniform(2, 6))
