"""What a checkpoint says of the join that wrote it: fields that can be read, and only what must agree."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import pytest

import handfast as hf
from handfast.core.planner import make_plan
from handfast.core.routing.range import RangeRouting
from handfast.engines.spark import operator
from handfast.engines.spark.operator import JoinProcessor
from handfast.engines.spark.pack import SEQUENCER
from handfast.engines.spark.sequence import SequenceProcessor
from handfast.errors import EngineError
from handfast.plan import Plan, values
from handfast.spec import join as joins
from tests.engines.spark import crash_job
from tests.engines.spark.driven import State, Workers, arrivals, output_of, plan
from tests.judges.rows import schemas_of

BOTH = pytest.mark.parametrize("join", ["range", "count"])

# of the joins of `crash_job` over two cores, as they were written when a fingerprint was a hash
OLD = {"range": "0714de18a5790ccfdb4a1b1e1081d466/2", "count": "4eb6fc5b630523f692e1071b9d2373d6/2"}


@pytest.fixture(autouse=True)
def worker(monkeypatch: pytest.MonkeyPatch) -> None:
    Workers(1, monkeypatch).be(0)


def step(asked: Plan, state: State, batch: int) -> None:
    """The operator that reads the inputs, on one batch: a core, or the sequencer where windows count."""
    make = SequenceProcessor if asked.join.stamped else JoinProcessor
    output_of(make(asked), state, arrivals(asked, crash_job.steps()[batch], SEQUENCER))
    operator.forget()


def stored(state: State) -> Any:
    assert state.value is not None
    return json.loads(state.value[0])


@BOTH
def test_the_fingerprint_stands_in_the_state_in_fields(join: str) -> None:
    state = State()
    step(plan(join), state, 0)
    fields = stored(state)[0]
    laid_out = {"layout": "1", "cores": "2", "routing": "range, anchored at r", "routing rule": "1"}
    assert laid_out == {what: fields[what] for what in laid_out}
    assert crash_job.BAND == fields["on"]
    assert "3 s" == fields["window of 's'"]
    assert "id bigint, ts timestamp, a int, b float" in fields["columns of 's'"]
    assert not {"how", "order", "sequence of 'r'", "valid_from of 'r'"} & fields.keys(), "what is not asked for"


@BOTH
def test_a_changed_routing_rule_is_refused_with_what_differs(join: str, monkeypatch: pytest.MonkeyPatch) -> None:
    state = State()
    step(plan(join), state, 0)
    monkeypatch.setattr(RangeRouting, "rule", 2)
    with pytest.raises(EngineError, match=r"written by another join .*\(routing rule was 1, is 2\); go back"):
        step(plan(join), state, 1)


@BOTH
def test_a_changed_layout_is_refused_with_what_differs(join: str, monkeypatch: pytest.MonkeyPatch) -> None:
    state = State()
    step(plan(join), state, 0)
    monkeypatch.setattr(values, "LAYOUT", 2)
    with pytest.raises(EngineError, match=r"\(layout was 1, is 2\)"):
        step(plan(join), state, 1)


@dataclass(frozen=True, slots=True)
class LaterStream(joins.Stream):
    """A stream as a later version may have it, with a field more."""

    colour: str | None = None


LaterStream.__name__ = joins.Stream.__name__


@BOTH
def test_a_new_field_at_its_default_changes_nothing(join: str, monkeypatch: pytest.MonkeyPatch) -> None:
    state = State()
    step(plan(join), state, 0)
    monkeypatch.setattr(joins, "Stream", LaterStream)
    assert "colour=None" in repr(plan(join))
    step(plan(join), state, 1)
    monkeypatch.setattr(joins, "Stream", lambda *args: LaterStream(*args, colour="red"))
    with pytest.raises(EngineError, match=r"\(colour of 'r' was the default, is red; colour of 's'"):
        step(plan(join), state, 2)


def as_before(state: State, join: str) -> None:
    """Make a state what it was before fingerprints had fields."""
    assert state.value is not None
    first, *rest = json.loads(state.value[0])
    written = json.dumps([OLD[join], *rest])
    said = json.dumps({**first, "how": "inner", "lateness of 'r'": "1 s", "sequence of 'r'": "None"})
    value = (written if join == "count" else written.encode(), *state.value[1:-1], said)
    state.value = value


@BOTH
def test_a_fingerprint_of_before_is_known_and_gets_fields(join: str, monkeypatch: pytest.MonkeyPatch) -> None:
    state = State()
    step(plan(join), state, 0)
    as_before(state, join)
    monkeypatch.setattr(joins, "Stream", LaterStream)  # nor does a new field change an old one
    step(plan(join), state, 1)
    assert isinstance(stored(state)[0], dict)


@BOTH
def test_another_join_does_not_pass_for_one_of_before(join: str, monkeypatch: pytest.MonkeyPatch) -> None:
    state = State()
    step(plan(join), state, 0)
    as_before(state, join)
    asked = plan(join).join.spec
    streams = {stream.name: stream.window for stream in asked.streams}
    other = hf.JoinSpec(asked.names, asked.on, window=streams, time="ts", lateness="2 seconds")
    wrong = make_plan(other.bind(schemas_of(crash_job.steps()[0])), 2)
    with pytest.raises(EngineError, match=r"\(lateness of 'r' was 1 s, is 2 s; lateness of 's' was 1 s, is 2 s\)"):
        step(wrong, state, 1)
    monkeypatch.setattr(RangeRouting, "rule", 2)
    with pytest.raises(EngineError, match=r"\(routing rule was 1, is 2\)"):
        step(plan(join), state, 1)
