"""`handfast reproduce thesis`: one page with everything in it, and what it says about areas."""

from __future__ import annotations

import json
import re
from base64 import b64decode
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from typer.testing import CliRunner

from handfast.cli import app, areas
from handfast.cli.reproduce import claims as judged
from handfast.cli.reproduce import run as command
from handfast.cli.reproduce.claims import FAILS, Claim
from handfast.cli.reproduce.experiments import QUICK, Evaluation

RESULTS = Path(__file__).parents[3] / "benchmarks" / "results"
FIGURES = ("4.5.4", "5.1.1", "5.1.2", "5.2.1", "6.3.5", "6.3.6")
VOID = {"meta", "img", "br", "link", "input", "hr"}


class Page(HTMLParser):
    """What is in a page: its titles, its pictures, the cells of its tables; every tag is closed."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.titles: list[str] = []
        self.pictures: list[str] = []
        self.tables: list[list[list[str]]] = []
        self.addresses: list[str] = []
        self._open: list[str] = []
        self.feed(text)
        assert [] == self._open

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        named = dict(attributes)
        self.addresses += [value or "" for name, value in attributes if name in ("src", "href")]
        if tag == "img":
            assert named["alt"]
            self.pictures.append(b64decode((named["src"] or "").removeprefix("data:image/svg+xml;base64,")).decode())
        if tag == "table":
            self.tables.append([])
        if tag == "tr":
            self.tables[-1].append([])
        if tag in ("td", "th"):
            self.tables[-1][-1].append("")
        if tag in ("h1", "h2", "h3"):
            self.titles.append("")
        if tag not in VOID:
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert tag == self._open.pop()

    def handle_data(self, text: str) -> None:
        if any(tag in self._open for tag in ("td", "th")):
            self.tables[-1][-1][-1] += text
        elif self._open and self._open[-1] in ("h1", "h2", "h3"):
            self.titles[-1] += text


def invoke(*arguments: str) -> Any:
    return CliRunner().invoke(app, ["reproduce", "thesis", "--quick", *arguments])


class Once(Evaluation):
    """An evaluation that runs the first time only."""

    def run(self, threads: int, done: Callable[[int], None]) -> None:
        if not self.costs:
            super().run(threads, done)


@pytest.fixture(scope="module")
def made() -> Once:
    return Once(QUICK)


@pytest.fixture(scope="module")
def quick(made: Once, tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, str]:
    """What a quick run prints, and its page."""
    out = tmp_path_factory.mktemp("thesis") / "page.html"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(command, "Evaluation", lambda scale: made)
        ran = invoke("--out", str(out), "--results", str(RESULTS))
    return ran, out.read_text(encoding="utf-8")


def test_a_quick_run_says_what_it_is(quick: tuple[Any, str]) -> None:
    ran, text = quick
    assert 0 == ran.exit_code, ran.output
    assert "runs of circuits on the fast model" in ran.output
    assert "written to " in ran.output
    assert "A quick run on a smaller circuit" in text


def test_the_page_has_every_figure_and_needs_nothing_else(quick: tuple[Any, str]) -> None:
    page = Page(quick[1])
    for number in FIGURES:
        assert any(f"Figure {number}" in title for title in page.titles)
    assert len(FIGURES) + 1 == len(page.pictures)  # and the areas
    assert all(address.startswith("data:") for address in page.addresses)
    assert "<script" not in quick[1]
    for picture in page.pictures:
        root = ElementTree.fromstring(picture)
        assert root.tag.endswith("svg")
        outside = {value for element in root.iter() for name, value in element.attrib.items() if name.endswith("href")}
        assert all(value.startswith("#") for value in outside)


def test_what_is_printed_is_compared_only_with_the_circuit_it_is_of(quick: tuple[Any, str]) -> None:
    table = Page(quick[1]).tables[0]
    cycles = [row for row in table if row[0].startswith("cycles of the baseline")]
    assert ["1,464,443", "1,054,029", "1,054,012"] == [row[2] for row in cycles]
    assert [("—", "—")] * 3 == [(row[4], row[5]) for row in cycles]


def test_block_rams_are_said_to_be_computed(quick: tuple[Any, str]) -> None:
    rows = [row for row in Page(quick[1]).tables[0] if row[0].startswith("block RAMs")]
    assert [("126", "126"), ("64", "64")] == [(row[2], row[3]) for row in rows]
    assert all("computed, not synthesised" in row[0] for row in rows)


def test_every_choice_is_there_with_its_alternatives(quick: tuple[Any, str]) -> None:
    said = "\n".join(cell for table in Page(quick[1]).tables for row in table for cell in row)
    for name in ("merger loop", "margin of the full flag", "latency of a FIFO", "output channel", "flush"):
        assert name in said
    for name in ("equal counters", "equal hop counts", "north goes last", "never ends", "burst at the end"):
        assert name in said


def test_the_areas_are_those_of_the_benchmark(quick: tuple[Any, str]) -> None:
    found = areas.read_areas(RESULTS)
    assert found is not None
    (table,) = [own for own in Page(quick[1]).tables if own[0][0] == "cores" and own[-1][0] == "64"]
    by_cores = {row[0]: row for row in table[1:]}
    row = by_cores["16"]
    ours = found["tree"].registers[16]
    assert ["27,763", f"{ours:,}"] == row[1:3]
    assert f"{ours / 27_763 - 1:+.0%}".replace("-", "−") == row[3]
    assert "—" == by_cores["64"][2]  # which nobody has synthesised


def test_a_file_of_areas_that_is_damaged_is_named_before_anything_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command.Evaluation, "run", lambda *_: pytest.fail("what is asked wrongly is not run"))
    (tmp_path / areas.NAME).write_text("{}")
    ran = invoke("--out", str(tmp_path / "page.html"), "--results", str(tmp_path))
    assert 2 == ran.exit_code
    assert "is not what python -m benchmarks.circuit_area writes: KeyError('area'); run it again" in ran.stderr
    assert areas.read_areas(tmp_path / "none") is None


@pytest.mark.parametrize("out", ["/nowhere/page.html", "/tmp"])
def test_a_page_that_cannot_be_written_is_named_before_anything_runs(out: str) -> None:
    ran = invoke("--out", out)
    assert 2 == ran.exit_code
    assert f"The page {out} is a file in a folder that is there" in ran.stderr


def test_a_claim_that_does_not_hold_is_the_exit_code(
    made: Once, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command, "Evaluation", lambda scale: made)
    failed = Claim("what", "§1", "1", "2", 1.0, FAILS)
    monkeypatch.setattr(command, "claims", lambda made: [*judged.claims(made), failed])
    ran = invoke("--out", str(tmp_path / "page.html"), "--results", str(tmp_path))
    assert 1 == ran.exit_code
    text = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "<code>python -m benchmarks.circuit_area</code>" in text
    assert re.search("✘ does not hold", text)
    assert ["page.html"] == [path.name for path in tmp_path.iterdir()]


def test_the_lines_of_the_areas_are_read(tmp_path: Path) -> None:
    line = {"each": 10.0, "besides": 5.0, "deviation": 0.01}
    own = {"cores": [2, 4], "lut": [25, 45], "ff": [30, 50], "line": {"lut": line, "ff": line}}
    clock = {"tree": {"2": {"median": 108.0, "spread": 3.0}}}
    (tmp_path / areas.NAME).write_text(json.dumps({"area": {"tree": own}, "clock_ecp5": clock}))
    found = areas.read_areas(tmp_path)
    assert found is not None
    assert ({2: 25, 4: 45}, 35.0, {2: (108.0, 3.0)}) == (
        found["tree"].luts,
        found["tree"].lut_line.at(3),
        found["tree"].clock,
    )
