"""The `handfast` command."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Protocol

import typer

from handfast import __version__
from handfast.cli.areas import RESULTS, results_folder
from handfast.cli.circuit.options import Asked, of_circuit
from handfast.errors import HandfastError, SpecError, UnsupportedError

if TYPE_CHECKING:
    from handfast.cli.screen import Screen
    from handfast.connectors.pipeline import Pipeline
    from handfast.judge.verify import Report

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
    rows: Annotated[int, typer.Option(help="Rows of each live stream.")] = 20_000,
    rate: Annotated[int, typer.Option(help="Rows a second of each live stream, in event time.")] = 200,
    window: Annotated[str, typer.Option(help="How long a row stays, like '500 ms' or '1 minute'.")] = "2 seconds",
    seed: Annotated[int, typer.Option(help="Which rows: the same seed, the same rows.")] = 1,
    cores: Annotated[int, typer.Option(help="JoinCores that share the windows, and cores for Spark.")] = 2,
    backfill: Annotated[int, typer.Option(help="Rows of each stream in the backfill; 0 leaves it out.")] = 1_000_000,
) -> None:
    """Run a band join on Spark, live and as backfill, and check both.

    The two generated streams arrive out of order and are joined by closeness
    in two columns and in time: a join that Spark alone refuses. Meanwhile the
    oracle, the definition of the join in plain Python, tries the same rows
    pair by pair.

    Then the same join runs as a backfill over a million rows of each stream.
    It is checked, and timed, against a join that Spark can do: by buckets of
    space and time, written by hand.

    The exit code is 0 if both results are right, and 1 if not. Takes about
    a minute. Needs the 'spark' extra and Java 17 or newer.
    """
    with _errors():
        from handfast.cli.demo.run import run
        from handfast.cli.demo.scenario import Scenario
        from handfast.cli.screen import Screen

        equal = run(Scenario(rows, rate, window, seed, cores, backfill), Screen.of_output())
    raise typer.Exit(0 if equal else _FAILED)


_File = Annotated[Path, typer.Argument(help="The pipeline, a TOML file.", metavar="PIPELINE.TOML", show_default=False)]
_Engine = Annotated[str | None, typer.Option(help="spark or local; the file's own by default.", show_default=False)]


@app.command()
def explain(file: _File, engine: _Engine = None) -> None:
    """Show how a pipeline's join is laid out, and why."""
    with _errors():
        from handfast.cli.screen import Screen
        from handfast.connectors.pipeline import Pipeline

        pipeline = Pipeline.read(file, engine=engine)
        said = _runner(pipeline.engine).explain(pipeline, Screen.of_errors())
    typer.echo(said)


@app.command()
def verify(
    file: _File,
    engine: _Engine = None,
    limit: Annotated[int, typer.Option(help="How many pairs the oracle may try, one by one.")] = 20_000_000,
) -> None:
    """Check a pipeline's join on all rows its sources have now.

    Runs the join on the local engine, with one core and with three, and on Spark unless the engine is local, and
    compares with the oracle, the definition of the join in plain Python. Nothing is written. The exit code is 0 if all
    find the same matches, 1 if not; then a few rows that show the difference are printed.
    """
    with _errors():
        from handfast.cli.screen import Screen
        from handfast.connectors.pipeline import Pipeline

        pipeline = Pipeline.read(file, engine=engine)
        report = _runner(pipeline.engine).judge(pipeline, Screen.of_errors(), limit=limit)
    typer.echo(str(report))
    raise typer.Exit(0 if report else _FAILED)


@app.command()
def run(file: _File, engine: _Engine = None) -> None:
    """Run a pipeline: its sources, its join, its sink.

    Ctrl-C stops it cleanly; on Spark the next run goes on from the checkpoint.
    """
    with _errors():
        from handfast.cli.screen import Screen
        from handfast.connectors.pipeline import Pipeline

        pipeline = Pipeline.read(file, engine=engine)
        _runner(pipeline.engine).run(pipeline, Screen.of_output())


@app.command()
@of_circuit(runs=True)
def simulate(
    file: _File,
    circuit: Asked,
    vcd: Annotated[Path | None, typer.Option(help="A waveform to write.", show_default=False)] = None,
) -> None:
    """Run a pipeline's join as a circuit, on all rows its sources have now.

    Shows cycles, how full the buffers got and how long the cores were
    suspended, and compares the matches with the local engine's. Nothing is
    written but the waveform.

    The exit code is 0 if the matches are the same, and 1 if not. Needs the
    'hardware' extra, and a C++ compiler for long runs.
    """
    with _errors():
        _check_circuits()
        from handfast.cli.circuit.simulate import run
        from handfast.cli.screen import Screen

        equal = run(file, circuit, vcd=vcd, screen=Screen.of_output(), progress=Screen.of_errors())
    raise typer.Exit(0 if equal else _FAILED)


