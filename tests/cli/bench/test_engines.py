"""`handfast bench engines`: the same joins on every engine, held against the oracle, on one page."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from typer.testing import CliRunner

from handfast.cli import app
from handfast.cli.bench.engines.circuit import by_circuit
from handfast.cli.bench.engines.result import Compared
from handfast.cli.bench.engines.seen import ENGINES, LOCAL, ORACLE, Latency, Seen, time_of
from handfast.cli.bench.engines.software import by_local, by_oracle
from handfast.cli.bench.engines.workload import QUICK, WHOLE
from handfast.engines.spark import embedded
from handfast.errors import EngineError
from tests.cli.reproduce.test_page import Page


def invoke(*arguments: str) -> Any:
    return CliRunner().invoke(app, ["bench", "engines", *arguments])


@pytest.mark.spark
@pytest.mark.usefixtures("shared_session")
def test_all_engines_find_the_same_and_stand_side_by_side(tmp_path: Path) -> None:
    out = tmp_path / "engines.html"
    ran = invoke("--quick", "--out", str(out))
    assert 0 == ran.exit_code, ran.output
    assert "✔ all engines find what the oracle finds" in ran.output
    page = Page(out.read_text(encoding="utf-8"))
    assert all(address.startswith("data:") for address in page.addresses)
    compared = [table for table in page.tables if table[0][0] == "engine" and len(table[0]) > 2]
    assert 2 == len(compared) == len(page.pictures)
    for table in compared:
        assert ["engine", "what ran", "matches", "", "rows a second", "latency, median", "99%", "work"] == table[0]
        assert list(ENGINES) == [row[0] for row in table[1:]]
        assert ["the definition", *["✔ the same"] * 3] == [row[3] for row in table[1:]]
        assert 1 == len({row[2] for row in table[1:]})
        assert "bits change for a row" in table[-1][7]
        assert all(row[5] != "—" for row in table[2:])
    assert [out] == list(tmp_path.iterdir())


@pytest.mark.parametrize("workload", QUICK)
def test_what_an_engine_lacks_or_has_too_much_is_said(workload: Any) -> None:
    oracle, local = by_oracle(workload), by_local(workload)
    assert len(oracle.matches) > 50
    assert Compared(workload, (oracle, local), "").agrees
    found = local.matches
    wrong = pa.concat_tables([found.slice(3), found.slice(4, 1)])
    seen = Seen(LOCAL, "", wrong, local.rate, local.latency)
    compared = Compared(workload, (oracle, seen), "")
    assert not compared.agrees
    assert "✘ 3 missing, 1 too many" == compared.verdict(seen)


def test_engines_that_agree_on_nothing_are_not_said_to_agree() -> None:
    oracle = by_oracle(QUICK[0])
    none = oracle.matches.slice(0, 0)
    seen = [Seen(engine, "", none, 1.0, None) for engine in (ORACLE, LOCAL)]
    assert not Compared(QUICK[0], seen, "").agrees


@pytest.mark.parametrize("workload", QUICK)
def test_seconds_of_a_circuit_are_its_cycles_at_the_clock(workload: Any) -> None:
    slow, fast = by_circuit(workload, 50), by_circuit(workload, 100)
    assert slow.latency is not None and fast.latency is not None
    assert pytest.approx(2 * slow.rate) == fast.rate
    assert pytest.approx(slow.latency.median) == 2 * fast.latency.median
    assert slow.work == fast.work
    # it takes a cycle to take a row at least, and no match leaves before its last row has come
    assert fast.rate <= 100e6 * 2 and fast.latency.median > 1 / 100e6


def test_windows_are_full_long_before_the_rows_end() -> None:
    for workload in (*QUICK, *WHOLE):
        assert workload.rows >= 4 * workload.window


def test_times_are_said_in_the_unit_that_fits() -> None:
    assert ["2.5 s", "1.2 ms", "3 µs", "40 ns"] == [time_of(seconds) for seconds in (2.5, 1.2e-3, 3e-6, 4e-8)]
    assert None is Latency.of([])


def test_what_cannot_be_run_is_refused_before_anything_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ran = invoke("--clock", "0", "--out", str(tmp_path / "page.html"))
    assert (2, "handfast: A clock is more than 0 MHz, not 0") == (ran.exit_code, ran.stderr.strip())
    ran = invoke("--out", str(tmp_path))
    assert 2 == ran.exit_code and "choose another one with --out" in ran.stderr

    def missing(what: str) -> None:
        raise EngineError(f"{what} needs Java")

    monkeypatch.setattr(embedded, "check", missing)
    ran = invoke("--out", str(tmp_path / "page.html"))
    assert (1, "handfast: Spark's part of the page needs Java") == (ran.exit_code, ran.stderr.strip())
    assert [] == list(tmp_path.iterdir())
