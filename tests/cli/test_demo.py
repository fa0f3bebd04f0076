"""The demo: what it promises to show, the verdict, and the whole of it on Spark, in a pipe and on a terminal."""

from __future__ import annotations

import ast
import fcntl
import os
import re
import subprocess
import sys
import termios
from dataclasses import replace
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from handfast import api
from handfast.cli.demo import backfill, pages
from handfast.cli.demo.backfill import BUCKETS, OURS, Backfill, Run
from handfast.cli.demo.judge import Judge, Judged, compare, judge
from handfast.cli.demo.live import Batch, Live
from handfast.cli.demo.pages import Summary
from handfast.cli.demo.scenario import Scenario
from handfast.cli.screen import Screen
from handfast.errors import EngineError
from handfast.judge.rows import result_of

COMMAND = Path(sys.executable).with_name("handfast")
SMALL = Scenario(rows=1_000, rate=1_000, window="600 ms", seed=1, cores=2, backfill=30_000)
RUNS = (Run(OURS, 7, 99, 2.0), Run(BUCKETS, 7, 99, 5.0), Run(OURS, 7, 99, 1.0), Run(BUCKETS, 7, 99, 3.0))
RIGHT = Backfill(60_000, RUNS)


def nothing() -> None:
    """Nobody interrupts."""


def shown(action) -> str:
    """What a screen that is no terminal is told."""
    file = StringIO()
    action(Screen(Console(file=file)))
    return file.getvalue()


def summary(found: list, expected: list, filled: Backfill | None = RIGHT) -> Summary:
    batches = [Batch(0, 1_000, 7, 8.0), Batch(1, 1_000, 0, 0.5)]
    return Summary(SMALL, Live(batches, found, Judged(expected, 1.5), compare(found, expected)), filled, 12.0)


def told(said: Summary) -> str:
    """The last pages."""
    return shown(lambda screen: (pages.live(screen, SMALL, said.live), pages.conclude(screen, said)))


@pytest.mark.parametrize(("rows", "rate", "window"), [(400, 100, "1 second"), (100, 100, "5 seconds"), (50, 1, "10 s")])
def test_the_number_of_pairs_is_about_right(rows, rate, window):
    scenario = Scenario(rows=rows, rate=rate, window=window, seed=3, cores=1, backfill=0)
    length = scenario.spec.streams[0].window.length
    r, s = (
        [int(t.timestamp() * 1e6) for t in scenario.workload.table(name, 0, rows)["ts"].to_pylist()] for name in "rs"
    )
    assert sum(abs(a - b) < length for a in r for b in s) == pytest.approx(scenario.pairs, rel=0.1)


