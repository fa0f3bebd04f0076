"""What the hardware engine cannot do is refused, with an engine that can; any table rides along."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pyarrow as pa
import pytest

import handfast as hf
from handfast.engines.hardware import verilator, verilog
from handfast.engines.hardware.design import design
from handfast.engines.hardware.engine import prepare
from handfast.flow.batch import schema_of

ROWS = pa.table(
    {
        "ts": pa.array([1, 2, 3], pa.timestamp("s", "UTC")),
        "k": [1, 2, 1],
        "price": [1.5, 2.5, 3.5],
        "name": ["a", None, "c"],
    }
)
ASKED: dict[str, Any] = {"on": "r.k = s.k", "window": "2 rows", "time": "ts", "engine": "hardware"}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"how": "left"}, "gives matches alone, not how='left'; use engine='local' or 'spark'"),
        ({"in_order": True}, "not in_order=True; use engine='local' or 'spark'"),
        ({"on": "r.name = s.name"}, "text.*use engine 'local' or 'spark'"),
        ({"on": "r.price < s.price"}, "floating point.*use engine 'local' or 'spark'"),
        ({"on": hf.predicate(lambda r_k, s_k: r_k == s_k)}, "Python"),
        ({"options": hf.HardwareOptions(cores=2, segment=1), "window": "3 rows"}, "it takes segment=2, or more cores"),
        ({"options": hf.HardwareOptions(cores=1, segment=1), "window": "9 seconds"}, "holds up to 3 tuples"),
        ({"options": hf.HardwareOptions(admission="throttle")}, "gives every match.*'throttle'.*`handfast simulate`"),
        (
            {"options": hf.HardwareOptions(admission="drop", network="tree")},
            "use admission='suspend', or `handfast simulate`",
        ),
    ],
)
def test_what_a_circuit_cannot_do_is_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(hf.UnsupportedError, match=message):
        hf.join({"r": ROWS, "s": ROWS}, **{**ASKED, **changes})


def test_more_than_eight_streams_are_refused() -> None:
    names = "abcdefghi"
    asked = {**ASKED, "on": "a.k = b.k"}
    with pytest.raises(hf.UnsupportedError, match="joins up to 8 streams, not 9; use engine='local' or 'spark'"):
        hf.join(dict.fromkeys(names, ROWS), **asked)


@pytest.mark.parametrize(
    ("names", "algorithm", "message"),
    [
        ("rst", "handshake", "'handshake'.* joins two streams, not 3; leave it out, or take 'circular'"),
        ("rst", "nested_loop", "'nested_loop'.* joins two streams, not 3"),
        ("rs", "circular", "'circular'.* joins three streams and more, not 2; leave it out, or take 'handshake'"),
    ],
)
def test_an_algorithm_for_another_number_of_streams_is_refused(names: str, algorithm: str, message: str) -> None:
    with pytest.raises(hf.UnsupportedError, match=message):
        hf.join(dict.fromkeys(names, ROWS), **ASKED, options=hf.HardwareOptions(algorithm=algorithm))


def test_a_stream_without_rows_gives_an_empty_result_with_its_columns() -> None:
    found = hf.join({"r": ROWS.slice(0, 0), "s": ROWS}, **ASKED)
    assert (0, 9) == found.shape
    assert found.schema == hf.join({"r": ROWS, "s": ROWS}, **{**ASKED, "engine": "local"}).schema


def test_a_ring_with_a_stream_without_rows_gives_an_empty_result_with_its_columns() -> None:
    asked = {**ASKED, "on": "r.k = s.k AND s.k = t.k"}
    tables = {"r": ROWS, "s": ROWS.slice(0, 0), "t": ROWS}
    found = hf.join(tables, **asked)
    assert (0, 13) == found.shape
    assert found.schema == hf.join(tables, **{**asked, "engine": "local"}).schema
    assert "no circuit" in hf.explain(tables, **asked)


def test_columns_of_any_type_ride_along_and_select_chooses() -> None:
    strange = ROWS.append_column("list", pa.array([[1], None, [2, 3]]))
    asked = {**ASKED, "select": "s.list, r.name AS who, match_time"}
    by_circuit = hf.join({"r": ROWS.to_pandas(), "s": strange}, **asked)
    by_threads = hf.join({"r": ROWS, "s": strange}, **{**asked, "engine": "local"})
    key = [("match_time", "ascending"), ("who", "ascending")]
    assert by_threads.schema == by_circuit.schema
    assert by_threads.sort_by(key).to_pylist() == by_circuit.sort_by(key).to_pylist()


@pytest.mark.parametrize(
    ("window", "cores", "segment", "rows", "compares"),
    [
        ("8 rows", 4, None, 100, False),  # as long as the window: position decides
        ("8 rows", 3, None, 100, True),  # 9 slots
        ("8 rows", 4, 3, 100, True),
        ("100 rows", 4, None, 100, False),  # nothing ever expires
        ("8 seconds", 4, None, 100, True),
    ],
)
def test_stamps_travel_only_where_the_chain_is_longer_than_the_window(
    window: str, cores: int, segment: int | None, rows: int, compares: bool
) -> None:
    spec = hf.JoinSpec(("r", "s"), "r.k = s.k", window=window, time="ts")
    join = spec.bind(dict.fromkeys(("r", "s"), schema_of(ROWS.schema)))
    options = hf.HardwareOptions(cores=cores, segment=segment)
    assert compares == design(join, options, [rows, rows], [8, 8]).layout.compares_stamps


@pytest.mark.parametrize(
    ("window", "cores", "message"),
    [
        ("9 seconds", 2, "that of stream 'r' is 9 s, and the chain has 4 slots; .* or a window of 4 rows"),
        ("2 rows", 3, "that of stream 'r' is 2 rows, and the chain has 3 slots"),
    ],
)
def test_a_throttle_is_refused_where_stamps_are_compared(window: str, cores: int, message: str) -> None:
    with pytest.raises(hf.UnsupportedError, match=message):
        hf.explain(
            {"r": ROWS, "s": ROWS},
            **{**ASKED, "window": window},
            options=hf.HardwareOptions(cores=cores, admission="throttle"),
        )


def test_explain_draws_the_circuit_and_gives_its_reasons() -> None:
    said = hf.explain({"r": ROWS, "s": ROWS}, **ASKED, options=hf.HardwareOptions(cores=2))
    words, _, drawn = said.partition("\n\n")
    assert "core 1" in drawn
    assert (
        words
        == """\
