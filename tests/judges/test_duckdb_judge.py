"""The second judge shares nothing with what it judges."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
ALONE = """
import sys
sys.modules["handfast"] = None  # whoever imports it fails
from datetime import datetime
import pyarrow as pa
from tests.judges import duckdb_judge
table = pa.table({"ts": pa.array([datetime(2026, 1, 1)], pa.timestamp("us")), "x": [1]})
found = duckdb_judge.matches({"r": table, "s": table}, on="r.x = s.x", window="1 second", time="ts")
print(found.num_rows)
"""


def test_the_judge_works_where_handfast_is_not() -> None:
    done = subprocess.run([sys.executable, "-c", ALONE], cwd=ROOT, capture_output=True, text=True, check=False)
    assert "1\n" == done.stdout, done.stderr
