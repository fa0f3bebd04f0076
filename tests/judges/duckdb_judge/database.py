"""DuckDB in this process: started once, for it takes as long as a small query; each who asks has tables of its own."""

from __future__ import annotations

from functools import cache

import duckdb


def connect() -> duckdb.DuckDBPyConnection:
    """A connection with no tables, on one thread, in UTC; to be used in a `with`."""
    connection = _database().cursor()
    connection.execute("SET TimeZone = 'UTC'")
    return connection


@cache
def _database() -> duckdb.DuckDBPyConnection:
    return duckdb.connect(config={"threads": 1})