join of r and s on hardware
  predicate  r.k = s.k
  windows    r: 2 rows, s: 2 rows
             s meets the last 2 rows of r and r meets the last 2 rows of s
  chain      2 cores in lock step, each with segments in registers: 1 of r and 1 of s
             because the windows hold up to 2 and 2 tuples of these inputs
  scan       immediate: s for a tuple of r, then r for one of s, 1 comparison at a time
             a step takes 7 cycles, and more where results have to wait
  stamps     none are compared
             because what has a slot is what the windows hold
  bits       68 for a tuple of r, 68 for a tuple of s, 4 for a result
             what the predicate reads travels (r.k, s.k), and each tuple's place, which stands for its row
  network    pipelined: buffers of 8 behind every core, then mergers of one register each
             because a result leaves in every cycle, and one that meets no other is out after 1 cycle
  admission  suspend
             all stand still while a buffer has 3 free slots or fewer
  result     r_ts, r_k, r_price, r_name, s_ts, s_k, s_price, s_name, match_time"""
    )


def test_explain_names_the_two_units_and_the_stamps_where_there_are_some() -> None:
    options = hf.HardwareOptions(
        algorithm="nested_loop", segment=9, memory="ram", network="adaptive", comparisons=4, step_every=30
    )
    said = hf.explain({"r": ROWS, "s": ROWS}, **{**ASKED, "on": "TRUE"}, options=options)
    assert "2, each with a whole window in RAM: 9 of r and 9 of s" in said
    assert "both windows at the same time, 4 comparisons at a time in each" in said
    assert "a step takes 6 cycles" in said
    assert "suspend, with a step every 30 cycles" in said
    assert "each core compares them" in said
    assert "a ring of nodes over buffers of 8" in said
    assert "no circuit" in hf.explain({"r": ROWS.slice(0, 0), "s": ROWS}, **ASKED)


@pytest.mark.parametrize(
    ("asked", "choice", "reason"),
    [
        (
            {"admission": "throttle", "network": "tree"},
            "throttle, with a step every 2 cycles",
            "steps are discarded and counted while a buffer behind a core has 3 free slots or fewer, or a core is busy",
        ),
        (
            {"admission": "throttle", "network": "adaptive", "step_every": 9, "margin": 1},
            "throttle, with a step every 9 cycles",
            "while a buffer has 1 free slot or fewer",
        ),
        (
            {"admission": "drop", "network": "tree"},
            "drop",
            "results are dropped from a buffer behind a core and counted where others come",
        ),
    ],
)
def test_explain_says_what_a_circuit_loses(asked: dict[str, Any], choice: str, reason: str) -> None:
    options = hf.HardwareOptions(cores=2, scan="eager", **asked)
    said = hf.explain({"r": ROWS, "s": ROWS}, **ASKED, options=options)
    assert "eager: both segments at the same time, 1 comparison at a time in each" in said
    assert f"admission  {choice}\n" in said
    assert reason in said


def test_explain_says_which_clock_the_cycles_are_of() -> None:
    said = hf.explain({"r": ROWS, "s": ROWS}, **ASKED, options=hf.HardwareOptions(cores=2, merge_clock=3))
    assert "a step takes 21 cycles of the network's clock, which is 3 times faster, and more" in said


@pytest.mark.usefixtures("yosys")
@pytest.mark.parametrize("algorithm", ["handshake", "circular", "stashed"])
def test_columns_may_have_any_name(algorithm: str) -> None:
    columns = {"r": "my col", "s": 'q"t', "t": "ключ"}
    columns = dict(list(columns.items())[: 2 if algorithm == "handshake" else 3])
    tables = {name: ROWS.rename_columns(["ts", column, "price", "name"]) for name, column in columns.items()}
    read = [f"{name}.`{column}`" for name, column in columns.items()]
    on = " AND ".join(f"{one} = {other}" for one, other in pairwise(read))
    job = prepare(
        hf.JoinSpec(tuple(columns), on, window="2 rows", time="ts"),
        tables,
        hf.HardwareOptions(algorithm=algorithm, in_flight=2),
    )
    assert not isinstance(job, pa.Schema)
    verilator.lint(verilog.export(job.design.build()))
