"""`make show`: a claim without its tests fails, and says why."""

from __future__ import annotations

from collections.abc import Callable
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from tests.show import claims, measured, report
from tests.show.__main__ import CLAIMS, main, seen
from tests.show.report import Checked, Line, Ran, run_tests

OF_TESTS = {name: claim for name, claim in CLAIMS.items() if claim.__module__ == claims.__name__}


def answered(monkeypatch: pytest.MonkeyPatch, ran: Ran) -> None:
    """Have every claim get this for an answer of pytest's."""
    monkeypatch.setattr(claims, "run_tests", lambda *args: ran)


def printed(every: dict[str, Callable[[], list[Line]]]) -> tuple[int, str]:
    """The exit code, and what is printed."""
    out = StringIO()
    return main([], every, Console(file=out, width=120)), out.getvalue()


@pytest.mark.parametrize("left", [(), (Checked("tests.one", "test_that_is_left", True),)], ids=["no test", "one test"])
@pytest.mark.parametrize("name", OF_TESTS)
def test_without_its_tests_every_claim_fails(
    monkeypatch: pytest.MonkeyPatch, name: str, left: tuple[Checked, ...]
) -> None:
    answered(monkeypatch, Ran(left))
    lines = OF_TESTS[name]()
    assert lines
    assert not any(line.passed for line in lines)


@pytest.mark.parametrize("name", OF_TESTS)
def test_one_test_that_fails_is_a_claim_that_fails_and_says_why(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    every = "test_catches_goes_on_never_stuck_broken_rule_of_many_test_model_and_circuit_show_a_bug"
    many = tuple(Checked("tests.one", f"{every}_{n}", True) for n in range(500))
    wrong = Checked("tests.one", "test_catches_wrong", False)
    control = Checked("tests.one", "test_control", True)
    endings = "local cases", "batch cases", "streaming cases", "connect cases", "schedules", "bounded, handshake"
    covered = "matches and non-matches", "ties", "expiry", "disorder", "nulls"
    endings += "ring joins on Amaranth", "line joins on Amaranth", "ring inputs on Verilator"
    endings += "joins of a ring on the model", "joins of a line on the model"
    endings += "joins on Amaranth", "joins on the model", "inputs on Verilator", "configurations on Verilator"
    endings += (
        "restarts",
        "restarted cases",
        "batch cases by equal keys",
        "cases of hot keys",
        "schedules in machine code",
        "sessions in machine code",
    )
    endings += "joins of many streams", "real stages", "ring or a line", "rings and stashes"
    figures = {
        **{ending: [999_999.0] for ending in endings},
        **{own: [1.0] for own in covered},
        "import seconds": [0.1],
    }
    answered(monkeypatch, Ran((*many, control), figures, "all is well"))
    assert all(line.passed for line in OF_TESTS[name]())
    answered(monkeypatch, Ran((*many, control, wrong), figures, "that is why"))
    lines = OF_TESTS[name]()
    assert not lines[0].passed
    assert {"that is why"} == {line.why for line in lines}


def test_mutants_without_their_control_are_no_claim(monkeypatch: pytest.MonkeyPatch) -> None:
    caught = tuple(Checked(f"tests.mutants.{file}", f"test_catches[{n}]", True) for file in "ab" for n in range(60))
    control = tuple(Checked(f"tests.mutants.{file}", "test_without_a_bug", True) for file in "ab")
    for own, passed in ((control, True), (control[:1], False), ((), False)):
        answered(monkeypatch, Ran(caught + own))
        _, line = claims.mutants()
        assert (passed, f"{len(own)} of 2 files") == (line.passed, line.figure)


def test_what_pytest_says_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(report, "ROOT", tmp_path)
    file = tmp_path / "test_some.py"
    file.write_text(
        "import pytest\n"
        "def test_right(record_property):\n    record_property('few cases', 3)\n    record_property('said', 'a word')\n"
        "def test_more(record_property):\n    record_property('few cases', 4)\n"
        "def test_wrong():\n    assert 1 == 2, 99 * 'long ' + 'this is why'\n"
        "def test_warning():\n    import warnings\n    [warnings.warn(f'{k} words', stacklevel=k) for k in range(90)]\n"
        "@pytest.mark.skip\ndef test_skipped():\n    pass\n"
    )
    ran = run_tests("-p", "no:cacheprovider", str(file))
    assert (3, 2, 7, False) == (ran.passed, ran.failed, ran.total(" cases"), ran.ok)
    assert "this is why" in ran.output
    assert (1, 0) == (ran.count("right"), ran.count("wrong"))
    broken = run_tests("-p", "no:cacheprovider", str(tmp_path / "test_none.py"))
    assert (0, False) == (broken.passed, broken.ok)
    assert "test_none.py" in broken.output


def test_a_set_up_that_fails_is_a_claim_that_fails() -> None:
    def broken() -> list[Line]:
        """A command that is not there."""
        raise FileNotFoundError("no such command: git")

    def silent() -> list[Line]:
        """Nothing."""
        return []

    code, said = printed({"broken": broken, "silent": silent, "right": lambda: [Line("right", "1", "1", True)]})
    assert 1 == code
    assert "could not be set up" in said and "FileNotFoundError: no such command: git" in said
    assert "nothing was seen" in said and "pass" in said


def test_a_claim_that_fails_prints_why() -> None:
    code, said = printed({"wrong": lambda: [Line("wrong", "1", "2", False, "E   assert [1] == [2]")]})
    assert 1 == code
    assert said.rstrip().endswith("FAIL wrong\nE   assert [1] == [2]")
    assert 0 == printed({"right": lambda: [Line("right", "2", "2", True)]})[0]


def test_a_clone_that_fails_ends_the_newcomers_way(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(measured, "ROOT", tmp_path / "nowhere")
    (line,) = seen("newcomer", measured.newcomer)
    assert not line.passed
    assert "nowhere" in line.why


def test_a_wheel_that_cannot_be_built_ends_its_way(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(measured, "ROOT", tmp_path)  # no Makefile here
    (line,) = seen("wheel", measured.wheel)
    assert not line.passed
    assert line.name == "wheel: make dist"
