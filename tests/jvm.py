"""How the tests' Spark sessions start Java: they live for minutes, where thorough compilation never pays."""

from __future__ import annotations

_OPTIONS = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"

SHORT_LIVED = {
    "spark.driver.extraJavaOptions": _OPTIONS,
    "spark.executor.extraJavaOptions": _OPTIONS,
}
