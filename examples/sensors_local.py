"""Sensors in this process, pandas and Polars, without Spark: which shocks came while the same machine ran hot?

    python examples/sensors_local.py

Two logs in two kinds of tables, each with its own names. A shock counts if it comes less than 10 seconds after a hot
reading of its machine or less than 2 seconds before one, and if the machine turned at about the same speed in both.
"""

from datetime import UTC, datetime, timedelta

import pandas as pd
import polars as pl

import handfast as hf

NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)

heat = pd.DataFrame(
    {
        "read_at": [NOON + timedelta(seconds=s) for s in (0, 10, 20, 30)],
        "machine": ["press", "press", "lathe", "press"],
        "celsius": [71.5, 93.0, 88.5, 90.1],
        "rpm": [1500, 1490, 3000, 1510],
    }
)
shocks = pl.DataFrame(
    {
        "at": [NOON + timedelta(seconds=s) for s in (5.0, 9.5, 12.0, 19.999999, 20.0, 21.0)],
        "machine": ["press", "press", "press", "press", "press", "lathe"],
        "g": [2.5, 3.1, 2.9, 4.0, 5.5, 2.2],
        "rpm": [1500, 1480, 1501, 1499, 1500, 3200],
    }
)

hot_shocks = hf.join(
    {"heat": heat, "shock": shocks},
    on="heat.machine = shock.machine AND heat.celsius >= 85 AND ABS(heat.rpm - shock.rpm) <= 15",
    window={"heat": "10 seconds", "shock": "2 seconds"},
    time={"heat": "read_at", "shock": "at"},
).sort_by("shock_at")

print(pl.from_arrow(hot_shocks.select(["shock_at", "shock_g", "heat_celsius", "match_time"])))
