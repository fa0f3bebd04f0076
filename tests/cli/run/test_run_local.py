"""Pipelines from file to file without Spark: the matches, every row accounted for, errors that help."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import handfast as hf
import handfast.testing as hft
from handfast.connectors.pipeline import Pipeline
from tests.cli.run.conftest import JOIN, SOURCE, Write
from tests.cli.run.files import (
    CHECKPOINT,
    FILES,
    LATE,
    LOCAL,
    NOW,
    PARQUET,
    REFUSED,
    REJECTED,
    WANTED,
    WIDE,
    WORKLOAD,
    check_refused,
    cli,
    right,
    write_files,
)

if TYPE_CHECKING:
    pass


def test_a_workload_without_spark(write: Write, tmp_path: Path) -> None:
    code, said, _ = cli("run", write(LOCAL, NOW, sink='format = "parquet"\npath = "out"'))
    assert 0 == code
    found = pq.read_table(tmp_path / "out")
    hft.assert_same(found, right(300))
    assert [f"step {k}: {100 * k} of r, {100 * k} of s in, " for k in (1, 2, 3)] == [
        line[: len(f"step 1: {100 * k} of r, {100 * k} of s in, ")] for k, line in enumerate(said[:3], 1)
    ]
    assert said[-1].startswith(f"done: 300 of r, 300 of s in, {len(found):,} matches out; watermark 2020-")


def test_files_without_spark_as_a_stream(write: Write, tmp_path: Path) -> None:
    write_files(tmp_path)
    file = write(LOCAL, NOW, CHECKPOINT, sources=FILES, join=WIDE, sink='format = "parquet"\npath = "out"')
    code, said, _ = cli("run", file)
    assert (0, "the local engine keeps no checkpoint: it joins from the start") == (code, said[0])
    hft.assert_same(pq.read_table(tmp_path / "out"), WANTED)
    counts = "; 1 late; 2 rejected; 1 corrupt"
    assert f"done: 4 of r, 4 of s in, 3 matches out; watermark 2026-01-01 00:00:29{counts}" == said[-1]


def test_refused_rows_without_spark_go_to_places_of_their_own(write: Write, tmp_path: Path) -> None:
    write_files(tmp_path)
    file = write(LOCAL, NOW, sources=FILES, join=WIDE + LATE + REJECTED, sink=PARQUET)
    code, said, _ = cli("run", file)
    assert (0, REFUSED) == (code, said[-1])
    hft.assert_same(pq.read_table(tmp_path / "out"), WANTED)
    check_refused(tmp_path)
    code, _, error = cli("run", write(LOCAL, NOW, sources=FILES, join=WIDE + LATE))
    assert 2 == code
    assert f"[late_rows] writes to {tmp_path}/late/r, and something is there already" in error


THREE = """
[join]
on = "r.key = s.key AND s.key = t.key"
window = { r = "1 second", s = "100 rows", t = "1 second" }
time = "ts"
lateness = "1 second"
in_order = true
select = "r.key AS k, s.id AS s_id, t.id AS t_id, match_time"
idle_timeout = { t = "1 hour" }
valid_from = { r = 2020-01-01T00:00:01Z }
valid_to = 2020-01-01T00:00:04
"""


def test_three_streams_and_every_key_of_a_join(write: Write, tmp_path: Path) -> None:
    sources = "".join(SOURCE.format(name=name, rows=600) for name in "rst").replace(
        'stream = "t"', 'stream = "s", seed = 7'
    )
    bounds = {"valid_from": {"r": 1_577_836_801_000_000, "s": None, "t": None}, "valid_to": 1_577_836_804_000_000}
    tables = {name: WORKLOAD.table(name, 0, 600) for name in "rs"}
    tables["t"] = replace(WORKLOAD, seed=7).table("s", 0, 600)
    expected = hf.join(
        tables,
        on="r.key = s.key AND s.key = t.key",
        window={"r": "1 second", "s": "100 rows", "t": "1 second"},
        time="ts",
        in_order=True,
        select="r.key AS k, s.id AS s_id, t.id AS t_id, match_time",
        **bounds,
    )
    assert len(expected) > 10
    code, said, _ = cli("run", write(LOCAL, 'mode = "batch"', sources=sources, join=THREE, sink=PARQUET))
    assert 0 == code
    hft.assert_same(pq.read_table(tmp_path / "out"), expected)
    code, said, _ = cli("run", write(LOCAL, NOW, sources=sources, join=THREE, sink=PARQUET.replace("out", "live")))
    assert 0 == code
    found = pq.read_table(tmp_path / "live")
    times = found["match_time"].to_pylist()
    assert sorted(times) == times
    assert said[-1].startswith(f"done: 600 of r, 600 of s, 600 of t in, {len(found):,} matches out; watermark 2020-")
    # up to the watermark, which rows beyond valid_to have not moved
    assert times[-1] > datetime(2020, 1, 1, 0, 0, 2, tzinfo=UTC)
    hft.assert_same(found, expected.filter(pc.less_equal(expected["match_time"], times[-1])))
    code, said, _ = cli("explain", write(LOCAL, NOW, sources=sources, join=THREE))
    assert (0, "join of r, s and t on local") == (code, said[0])
    assert "  idle       t: 1 h" in said
    assert "  result     k, s_id, t_id, match_time" in said
    code, said, _ = cli("verify", write(LOCAL, NOW, sources=sources, join=THREE))
    assert (0, "All engines agree with the oracle") == (code, said[0])


def test_a_left_join(write: Write, tmp_path: Path) -> None:
    join = JOIN + 'how = "left"\n' + LATE
    tables = {name: WORKLOAD.table(name, 0, 300) for name in "rs"}
    expected = hf.join(tables, on="r.key = s.key", window="2 seconds", time="ts", how="left")
    code, said, _ = cli("run", write(LOCAL, NOW, join=join, sink=PARQUET))
    assert 0 == code
    found = pq.read_table(tmp_path / "out")
    unmatched = [row for row in found.to_pylist() if row["s_id"] is None]
    assert unmatched
    assert set(map(str, unmatched)) < {str(row) for row in expected.to_pylist() if row["s_id"] is None}
    hft.assert_same(found.filter(pc.is_valid(found["s_id"])), right(300))
    code, said, _ = cli("explain", write(LOCAL, NOW, join=join))
    assert (0, "left join of r and s on local") == (code, said[0])
    code, said, _ = cli("verify", write(LOCAL, NOW, join=join))
    assert (0, "All engines agree with the oracle") == (code, said[0])


def test_the_order_of_arrival(write: Write, tmp_path: Path) -> None:
    join = '[join]\non = "r.key = s.key"\nwindow = "50 rows"\ntime = "ts"\norder = "arrival"\n'
    code, said, _ = cli("explain", write(LOCAL, NOW, join=join))
    assert (0, True) == (code, "  order      by arrival" in said)
    code, said, _ = cli("run", write(LOCAL, NOW, join=join, sink=PARQUET))
    tables = {name: WORKLOAD.table(name, 0, 300) for name in "rs"}
    spec = hf.JoinSpec(("r", "s"), "r.key = s.key", window="50 rows", time="ts", order="arrival")
    session = hf.session(spec, {name: table.schema for name, table in tables.items()})
    steps = [{name: table.slice(at, 100) for name, table in tables.items()} for at in (0, 100, 200)]
    expected = pa.Table.from_batches([b for step in steps for b in session.push_together(step)], session.schema)
    assert len(expected) > 10
    hft.assert_same(pq.read_table(tmp_path / "out"), expected)
    assert f"done: 300 of r, 300 of s in, {len(expected)} matches out" == said[-1]
    for command, top in (("run", 'mode = "batch"'), ("explain", 'mode = "batch"'), ("verify", NOW)):
        code, _, error = cli(command, write(LOCAL, top, join=join))
        assert (2, True) == (code, "bounded inputs need a column that has it: sequence=" in error)


def test_files_without_spark_as_a_batch(write: Write, tmp_path: Path) -> None:
    write_files(tmp_path)
    file = write('mode = "batch"', sources=FILES, join=WIDE, sink='format = "console"')
    code, said, _ = cli("run", file, "--engine", "local")
    assert 0 == code
    assert "done: 4 of r, 4 of s in, 4 matches out; 2 rejected; 1 corrupt" == said[-1]
    assert said[0].startswith("r_ts: timestamp")
    assert 6 == len(said)


def test_a_stream_without_spark_goes_on_until_it_is_stopped(write: Write, tmp_path: Path) -> None:
    # both streams end after three steps: nothing more can come, whatever the trigger
    code, said, _ = cli("run", write(LOCAL, 'trigger = "1 ms"'))
    assert (0, 4) == (code, len(said))


def test_explain_without_spark(write: Write) -> None:
    code, said, _ = cli("explain", write(LOCAL, NOW))
    assert (0, "join of r and s on local") == (code, said[0])
    assert "  predicate  r.key = s.key" in said


@pytest.mark.parametrize("cores", [1, 3])
def test_explain_without_spark_says_what_hf_explain_says(write: Write, cores: int) -> None:
    from handfast.connectors.local import open_source

    file = write(NOW, f"cores = {cores}")
    code, said, _ = cli("explain", file, "--engine", "local")
    pipeline = Pipeline.read(Path(file), engine="local")
    tables = {name: open_source(source).take_all() for name, source in pipeline.sources.items()}
    expected = hf.explain(tables, pipeline.spec, options=hf.LocalOptions(cores=cores))
    assert (0, expected.splitlines()) == (code, said)


def test_verify_without_spark(write: Write) -> None:
    code, said, _ = cli("verify", write(LOCAL, NOW))
    assert (0, "All engines agree with the oracle") == (code, said[0])
    code, _, error = cli("verify", write(LOCAL, NOW), "--limit", "10")
    assert 2 == code
    assert "the limit is 10; give fewer rows" in error


def test_an_engine_that_differs_is_exit_code_1(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    from handfast import api

    join = api.join
    monkeypatch.setattr(api, "join", lambda *inputs, **how: join(*inputs, **how).slice(1))
    code, said, _ = cli("verify", write(LOCAL, NOW, rows=20))
    assert 1 == code
    assert said[0].startswith("Not in agreement with the oracle: local, 1 core; local, 3 cores")
    assert any("no row can be left out" in line for line in said)


def test_a_corrupt_row_is_named_with_its_file(write: Write, tmp_path: Path) -> None:
    write_files(tmp_path)
    file = write(LOCAL, NOW, sources=FILES.replace("drop", "fail"), sink='format = "parquet"\npath = "out"')
    code, _, error = cli("run", file)
    assert 1 == code
    assert f"handfast: Stream 'r': line 3 of {tmp_path}/r/1.csv is corrupt: key = 'x' is not of type bigint" in error


def test_a_wrong_join_touches_no_sink(write: Write, tmp_path: Path) -> None:
    sink = 'format = "parquet"\npath = "out"'
    code, _, error = cli("run", write(LOCAL, NOW, join=JOIN.replace("r.key", "r.kei"), sink=sink))
    assert (2, "handfast: Stream 'r' has no column 'kei'; did you mean 'key'? (it has id, ts, key)\n") == (code, error)
    assert not (tmp_path / "out").exists()
