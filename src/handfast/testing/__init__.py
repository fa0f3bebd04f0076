"""For users' own tests: tables as text, joins fed step by step, differences that can be read."""

from handfast.judge.difference import Difference, assert_same, difference
from handfast.judge.grid import BASE, table, text
from handfast.testing.steps import Steps, steps

__all__ = ["BASE", "Difference", "Steps", "assert_same", "difference", "steps", "table", "text"]
