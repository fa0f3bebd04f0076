"""How the tests start Spark, in whatever process: what lives for a minute is not worth a thorough compilation."""

from __future__ import annotations

import os
from pathlib import Path

_OPTIONS = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
_CONF = Path(__file__).parent / "spark_conf"


def start_lightly() -> None:
    """Have every Java of this process and its children compile quickly, and every Spark fork workers that are ready.

    What the user has set stays.
    """
    own = os.environ.get("JDK_JAVA_OPTIONS", "")
    if _OPTIONS not in own:
        os.environ["JDK_JAVA_OPTIONS"] = f"{_OPTIONS} {own}".rstrip()
    os.environ.setdefault("SPARK_CONF_DIR", str(_CONF))
