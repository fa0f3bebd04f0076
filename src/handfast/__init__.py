"""handfast: a sliding-window stream join, written once, with the same exact result on every engine."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from handfast.api import configure, explain, join, metrics, session, write
    from handfast.engines.hardware.options import HardwareOptions
    from handfast.engines.local.options import LocalOptions
    from handfast.engines.spark.options import SparkOptions
    from handfast.errors import (
        EngineError,
        HandfastError,
        InternalError,
        MissingExtraError,
        SpecError,
        UnsupportedError,
    )
    from handfast.judge.verify import verify
    from handfast.spec.join import JoinSpec
    from handfast.spec.python_predicate import predicate
    from handfast.spec.window import CountWindow, TimeWindow

__version__ = "0.1.0"

_HOMES = {
    "configure": "handfast.api",
    "explain": "handfast.api",
    "join": "handfast.api",
    "metrics": "handfast.api",
    "session": "handfast.api",
    "verify": "handfast.judge.verify",
    "write": "handfast.api",
    "HardwareOptions": "handfast.engines.hardware.options",
    "LocalOptions": "handfast.engines.local.options",
    "SparkOptions": "handfast.engines.spark.options",
    "EngineError": "handfast.errors",
    "HandfastError": "handfast.errors",
    "InternalError": "handfast.errors",
    "MissingExtraError": "handfast.errors",
    "SpecError": "handfast.errors",
    "UnsupportedError": "handfast.errors",
    "JoinSpec": "handfast.spec.join",
    "predicate": "handfast.spec.python_predicate",
    "CountWindow": "handfast.spec.window",
    "TimeWindow": "handfast.spec.window",
}
__all__ = [
    "CountWindow",
    "EngineError",
    "HandfastError",
    "HardwareOptions",
    "InternalError",
    "JoinSpec",
    "LocalOptions",
    "MissingExtraError",
    "SparkOptions",
    "SpecError",
    "TimeWindow",
    "UnsupportedError",
    "configure",
    "explain",
    "join",
    "metrics",
    "predicate",
    "session",
    "verify",
    "write",
]


def __getattr__(name: str) -> Any:
    """Load a public name when it is first used, so that importing handfast costs next to nothing."""
    if name not in _HOMES:
        raise AttributeError(f"module 'handfast' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return [*globals(), *_HOMES]
