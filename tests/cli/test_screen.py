"""The screen: everything is shown on a terminal, where it moves, and in a pipe, where it is plain lines."""

from __future__ import annotations

from io import StringIO

import pytest
from rich.console import Console

from handfast.cli.screen import Screen


def of(*, terminal: bool) -> tuple[Screen, StringIO]:
    """A screen, and what is written to it."""
    file = StringIO()
    return Screen(Console(file=file, force_terminal=terminal, width=80, legacy_windows=False, _environ={})), file


@pytest.mark.parametrize("terminal", [True, False])
def test_lines_are_shown_as_they_are(terminal: bool) -> None:
    screen, file = of(terminal=terminal)
    line = f"[bold]no markup[/bold] 1,000 {'long ' * 40}"
    screen.say(line)
    assert f"{line}\n" == file.getvalue()


def test_a_pipe_gets_no_escapes_whatever_is_shown() -> None:
    screen, file = of(terminal=False)
    screen.title("A title")
    screen.paragraph("Running text", "a line of its own")
    screen.code("hf.join(r, s)")
    screen.verdict(True, "right")
    screen.verdict(False, "wrong")
    screen.facts([("rows", "7")])
    screen.list([("one", "two")])
    screen.table(("what", "rows"), [("live", "7")], left=1)
    with screen.waiting("Spark starts"):
        pass
    with screen.bar(10, "soon") as bar:
        bar(5, "half of it")
    with screen.figures() as figures:
        figures("step 1: 7 rows", [("rows", "7")])
    text = file.getvalue()
    assert "\x1b" not in text
    for line in ("A title", "  a line of its own", "hf.join(r, s)", "✔ right", "✘ wrong", "  one  two"):
        assert line in text.splitlines()
    assert ["… Spark starts", "soon", "half of it", "step 1: 7 rows"] == text.splitlines()[-4:]


def test_a_log_gets_ten_lines_at_most_of_many_runs() -> None:
    screen, file = of(terminal=False)
    with screen.runs(200, "soon") as done:
        for count in range(201):
            done(count)
    assert ["soon", *(f"{count} of 200 runs" for count in range(20, 201, 20))] == file.getvalue().splitlines()


def test_a_terminal_gets_a_bar_that_moves_and_figures_that_change() -> None:
    screen, file = of(terminal=True)
    with screen.bar(10, "soon") as bar:
        bar(5, "half of it")
    assert "━" in file.getvalue()
    assert " 50%" in file.getvalue()
    assert "half of it" in file.getvalue()
    with screen.figures() as figures:
        figures("step 1: 7 rows", [("rows", "7")])
    assert "step 1" not in file.getvalue()


def test_running_text_is_wrapped_and_its_lines_are_indented() -> None:
    screen, file = of(terminal=False)
    screen.paragraph("word " * 40, "other " * 40, indent=6)
    lines = file.getvalue().splitlines()
    assert max(map(len, lines)) <= 100
    assert [line for line in lines if line.startswith("  other")]
    assert [line for line in lines if line.startswith(" " * 8 + "other")]


def test_words_stand_left_and_figures_right() -> None:
    screen, file = of(terminal=False)
    screen.table(("what", "rows"), [("live", "7"), ("backfill", "1,000")], left=1)
    assert "│ live     │     7 │" in file.getvalue()


def test_stages_are_lines_in_a_pipe_and_take_each_others_place_on_a_terminal() -> None:
    for terminal in (False, True):
        screen, file = of(terminal=terminal)
        with screen.stages() as begins:
            begins("reading")
            begins("running")
        if terminal:
            assert "… " not in file.getvalue()
        else:
            assert "… reading\n… running\n" == file.getvalue()
