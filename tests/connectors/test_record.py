"""handfast.json: the same join is let through, another one is refused with what differs."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

import handfast as hf
from handfast.connectors import record

ASKED: dict[str, Any] = {"on": "r.k = s.k", "window": "1 second", "time": "ts", "lateness": "1.5 seconds"}
COLUMNS = {"r": "ts timestamp, k int", "s": "ts timestamp, k int"}


def of(
    cores: int = 2,
    columns: dict[str, str] = COLUMNS,
    names: tuple[str, str] = ("r", "s"),
    apart: bool = False,
    **asked: Any,
) -> Any:
    return record.record_of(hf.JoinSpec(names, **{**ASKED, **asked}), columns, cores, apart=apart)


def test_a_record_is_found_again(tmp_path: Path) -> None:
    assert record.read(tmp_path) is None
    record.write(tmp_path / "new", of())
    assert of() == record.read(tmp_path / "new")
    record.check(record.read(tmp_path / "new"), of(), "checkpoint")
    assert '"window of \'r\'": "1 s"' in (tmp_path / "new" / "handfast.json").read_text()


CHANGES = [
    ({"cores": 3}, "cores was 2, is 3"),
    ({"window": {"r": "2 seconds", "s": "1 second"}}, "window of 'r' was 1 s, is 2 s"),
    ({"window": "5 rows"}, "window of 'r' was 1 s, is 5 rows"),
    ({"window": "1000001 us"}, "window of 'r' was 1 s, is 1000001 us"),
    ({"on": "r.k < s.k"}, "on was r.k = s.k, is r.k < s.k"),
    ({"on": ["r.k = s.k", "r.k > 1"]}, "on was r.k = s.k, is ('r.k = s.k', 'r.k > 1')"),
    ({"lateness": "0 seconds"}, "lateness of 's' was 1.5 s, is 0 us"),
    ({"sequence": "k"}, "sequence of 'r' was the default, is k"),
    ({"columns": {**COLUMNS, "s": "ts timestamp"}}, "columns of 's' was ts timestamp, k int, is ts timestamp"),
    ({"names": ("s", "r")}, "streams was r, s, is s, r"),
    ({"window": "5 rows", "order": "arrival"}, "order was the default, is arrival"),
    ({"how": "left"}, "how was the default, is left"),
    ({"in_order": True}, "in_order was the default, is True"),
    ({"select": "r.k"}, "select was the default, is r.k"),
    ({"idle_timeout": {"r": None, "s": "90 seconds"}}, "idle_timeout of 's' was the default, is 1.5 min"),
    ({"valid_from": datetime(2026, 1, 2)}, "valid_from of 'r' was the default, is 2026-01-02 00:00:00"),
    ({"valid_to": 1_500_001}, "valid_to of 's' was the default, is 1970-01-01 00:00:01.500001"),
    ({"apart": True}, "refused_rows was counted, is written"),
]

# of the join above, as the first versions wrote it
STREAM = {"window": "1 s", "time": "ts", "lateness": "1.5 s", "columns": "ts timestamp, k int"}
UNSAID = dict.fromkeys(("sequence", "valid_from", "valid_to", "idle_timeout"))
OLD = {
    "handfast": "0.1.0",
    "cores": 2,
    "refused_rows": "counted",
    "on": "r.k = s.k",
    "how": "inner",
    "in_order": False,
    "select": None,
    "order": "event",
    "names": ["r", "s"],
    "streams": {"r": STREAM | UNSAID, "s": STREAM | UNSAID},
}


def written(old: dict[str, Any]) -> Any:
    return record.parse(json.dumps(old), "handfast.json")


@pytest.mark.parametrize(("changed", "line"), CHANGES)
@pytest.mark.parametrize("before", [of(), written(OLD)], ids=["now", "of the first versions"])
def test_what_differs_is_said(before: Any, changed: dict[str, Any], line: str) -> None:
    with pytest.raises(hf.SpecError) as error:
        record.check(before, of(**changed), "/a/checkpoint")
    said = str(error.value).splitlines()
    assert "The checkpoint /a/checkpoint was written by another join:" == said[0]
    assert f"  {line}" in said
    assert said[-1].startswith("go back to what it was, or take a new checkpoint and a new sink path")


def test_another_version_of_handfast_may_go_on() -> None:
    assert [] == record.differences({**of(), "handfast": "0.0.1"}, of())


ASKED_THEN: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({}, {}),
    ({"on": ["r.k = s.k", "r.k > 1"]}, {"on": ["r.k = s.k", "r.k > 1"]}),
    ({"how": "left", "in_order": True, "select": "r.k"}, {"how": "left", "in_order": True, "select": "r.k"}),
    (
        {"streams": {"r": STREAM | UNSAID, "s": STREAM | UNSAID | {"valid_to": "1970-01-01 00:00:01.500001"}}},
        {"valid_to": {"s": 1_500_001}},
    ),
    (
        {"streams": {"r": STREAM | UNSAID | {"sequence": "k", "idle_timeout": "1.5 min"}, "s": STREAM | UNSAID}},
        {"sequence": {"r": "k"}, "idle_timeout": {"r": "90 seconds"}},
    ),
]


@pytest.mark.parametrize(("then", "now"), ASKED_THEN)
def test_a_record_of_the_first_versions_is_that_of_the_same_join(then: dict[str, Any], now: dict[str, Any]) -> None:
    assert [] == record.differences(written(OLD | then), of(**now))


@pytest.mark.parametrize("field", ["how", "in_order", "order", "select"])
def test_a_field_that_a_record_does_not_have_yet_is_at_its_default(field: str) -> None:
    before = written({name: value for name, value in OLD.items() if name != field})
    assert [] == record.differences(before, of())
    asked = {"how": "left", "in_order": True, "order": "arrival", "select": "r.k"}[field]
    now = of(**({field: asked} | ({"window": "5 rows"} if field == "order" else {})))
    assert f"{field} was " in " ".join(record.differences(before, now))


def test_what_is_no_record_is_refused(tmp_path: Path) -> None:
    (tmp_path / "handfast.json").write_text("[]")
    with pytest.raises(hf.SpecError, match="is not what handfast has written there; take a new checkpoint"):
        record.read(tmp_path)
