"""Spark's own join by buckets, as a careful user writes it by hand: the backfill is compared with it.

Space and time are cut into buckets. A row of r lies in one; a row of s is copied into every bucket that a partner can
lie in. So equal buckets find the candidates, and the exact condition decides. Of the sizes that were tried, from twice
the reach of the condition to twenty times, these are the fastest for Spark: small buckets mean many copies, large ones
many candidates.
"""

from __future__ import annotations

from handfast.cli.demo.scenario import Scenario

_TIMES = 10  # how many times as wide as the reach of the condition a bucket is in space
_WINDOWS = 5  # how many times as long as the window it is in time


def query(scenario: Scenario) -> str:
    """The join as Spark SQL over the tables r and s, with the columns that `hf.join` gives."""
    near, window = scenario.near, scenario.window_micros
    wide, long = _TIMES * near, _WINDOWS * window
    history = scenario.history
    r, s = (", ".join(f"{name}.{own} AS {name}_{own}" for own in history.schema(name).names) for name in "rs")
    return f"""\
WITH r_buckets AS (
  SELECT *, x DIV {wide} AS bx, floor(y / {wide}) AS by, t DIV {long} AS bt
  FROM (SELECT *, unix_micros(ts) AS t FROM r)
), s_buckets AS (
  SELECT * FROM (SELECT *, unix_micros(ts) AS t FROM s)
  LATERAL VIEW explode(sequence((a - {near}) DIV {wide}, (a + {near}) DIV {wide})) AS bx
  LATERAL VIEW explode(sequence(floor((b - {near}D) / {wide}), floor((b + {near}D) / {wide}))) AS by
  LATERAL VIEW explode(sequence((t - {window}) DIV {long}, (t + {window}) DIV {long})) AS bt
)
SELECT
  {r},
  {s},
  greatest(r.ts, s.ts) AS match_time
FROM r_buckets AS r JOIN s_buckets AS s USING (bx, by, bt)
WHERE {history.on}
  AND abs(r.t - s.t) < {window}"""
