"""handfast.json: the same join is let through, another one is refused with what differs."""

from __future__ import annotations

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
    assert '"window": "1 s"' in (tmp_path / "new" / "handfast.json").read_text()


@pytest.mark.parametrize(
    ("now", "line"),
    [
        (of(cores=3), "cores was 2, is 3"),
        (of(window={"r": "2 seconds", "s": "1 second"}), "r.window was '1 s', is '2 s'"),
        (of(window="5 rows"), "r.window was '1 s', is '5 rows'"),
        (of(window="1000001 us"), "r.window was '1 s', is '1000001 us'"),
        (of(on="r.k < s.k"), "on was 'r.k = s.k', is 'r.k < s.k'"),
        (of(lateness="0 seconds"), "s.lateness was '1.5 s', is '0 us'"),
        (of(sequence="k"), "r.sequence was nothing, is 'k'"),
        (of(columns={**COLUMNS, "s": "ts timestamp"}), "s.columns was 'ts timestamp, k int', is 'ts timestamp'"),
        (of(names=("s", "r")), "names was ['r', 's'], is ['s', 'r']"),
        (of(window="5 rows", order="arrival"), "order was 'event', is 'arrival'"),
        (of(how="left"), "how was 'inner', is 'left'"),
        (of(in_order=True), "in_order was False, is True"),
        (of(select="r.k"), "select was nothing, is 'r.k'"),
        (of(idle_timeout={"r": None, "s": "90 seconds"}), "s.idle_timeout was nothing, is '1.5 min'"),
        (of(valid_from=datetime(2026, 1, 2)), "r.valid_from was nothing, is '2026-01-02 00:00:00'"),
        (of(valid_to=1_500_001), "s.valid_to was nothing, is '1970-01-01 00:00:01.500001'"),
        (of(apart=True), "refused_rows was 'counted', is 'written'"),
    ],
)
def test_what_differs_is_said(now: Any, line: str) -> None:
    with pytest.raises(hf.SpecError) as error:
        record.check(of(), now, "/a/checkpoint")
    said = str(error.value).splitlines()
    assert "The checkpoint /a/checkpoint was written by another join:" == said[0]
    assert f"  {line}" in said
    assert said[-1].startswith("go back to what it was, or take a new checkpoint and a new sink path")


def test_another_version_of_handfast_may_go_on() -> None:
    assert [] == record.differences({**of(), "handfast": "0.0.1"}, of())


@pytest.mark.parametrize("field", ["how", "in_order", "order", "select"])
def test_a_field_that_a_record_does_not_have_yet_is_at_its_default(field: str) -> None:
    before = {name: value for name, value in of().items() if name != field}
    assert [] == record.differences(before, of())
    asked = {"how": "left", "in_order": True, "order": "arrival", "select": "r.k"}[field]
    now = of(**({field: asked} | ({"window": "5 rows"} if field == "order" else {})))
    assert f"{field} was " in " ".join(record.differences(before, now))


def test_what_is_no_record_is_refused(tmp_path: Path) -> None:
    (tmp_path / "handfast.json").write_text("[]")
    with pytest.raises(hf.SpecError, match="is not what handfast has written there; take a new checkpoint"):
        record.read(tmp_path)
