"""docs/semantics.md: its timelines are those of this folder. `python -m tests.scenarios.page` writes them in."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from tests.scenarios.timeline import Scenario, scenarios

PAGE = Path(__file__).parents[2] / "docs" / "semantics.md"
_NOT_ASKED = ("section", "title", "columns", "note", "timeline", "after", "matches", "late", "rejected", "streams")


def page() -> str:
    """The page as it should be: the text between the timelines is its own."""
    text = PAGE.read_text()
    for section in range(1, 13):
        shown = "\n".join(_shown(scenario) for scenario in scenarios() if scenario.section == section)
        mark = f"<!-- timelines of section {section} -->"
        text = re.sub(f"{mark}\n.*?<!-- end -->", lambda _, m=mark, s=shown: f"{m}\n{s}<!-- end -->", text, flags=re.S)
    return text


def _shown(scenario: Scenario) -> str:
    text = scenario.text
    asked = [f"{name} = {_value(value)}" for name, value in text.items() if name not in _NOT_ASKED]
    lines = [f"**{scenario.title}.**", "", "```text", *asked, "", *text["timeline"].strip().splitlines(), ""]
    lines += [f"{what}: {', '.join(text[what])}" for what in ("late", "rejected") if text.get(what)]
    if scenario.after is not None:
        given = [*text["after"], _rest(text["matches"], text["after"])]
        named = [f"after batch {k}" for k in range(1, len(given))] + ["at the end"]
        lines += [f"{name}: {', '.join(rows) or 'nothing'}" for name, rows in zip(named, given, strict=True)]
    else:
        lines.append(f"result: {', '.join(text['matches']) or 'nothing'}")
    lines += ["```", "", *([text["note"], ""] if "note" in text else [])]
    return "\n".join(lines)


def _rest(matches: list[str], after: list[list[str]]) -> list[str]:
    rest = list(matches)
    for row in (row for rows in after for row in rows):
        rest.remove(row)
    return rest


def _value(value: Any) -> str:
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{name} = {_value(own)}" for name, own in value.items()) + " }"
    return {True: "true", False: "false"}[value] if isinstance(value, bool) else repr(value).replace("'", '"')


if __name__ == "__main__":
    PAGE.write_text(page())
