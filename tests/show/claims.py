"""The claims that tests stand for. Each has a floor: without its tests it fails."""

from __future__ import annotations

from tests.show.report import ROOT, Line, Ran, run_tests


def agreement_local() -> list[Line]:
    """The local engine against oracle and DuckDB, and what the cases cover."""
    ran = run_tests("tests/agreement", "-m", "not spark and not slow")
    name = "agreement, local: time, count, mixed windows; 2 to 4 streams; six joins; in order"
    cases = f"cases of {ran.figure('shapes'):.0f} shapes and more"
    lines = [ran.line(name, ran.total(" cases"), 2200, cases)]
    goals = {"matches and non-matches": 0.6, "ties": 0.2, "expiry": 0.2, "disorder": 0.2, "nulls": 0.2}
    for feature, goal in goals.items():
        share = ran.figure(feature)
        lines.append(Line(f"coverage: {feature}", f"{share:.0%}", f"≥ {goal:.0%}", share >= goal, ran.output))
    return lines


def agreement_spark() -> list[Line]:
    """Spark against oracle and DuckDB, streaming before the end of input."""
    ran = run_tests("tests/agreement", "-m", "spark and not slow")
    return [
        ran.line("agreement, Spark batch", ran.total("batch cases"), 100, "cases"),
        ran.line("agreement, Spark streaming, at its watermark", ran.total("streaming cases"), 40, "cases"),
    ]


def connect() -> list[Line]:
    """The same joins on Spark Connect."""
    ran = run_tests("tests/engines/spark/test_connect.py")
    return [ran.line("agreement, Spark Connect", ran.total("connect cases"), 14, "cases")]


def timelines() -> list[Line]:
    """Golden timelines, which docs/semantics.md prints."""
    ran = run_tests("tests/test_scenarios.py")
    return [ran.line("golden timelines of every section of the semantics", ran.passed, 189, "checks")]


def downstream() -> list[Line]:
    """An event-time aggregation behind a join in order."""
    ran = run_tests("tests/engines/spark/test_in_order.py")
    return [ran.line("aggregation behind a join in order = the one in batch", ran.passed, 2, "joins")]


def door() -> list[Line]:
    """Late rows, rejected rows, counters, `hf.write`."""
    ran = run_tests("tests/engines/spark/test_write.py", "tests/engines/local/test_session.py")
    return [ran.line("late and rejected rows, counters, hf.write", ran.passed, 84, "tests")]


def mutants() -> list[Line]:
    """Deliberate bugs, and the control: without one nothing is caught."""
    ran = run_tests("tests/mutants", "-m", "not slow")
    return [
        ran.line("mutants caught", ran.count(_CATCHES), 51, "mutants"),
        Line(
            "mutants, the control: the code as it is passes",
            f"{len(_controlled(ran))} of {len(_broken(ran))} files",
            "all",
            _broken(ran) != set() and _broken(ran) == _controlled(ran),
            ran.output,
        ),
    ]


_CATCHES = "catches"  # in the name of every test of a mutant; a file's other tests run the code as it is


def _broken(ran: Ran) -> set[str]:
    """The files with mutants."""
    return {test.file for test in ran.named(_CATCHES)}


def _controlled(ran: Ran) -> set[str]:
    """Those of them in which a control passes."""
    return {test.file for test in ran.tests if test.passed and _CATCHES not in test.name} & _broken(ran)


def exactly_once() -> list[Line]:
    """Kills, failing tasks, lost caches."""
    ran = run_tests("tests/engines/spark/test_exactly_once.py")
    return [ran.line("exactly once: kill −9, failing tasks, caches lost", ran.passed, 41, "exact")]


def kills() -> list[Line]:
    """kill −9 at random moments: driver, executor, Python worker."""
    ran = run_tests("tests/engines/spark/test_kills.py", "-m", "not slow", "-k", "at_any_moment")
    return [ran.line("kill −9 at random moments: nothing lost, nothing twice", ran.passed, 6, "runs exact")]


def kept_checkpoints() -> list[Line]:
    """Checkpoints of earlier versions."""
    ran = run_tests("tests/engines/spark/test_kept_checkpoints.py")
    versions = sorted(path.name for path in (ROOT / "tests" / "fixtures" / "checkpoints").iterdir())
    name = f"checkpoints written by {', '.join(versions)} go on: rows, refused rows, counters"
    return [ran.line(name, ran.count("goes_on"), 2, "checkpoints")]


def refused_join() -> list[Line]:
    """The README's snippets, of which the first is the join that Spark refuses."""
    ran = run_tests("tests/test_readme.py")
    return [ran.line("the join Spark refuses, exact with handfast; every README snippet", ran.passed, 4, "tests")]


def light_import() -> list[Line]:
    """`import handfast`."""
    ran = run_tests("tests/test_import.py")
    seconds = ran.figure("import seconds", float("inf"))
    light = Line("import handfast", f"{seconds:.3f} s", "< 0.3 s", ran.ok and seconds < 0.3, ran.output)
    return [light, ran.line("import handfast, without numba, duckdb, pyspark", ran.passed, 11, "tests")]


def chain() -> list[Line]:
    """The handshake chain: schedules, broken rules, both ways of forwarding."""
    scheduled = run_tests("tests/engines/local/test_handshake.py", "-m", "not slow")
    modes = run_tests("tests/engines/local/test_forwarding.py")
    door = run_tests("tests/engines/local/test_door.py", "tests/engines/local/test_soak.py", "-m", "not slow")
    name = "handshake chain: schedules of 1, 2, 3, 4, 7 cores; the missed and the double pair"
    joins = modes.total(", low-latency") + modes.total(", handshake")
    return [
        scheduled.line(name, scheduled.total("schedules"), 500, "schedules"),
        scheduled.line("handshake chain: broken rules caught", scheduled.count("broken_rule"), 9, "rules"),
        modes.line("both forwardings in threads, all local joins", joins, 400, "joins"),
        door.line("a burst loses no admitted row; soak adds up every second", door.passed, 18, "tests"),
    ]
