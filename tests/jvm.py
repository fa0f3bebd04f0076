"""How the tests start Java, in whatever process: what lives for a minute is not worth a thorough compilation."""

from __future__ import annotations

import os

_OPTIONS = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"


def start_lightly() -> None:
    """Have every Java that this process and its children start compile quickly; what the user has set stays."""
    own = os.environ.get("JDK_JAVA_OPTIONS", "")
    if _OPTIONS not in own:
        os.environ["JDK_JAVA_OPTIONS"] = f"{_OPTIONS} {own}".rstrip()
