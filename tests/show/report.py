"""What a claim comes to: a figure beside its goal, and why it failed if it did."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
_TAIL = 30  # lines of an output that are shown


@dataclass(frozen=True)
class Line:
    """One claim: what was seen, what was wanted, and if it failed, the end of what was printed."""

    name: str
    figure: str
    goal: str
    passed: bool
    why: str = ""


@dataclass(frozen=True)
class Checked:
    """A test that ran."""

    file: str
    name: str
    passed: bool


@dataclass(frozen=True)
class Ran:
    """What pytest said of some tests."""

    tests: tuple[Checked, ...] = ()
    figures: dict[str, list[float]] = field(default_factory=dict)
    output: str = ""

    @property
    def passed(self) -> int:
        return sum(test.passed for test in self.tests)

    @property
    def failed(self) -> int:
        return len(self.tests) - self.passed

    @property
    def ok(self) -> bool:
        return self.failed == 0 and self.passed > 0

    def named(self, word: str) -> tuple[Checked, ...]:
        """The tests with this word in their name."""
        return tuple(test for test in self.tests if word in test.name)

    def count(self, word: str) -> int:
        """How many tests with this word in their name passed."""
        return sum(test.passed for test in self.named(word))

    def total(self, ending: str) -> int:
        """The sum of what the tests recorded under names that end so."""
        return int(sum(sum(own) for name, own in self.figures.items() if name.endswith(ending)))

    def figure(self, name: str, missing: float = 0) -> float:
        """What a test recorded last under this name."""
        return self.figures.get(name, [missing])[-1]

    def line(self, name: str, count: int, floor: int, what: str) -> Line:
        """The claim that so many of `what` were tried, no fewer than the floor, and that all tests passed."""
        figure = f"{count} {what}, {self.failed} tests fail"
        return Line(name, figure, f"≥ {floor}, 0 fail", self.ok and count >= floor, self.output)


def run_tests(*args: str) -> Ran:
    """Run tests in a process of their own; the figures are what they recorded with `record_property`."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        command = [sys.executable, "-m", "pytest", "-q", f"--junitxml={report}", *args]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        if not report.exists():
            return Ran(output=tail(done.stdout + done.stderr))
        cases = list(ET.parse(report).getroot().iter("testcase"))
    figures: dict[str, list[float]] = {}
    for recorded in (own for case in cases for own in case.iter("property")):
        with suppress(ValueError):  # some tests record words
            figures.setdefault(recorded.get("name", ""), []).append(float(recorded.get("value", "")))
    return Ran(tuple(map(_test, cases)), figures, "\n".join(_whys(cases)) or tail(done.stdout + done.stderr))


def _test(case: ET.Element) -> Checked:
    """A test of pytest's report; one that was skipped has not passed."""
    wrong = any(case.find(what) is not None for what in ("failure", "error", "skipped"))
    return Checked(case.get("classname", ""), case.get("name", ""), not wrong)


def _whys(cases: list[ET.Element]) -> Iterator[str]:
    """Of each test that has not passed its name, what it said in a line, and the end of its trace."""
    for case in cases:
        for wrong in (own for what in ("failure", "error", "skipped") for own in case.iter(what)):
            yield f"{case.get('classname')}::{case.get('name')}: {wrong.get('message')}\n{tail(wrong.text or '')}"


def tail(output: str) -> str:
    """The last lines of what was printed."""
    return "\n".join(output.rstrip().splitlines()[-_TAIL:])