@app.command()
@of_circuit(runs=False)
def synthesize(
    file: _File,
    circuit: Asked,
    family: Annotated[str, typer.Option(help="The FPGA: xc6v (Virtex-6) or ecp5.")] = "xc6v",
    clock: Annotated[bool, typer.Option("--clock", help="Estimate the clock on an ECP5 as well; minutes.")] = False,
    seeds: Annotated[int, typer.Option(help="How many times the clock is estimated, from other beginnings.")] = 3,
    verilog: Annotated[Path | None, typer.Option(help="A file for the circuit's Verilog.", show_default=False)] = None,
) -> None:
    """Count what the circuit of a pipeline's join takes of an FPGA.

    LUTs, flip-flops and RAM by part. The circuit is as large as the rows
    need that the sources have now.

    Takes a minute or several; results are kept, so that the next time is at
    once. Needs the 'hardware' extra.
    """
    with _errors():
        _check_circuits()
        from handfast.cli.circuit.synthesize import run
        from handfast.cli.screen import Screen

        if clock and seeds < 1:
            raise SpecError(f"--seeds must be a positive number, not {seeds}")
        run(
            file,
            circuit,
            family=family,
            seeds=seeds if clock else 0,
            verilog_to=verilog,
            screen=Screen.of_output(),
            progress=Screen.of_errors(),
        )


@app.command()
def sweep(
    grid: Annotated[
        Path | None,
        typer.Argument(help="A TOML file of parameters, each a value or a list.", metavar="[GRID.TOML]"),
    ] = None,
    out: Annotated[Path, typer.Option(help="The folder for the rows and the picture.")] = Path("sweep"),
    cores: Annotated[str | None, typer.Option(help="Join cores of the chain, like 16,32,64.")] = None,
    segment: Annotated[str | None, typer.Option(help="Tuples of each stream that a core holds.")] = None,
    scan: Annotated[str | None, typer.Option(help="How a core scans: immediate, eager.")] = None,
    comparisons: Annotated[str | None, typer.Option(help="Tuples that a new one is compared with at a time.")] = None,
    network: Annotated[str | None, typer.Option(help="How results are collected: tree, adaptive, pipelined.")] = None,
    core_buffer: Annotated[str | None, typer.Option(help="Slots of the buffer behind a core, of a tree.")] = None,
    network_buffer: Annotated[str | None, typer.Option(help="Slots of each buffer of the network.")] = None,
    match_rate: Annotated[str | None, typer.Option(help="The part of each stream that matches, from 0 to 1.")] = None,
    pattern: Annotated[str | None, typer.Option(help="Where these stand: random, gaussian, burst.")] = None,
    seed: Annotated[str | None, typer.Option(help="Which random inputs.")] = None,
    streams: Annotated[
        str | None, typer.Option(help="How many streams, from 3 on: a grid of rings, like 3,5,8.")
    ] = None,
    window: Annotated[str | None, typer.Option(help="Tuples of each window of a ring.")] = None,
    in_flight: Annotated[str | None, typer.Option(help="Tuples that may be under way in a ring.")] = None,
    stage_buffer: Annotated[str | None, typer.Option(help="Intermediates in each queue of a ring.")] = None,
    match_probability: Annotated[
        str | None, typer.Option(help="Of two tuples of neighbouring streams of a ring.")
    ] = None,
    engine: Annotated[str, typer.Option(help="spark: a task for each; local: threads of this process.")] = "spark",
    workers: Annotated[int, typer.Option(help="Configurations that run at a time.")] = 2,
) -> None:
    """Run a grid of circuits on the fast model, into Parquet.

    Chains of cores for two streams; rings of stages for three and more, where
    --streams or the file says how many. Every combination of the parameters is run: by default as a Spark job with
    a task for each. What is already in the folder is not run again, so that a
    sweep that was stopped or killed goes on where it was. At the end, the best
    circuit for each input as a table, and a picture.

    Needs the 'hardware' and 'bench' extras, and for Spark the 'spark' extra
    and Java 17 or newer.
    """
    with _errors():
        _check_circuits()
        from handfast.cli.screen import Screen
        from handfast.cli.sweep.kinds import read_grid
        from handfast.cli.sweep.run import sweep as run_sweep

        options = {
            "cores": cores,
            "segment": segment,
            "scan": scan,
            "comparisons": comparisons,
            "network": network,
            "core_buffer": core_buffer,
            "network_buffer": network_buffer,
            "match_rate": match_rate,
            "pattern": pattern,
            "seed": seed,
            "streams": streams,
            "window": window,
            "in_flight": in_flight,
            "stage_buffer": stage_buffer,
            "match_probability": match_probability,
        }
        run_sweep(read_grid(grid, options), out, engine=engine, cores=workers, screen=Screen.of_output())