def test_the_batches_take_all_rows_in_at_most_ten_steps_none_of_them_tiny():
    batches = {}
    for rows in (1, 500, 501, 5_000, 5_001, 20_000):
        each = Scenario(rows=rows, rate=1, window="1 s", seed=0, cores=1, backfill=0).rows_per_trigger
        batches[rows] = -(-rows // each)
    assert {1: 1, 500: 1, 501: 2, 5_000: 10, 5_001: 10, 20_000: 10} == batches


def test_the_call_that_is_shown_is_the_join_that_is_run():
    text = shown(lambda screen: pages.introduce(screen, SMALL))
    code = text[text.index("matches = hf.join(") : text.index("\n)\n") + 2]
    (statement,) = ast.parse(code).body
    assert SMALL.keywords == {word.arg: ast.literal_eval(word.value) for word in statement.value.keywords}


def test_the_judge_and_the_local_engine_find_the_same():
    tables = {name: SMALL.workload.table(name, 0, SMALL.rows) for name in "rs"}
    found = result_of(api.join(tables, SMALL.spec))
    assert compare(found, judge(SMALL)).equal
    assert len(found) > 5


def test_the_judges_process_answers_what_the_judge_says():
    with Judge(SMALL) as process:
        assert judge(SMALL) == process.wait(nothing).matches


def test_a_judge_that_dies_is_an_error_and_not_a_verdict():
    with Judge(SMALL) as process:
        process._process.kill()
        with pytest.raises(EngineError, match="The oracle's process ended with exit code -9"):
            process.wait(nothing)


def test_matches_are_compared_as_multisets():
    assert compare([(1, 2), (3, 4), (1, 2)], [(1, 2), (1, 2), (3, 4)]).equal
    lost_and_doubled = compare([(1, 2), (1, 2)], [(1, 2), (3, 4)])
    assert ([(3, 4)], [(1, 2)]) == (lost_and_doubled.missing, lost_and_doubled.extra)
    assert not compare([], [(1, 2)]).equal
    assert not compare([(1, 2)], []).equal


def test_a_difference_is_shown_with_an_example_and_the_line_to_report():
    right = judge(SMALL)
    text = told(summary([*right[1:], right[-1]], right))
    assert "✘ Not equal" in text
    assert f"1 missing, the first: {right[0]}" in text
    assert f"1 too many, the first: {right[-1]}" in text
    assert "handfast demo --rows 1000 --rate 1000 --window '600 ms' --seed 1 --cores 2 --backfill 30000" in text
    assert "Where to look next" not in text


def test_equal_results_end_with_where_to_look_next():
    right = judge(SMALL)
    text = told(summary(right, list(reversed(right))))
    assert f"✔ Equal: Spark's streaming result is the oracle's, all {len(right)} matches" in text
    assert "README.md" in text[text.index("Where to look next") :]


def test_no_match_and_a_single_batch_are_shown_as_well():
    none = Summary(SMALL, Live([Batch(0, 2, 0, 1.0)], [], Judged([], 0.1), compare([], [])), None, 3.0)
    assert "all 0 matches" in told(none)


def test_the_backfill_is_told_with_its_rates_and_their_ratio():
    text = told(summary([], []))
    assert "✔ Equal: the backfill's result is that of Spark's own join, all 7 matches" in text
    assert re.search(r"backfill: hf.join +│ 60,000 │ +7 │ +1.0 │ 60,000 │ +✔ checksum", text)
    assert re.search(r"backfill: Spark +│ 60,000 │ +7 │ +3.0 │ 20,000 │ +✔ checksum", text)
    assert "hf.join takes 3.0 times as many rows/s as Spark's own join by buckets" in text
    assert max(map(len, text.splitlines())) <= 100


def test_without_a_backfill_nothing_is_said_of_one():
    text = told(summary([], [], None))
    assert "backfill" not in text
    assert "✔ oracle" in text


@pytest.mark.parametrize("differs", [{"matches": 6}, {"checksum": 98}])
@pytest.mark.parametrize("which", range(4))
def test_one_run_of_the_backfill_that_differs_is_a_difference(differs, which):
    runs = [replace(run, **differs) if k == which else run for k, run in enumerate(RUNS)]
    said = summary([], [], Backfill(60_000, tuple(runs)))
    assert not said.equal
    text = told(said)
    assert "✘ Not equal: the backfill's result is not that of Spark's own join" in text
    assert "✘ checksum" in text
    assert "please report it with this line: handfast demo" in text
    assert "Where to look next" not in text


def test_each_part_has_to_be_right():
    right = judge(SMALL)
    assert summary(right, right).equal
    assert summary(right, right, None).equal
    assert not summary(right[1:], right).equal
    assert not summary(right[1:], right, None).equal


# --- on Spark, as a user starts it ----------------------------------------------------------------------------------


def environment(folder: Path) -> dict[str, str]:
    """The test's environment with temporary files in `folder`, and nothing that asks for colours."""
    kept = {name: value for name, value in os.environ.items() if name not in ("FORCE_COLOR", "GITHUB_ACTIONS")}
    return kept | {"TMPDIR": str(folder), "TERM": "xterm-256color", "COLUMNS": "100", "LINES": "60"}


@pytest.fixture
def folders(tmp_path: Path) -> tuple[Path, Path]:
    """A folder to be in, and one for temporary files."""
    here, temporary = tmp_path / "here", tmp_path / "temporary"
    here.mkdir()
    temporary.mkdir()
    return here, temporary


@pytest.mark.spark
def test_a_backfill_is_right_and_one_lost_or_doubled_or_changed_row_is_seen(spark, tmp_path, monkeypatch):
    spark = spark.newSession()
    api.configure(spark, cores=2, quiet=True)
    backfill.write_history(SMALL, tmp_path)
    expected = api.join({name: SMALL.history.table(name, 0, SMALL.backfill) for name in "rs"}, SMALL.spec)
    right = [work() for _, work in backfill.joins(spark, SMALL, tmp_path)]
    assert [OURS, BUCKETS, OURS, BUCKETS] == [run.join for run in right]
    assert Backfill(60_000, tuple(right)).equal
    assert len(expected) == right[0].matches > 10_000

    row = expected.slice(len(expected) // 2, 1).to_pylist()[0]
    this = f"r_id = {row['r_id']} AND s_id = {row['s_id']}"
    join = api.join
    changed = f"CASE WHEN {this} THEN -1 ELSE r_x END AS r_x"
    columns = [changed if name == "r_x" else name for name in expected.column_names]
    for sabotage in (
        lambda rows: rows.where(f"NOT ({this})"),
        lambda rows: rows.unionAll(rows.where(this)),
        lambda rows: rows.selectExpr(*columns),
    ):
        monkeypatch.setattr(api, "join", lambda inputs, spec, sabotage=sabotage: sabotage(join(inputs, spec)))
        (_, broken), *_ = backfill.joins(spark, SMALL, tmp_path)
        assert not Backfill(60_000, (*right, broken())).equal


@pytest.mark.spark
def test_the_demo_in_a_pipe_is_plain_exact_and_leaves_nothing_behind(folders):
    here, temporary = folders
    options = ["--rows", "1500", "--rate", "1500", "--window", "1 second", "--seed", "5", "--backfill", "30000"]
    said = subprocess.run(
        [COMMAND, "demo", *options], capture_output=True, text=True, cwd=here, env=environment(temporary), timeout=600
    )
    assert (0, "") == (said.returncode, said.stderr)
    assert "\x1b" not in said.stdout
    expected = len(judge(Scenario(rows=1_500, rate=1_500, window="1 second", seed=5, cores=2, backfill=30_000)))
    assert expected > 20
    for line in (
        "Stream-stream join without equality predicate is not supported",
        "  2 cores: 2 shuffle partitions, windows in RocksDB, ",
        "join of r and s on Spark, streaming",
        f"3,000 of 3,000 rows in   {expected:>5} matches",
        f"✔ Equal: Spark's streaming result is the oracle's, all {expected} matches",
        "✔ Equal: the backfill's result is that of Spark's own join, all ",
        "Where to look next",
    ):
        assert line in said.stdout
    assert ([], []) == (list(here.iterdir()), list(temporary.iterdir()))


@pytest.mark.spark
def test_ctrl_c_on_a_terminal_stops_the_demo_and_leaves_nothing_behind(folders):
    here, temporary = folders
    terminal, its_end = os.openpty()
    process = subprocess.Popen(
        [COMMAND, "demo"],
        stdin=its_end,
        stdout=its_end,
        stderr=its_end,
        cwd=here,
        env=environment(temporary),
        start_new_session=True,
        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),  # so that Ctrl-C is a signal, to all processes
    )
    os.close(its_end)
    try:
        before = read_until(terminal, "first batch:")
        os.write(terminal, b"\x03")
        after = read_until(terminal, None)
        assert 130 == process.wait(60)
    finally:
        process.kill()
        os.close(terminal)
    assert "\x1b" in before
    assert "━━━" in before
    assert after.endswith("handfast: stopped\r\n")
    assert "Traceback" not in before + after
    assert ([], []) == (list(here.iterdir()), list(temporary.iterdir()))


def read_until(terminal: int, text: str | None) -> str:
    """What is shown until `text` is, or to the end."""
    seen = b""
    while text is None or text.encode() not in seen:
        try:
            piece = os.read(terminal, 1 << 16)
        except OSError:  # the other end is closed
            piece = b""
        if not piece:
            assert text is None, seen.decode()
            break
        seen += piece
    return seen.decode()
