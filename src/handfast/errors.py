"""Every error a user can meet."""


class HandfastError(Exception):
    """The root of every error that handfast raises on purpose."""


class SpecError(HandfastError, ValueError):
    """The join was asked wrongly: the message names the thing, the rule and the way out."""


class UnsupportedError(HandfastError, ValueError):
    """The join was asked rightly, of an engine that cannot run it."""


class MissingExtraError(HandfastError, ImportError):
    """A library of an optional extra is not installed; the message has the command that installs it."""


class EngineError(HandfastError, RuntimeError):
    """The run failed: what was asked is right, what happened is not."""


class InternalError(HandfastError, RuntimeError):
    """A bug of handfast's own."""


def missing_extra(what: str, extra: str, module: str) -> MissingExtraError:
    """The error where a module of an extra is not there: `what` needs it, and pip brings it with all of the extra."""
    from importlib.metadata import PackageNotFoundError, requires  # here: it takes a while to load

    package = _PACKAGES.get(module.partition(".")[0], module.partition(".")[0])
    try:
        needed = [line for line in requires("handfast") or () if f"extra == '{extra}'" in line.replace('"', "'")]
    except PackageNotFoundError:  # used without being installed: nobody has its list
        needed = [package]
    command = " ".join(["pip install", *(f"'{line.partition(';')[0].strip()}'" for line in needed)])
    return MissingExtraError(f"{what} the '{extra}' extra ({package} is missing): {command}")


_PACKAGES = {"google": "protobuf"}  # what brings a module of another name