_reproduce = typer.Typer(help="Run the evaluation of a paper again.", no_args_is_help=True)
app.add_typer(_reproduce, name="reproduce")
_Results = Annotated[
    Path | None,
    typer.Option(help=f"The folder with what the benchmarks of circuits wrote down; {RESULTS} if it is here."),
]


@_reproduce.callback()
def reproduce() -> None:
    """Run the evaluation of a paper again."""


@_reproduce.command()
def thesis(
    out: Annotated[Path, typer.Option(help="The page.")] = Path("thesis.html"),
    quick: Annotated[bool, typer.Option(help="A small circuit: to see that it runs, not to compare.")] = False,
    results: _Results = None,
) -> None:
    """Draw the figures of the thesis again, and compare its numbers.

    Runs the circuits of its Chapters 4 to 6 on the fast model and writes one
    HTML page: every figure about cycles and throughput, a table of what is
    printed against ours, and what each choice that the text leaves open would
    give otherwise. Area and clock are taken from the benchmarks' results.

    The exit code is 0 if every printed claim holds, and 1 if not. Needs the
    'hardware' and 'bench' extras.
    """
    with _errors():
        _check_circuits()
        from handfast.cli.reproduce.run import holds
        from handfast.cli.reproduce.run import reproduce as run_thesis
        from handfast.cli.screen import Screen

        found = run_thesis(out, quick=quick, results=results_folder(results), screen=Screen.of_output())
    raise typer.Exit(0 if holds(found) else _FAILED)


@_reproduce.command()
def circular(
    out: Annotated[Path, typer.Option(help="The page.")] = Path("circular.html"),
    quick: Annotated[bool, typer.Option(help="Small windows: to see that it runs, not to compare.")] = False,
    match_probability: Annotated[
        list[float] | None,
        typer.Option(help="Of two tuples of neighbouring streams; once for each figure, twice or more."),
    ] = None,
) -> None:
    """Draw the figures of the paper on Circular-MJ again, and test its claims.

    Runs rings of 3 to 8 stages with windows of 16,384 rows on the fast model
    and writes one HTML page: throughput over tuples at several match
    probabilities, against the formula, with the paper's order of work and
    with ours.

    The exit code is 0 if every claim holds, and 1 if not. Needs the
    'hardware' and 'bench' extras.
    """
    with _errors():
        _check_circuits()
        from handfast.cli.reproduce.circular.run import reproduce as run_circular
        from handfast.cli.reproduce.run import holds
        from handfast.cli.screen import Screen

        asked = match_probability or []
        found = run_circular(out, quick=quick, probabilities=asked, screen=Screen.of_output())
    raise typer.Exit(0 if holds(found) else _FAILED)


@app.command()
def size(
    rate: Annotated[float, typer.Option(help="Tuples a second of each stream.", show_default=False)],
    window: Annotated[
        str, typer.Option(help="Tuples of a window, or of those of R and S: 100,200.", show_default=False)
    ],
    clock: Annotated[
        float | None, typer.Option(help="The MHz within reach; nextpnr's estimate by default.", show_default=False)
    ] = None,
    cores: Annotated[str | None, typer.Option(help="Numbers of cores to look at, like 1,2,5,10.")] = None,
    scan: Annotated[str, typer.Option(help="How a core scans: immediate or eager.")] = "immediate",
    network: Annotated[
        str,
        typer.Option(
            help="How results are collected: tree, adaptive or pipelined. The default is the thesis' baseline and "
            "the only one whose switching was counted; a join itself takes pipelined by default."
        ),
    ] = "tree",
    synthesize: Annotated[
        bool, typer.Option("--synthesize", help="Count the cells of every circuit; minutes.")
    ] = False,
    results: _Results = None,
    streams: Annotated[int, typer.Option(help="How many streams; three and more take a ring of stages.")] = 2,
    match_probability: Annotated[float, typer.Option(help="Of two tuples of neighbouring streams, for rings.")] = 1e-7,
) -> None:
    """Show the circuits, and the software, that meet a demand.

    For circuits: the clock that they need by the number of cores, their area
    and how much they switch where that was counted, and which is best. For
    software: the cores and the memory, from a short measurement on this
    machine.

    Three streams and more take a ring of stages: the clock that it needs by
    the comparisons at a time, by formula and on the fast model, and its area.
    """
    with _errors():
        if synthesize:
            _check_circuits()
        from handfast.cli.screen import Screen

        if streams < 2:
            raise SpecError(f"A join has 2 streams at least, not {streams}")
        if streams > 2:
            _check_circuits()
            from handfast.cli.size.rings import RingDemand, size_rings

            for option, asked in (("cores", cores), ("scan", scan != "immediate"), ("network", network != "tree")):
                if asked:
                    raise SpecError(
                        f"--{option} is for joins of two streams; a ring has a stage for each stream: leave it out"
                    )
            size_rings(
                RingDemand.of(streams, rate, window, match_probability),
                clock=clock,
                synthesise=synthesize,
                results=results_folder(results),
                screen=Screen.of_output(),
            )
            return
        from handfast.cli.size.demand import Demand
        from handfast.cli.size.run import size as run_size

        run_size(
            Demand.of(rate, window),
            clock=clock,
            cores=cores,
            scan=scan,
            network=network,
            synthesise=synthesize,
            results=results_folder(results),
            screen=Screen.of_output(),
        )


