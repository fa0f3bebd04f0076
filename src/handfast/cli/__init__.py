"""The `handfast` command."""

from handfast.cli.app import app

__all__ = ["app"]
