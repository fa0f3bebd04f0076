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