_bench = typer.Typer(help="Measure handfast on this machine.", no_args_is_help=True)
app.add_typer(_bench, name="bench")


@_bench.command()
def scaling(
    out: Annotated[Path, typer.Option(help="The folder for the figures and the pictures.")] = Path("bench-scaling"),
    quick: Annotated[bool, typer.Option(help="Small and short: to see that it runs, not to measure.")] = False,
) -> None:
    """Measure how the local engine's throughput grows with its cores.

    Pairs and matches a second by cores, what SIMD and the local joins are worth, balance under bursts, a slow core,
    latency by forwarding; and a model of the chain up to 1,024 cores. Takes about ten minutes; needs the 'bench' extra.
    """
    with _errors():
        from handfast.cli.bench.scaling import run
        from handfast.cli.screen import Screen

        run(out, quick=quick, screen=Screen.of_output())


@_bench.command()
def multiway(
    out: Annotated[Path, typer.Option(help="The folder for the figures and the picture.")] = Path("bench-multiway"),
    quick: Annotated[bool, typer.Option(help="Small and short: to see that it runs, not to measure.")] = False,
) -> None:
    """Measure how a join of many streams, in a ring of stages, grows with them.

    New rows a second by the number of streams, where rows seldom match: on the CPUs that there are, and by a model of
    the ring on as many as it has stages. Takes about two minutes; needs the 'bench' extra.
    """
    with _errors():
        from handfast.cli.bench.multiway import run
        from handfast.cli.screen import Screen

        run(out, quick=quick, screen=Screen.of_output())


@_bench.command()
def engines(
    out: Annotated[Path, typer.Option(help="The page.")] = Path("engines.html"),
    quick: Annotated[bool, typer.Option(help="Small joins: to see that it runs, not to measure.")] = False,
    clock: Annotated[float, typer.Option(help="The MHz by which cycles of the circuit are seconds.")] = 100.0,
) -> None:
    """Put the engines side by side: the same joins on the oracle, the local engine, Spark and a circuit.

    A join of two streams and one of three. Writes one HTML page: whether all find the same matches, how many rows a
    second each takes, how soon a match comes, and how much of the circuit switches. Takes about five minutes, most of
    it to build the circuits' simulators, which are kept.

    The exit code is 0 if all find the same matches, and 1 if not. Needs the 'spark', 'hardware' and 'bench' extras,
    Java 17 or newer and a C++ compiler.
    """
    with _errors():
        _check_circuits()
        from handfast.cli.bench.engines.run import run
        from handfast.cli.screen import Screen

        equal = run(out, quick=quick, mhz=clock, screen=Screen.of_output())
    raise typer.Exit(0 if equal else _FAILED)


def _check_circuits() -> None:
    """Refuse to go on without the extra, before anything imports Amaranth."""
    from handfast.engines.hardware import toolchain

    toolchain.version("amaranth")


class _Runner(Protocol):
    """How an engine runs pipelines: `handfast.cli.run` has a module for each."""

    def explain(self, pipeline: Pipeline, screen: Screen) -> str: ...
    def judge(self, pipeline: Pipeline, screen: Screen, *, limit: int) -> Report: ...
    def run(self, pipeline: Pipeline, screen: Screen) -> None: ...


def _runner(engine: str) -> _Runner:
    """The runner of an engine; nothing of the other engine is imported."""
    if engine == "local":
        from handfast.cli.run import local

        return local

    from handfast.engines.spark import embedded

    embedded.check("A pipeline on Spark")  # before anything imports PySpark

    from handfast.cli.run import spark

    return spark


@contextmanager
def _errors() -> Iterator[None]:
    """Say what went wrong in one line, and leave with the exit code that says whose fault it is."""
    try:
        yield
    except HandfastError as error:
        typer.echo(f"handfast: {error}", err=True)
        raise typer.Exit(_MISUSED if isinstance(error, SpecError | UnsupportedError) else _FAILED) from None
    except KeyboardInterrupt:
        typer.echo("handfast: stopped", err=True)
        raise typer.Exit(_INTERRUPTED) from None
