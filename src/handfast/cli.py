"""The `handfast` command."""

from __future__ import annotations

import signal
from typing import Annotated

import typer

from handfast import __version__
from handfast.errors import HandfastError, SpecError

# exit codes, as shells know them
_FAILED, _MISUSED, _INTERRUPTED = 1, 2, 128 + signal.SIGINT

app = typer.Typer(
    name="handfast",
    help="A sliding-window stream join, written once, with the same exact result on every engine.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,  # what is not a HandfastError is a bug, and its plain traceback is for us
)


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"handfast {__version__}")
        raise typer.Exit


@app.callback()
def main(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and leave.")
    ] = False,
) -> None:
    """The options of `handfast` itself."""


@app.command()
def demo(
    # The size is what the oracle can judge beside Spark: 16 million pairs, some 15 seconds of plain Python.
    rows: Annotated[int, typer.Option(help="Rows of each stream.")] = 20_000,
    rate: Annotated[int, typer.Option(help="Rows a second of each stream, in event time.")] = 200,
    window: Annotated[str, typer.Option(help="How long a row stays, like '500 ms' or '1 minute'.")] = "2 seconds",
    seed: Annotated[int, typer.Option(help="Which rows: the same seed, the same rows.")] = 1,
    cores: Annotated[int, typer.Option(help="JoinCores that share the windows, and cores for Spark.")] = 2,
) -> None:
    """Run a band join of two live streams on Spark, and check the result.

    The two generated streams arrive out of order and are joined by closeness
    in two columns and in time: a join that Spark alone refuses. Meanwhile the
    oracle, the definition of the join in plain Python, tries the same rows
    pair by pair. The exit code is 0 if both find the same matches, 1 if not.

    Takes about a minute. Needs the 'spark' extra and Java 17 or newer.
    """
    try:
        from rich.console import Console

        from handfast.demo.run import run
        from handfast.demo.scenario import Scenario
        from handfast.demo.screen import Screen

        equal = run(Scenario(rows, rate, window, seed, cores), Screen(Console()))
    except HandfastError as error:
        typer.echo(f"handfast: {error}", err=True)
        raise typer.Exit(_MISUSED if isinstance(error, SpecError) else _FAILED) from None
    except KeyboardInterrupt:
        typer.echo("handfast: stopped", err=True)
        raise typer.Exit(_INTERRUPTED) from None
    raise typer.Exit(0 if equal else _FAILED)
