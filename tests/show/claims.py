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
    ran = run_tests("tests/agreement", "tests/engines/spark/test_native.py", "-m", "spark and not slow")
    return [
        ran.line("agreement, Spark batch", ran.total("batch cases"), 184, "cases"),
        ran.line("agreement, Spark streaming, at its watermark", ran.total("streaming cases"), 68, "cases"),
        ran.line("Spark batch by equal keys, both ways", ran.total("batch cases by equal keys"), 48, "cases"),
        ran.line("agreement, Spark with hot keys split", ran.total("cases of hot keys"), 14, "cases"),
        ran.line("of these, 3, 4, 5 and 8 streams: queries stopped and restarted", ran.total("restarts"), 20, "times"),
    ]


def many_streams() -> list[Line]:
    """Three streams and more at Spark's operator, and how they are divided among the cores."""
    ran = run_tests("tests/engines/spark/test_many_streams.py")
    routed = run_tests("tests/core/routing/test_hypercube.py", "tests/core/routing/test_grid.py")
    restarted = "3, 4, 5 and 8 streams, every attempt of the operator restarted or its caches lost"
    return [
        ran.line(restarted, ran.total("restarted cases"), 252, "cases"),
        routed.line("hypercube: each match at one core, taken where it sends less", routed.passed, 226, "tests"),
        routed.line("hypercube: deliberate bugs caught", routed.count("show_a_bug"), 8, "bugs"),
    ]


def large() -> list[Line]:
    """Joins of thousands of rows, on every engine, against DuckDB."""
    ran = run_tests("tests/agreement/test_size.py")
    return [ran.line("500 random joins of 5,000 to 50,000 rows a stream = DuckDB", ran.count("many"), 500, "joins")]


def connect() -> list[Line]:
    """The same joins on Spark Connect."""
    ran = run_tests("tests/engines/spark/test_connect.py")
    return [ran.line("agreement, Spark Connect", ran.total("connect cases"), 14, "cases")]


def timelines() -> list[Line]:
    """Golden timelines, which docs/semantics.md prints."""
    ran = run_tests("tests/test_scenarios.py")
    return [ran.line("golden timelines of every section of the semantics", ran.passed, 246, "checks")]


def downstream() -> list[Line]:
    """An event-time aggregation behind a join in order."""
    ran = run_tests("tests/engines/spark/test_in_order.py")
    return [ran.line("aggregation behind a join in order = the one in batch, for every how", ran.passed, 7, "joins")]


def refused_rows() -> list[Line]:
    """Late rows, rejected rows, counters, `hf.write`."""
    ran = run_tests("tests/engines/spark/test_write.py", "tests/engines/local/test_session.py")
    return [ran.line("late and rejected rows, counters, hf.write", ran.passed, 84, "tests")]


def mutants() -> list[Line]:
    """Deliberate bugs, and the control: without one nothing is caught."""
    ran = run_tests("tests/mutants", "-m", "not slow")
    return [
        ran.line("mutants caught", ran.count(_CATCHES), 81, "mutants"),
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


def entrance() -> list[Line]:
    """What a session counts, from how many threads it is fed, and what it lets go."""
    folder = "tests/engines/local"
    ran = run_tests(f"{folder}/test_counters.py", f"{folder}/test_expiry.py", f"{folder}/test_threads.py")
    return [ran.line("counters add up after every push, threads lose nothing, expiry lets go", ran.passed, 45, "tests")]


def schedules() -> list[Line]:
    """The real driver, crew and collector under adversarial schedules, and with deliberate bugs."""
    ran = run_tests("tests/engines/local/test_schedules.py", "-m", "not slow")
    return [ran.line("adversarial schedules of driver, crew and collector; their mutants", ran.passed, 15, "tests")]


def cost() -> list[Line]:
    """Candidates tried, counted against the pairs in the windows."""
    ran = run_tests("tests/core/test_window_cost.py")
    return [
        ran.line("candidates tried ≤ pairs in the windows: few keys, no index, wild, counts", ran.passed, 62, "tests")
    ]


def sql() -> list[Line]:
    """Conditions as Spark reads them: what binds, how tight, with how many arguments."""
    ran = run_tests("tests/spec/test_grammar.py", "tests/spec/test_operators.py", "-m", "not slow")
    return [ran.line("conditions bind as in Spark, and what it refuses is refused", ran.passed, 208, "tests")]


def text() -> list[Line]:
    """Csv and json, type by type and text by text, as Spark reads them."""
    ran = run_tests("tests/connectors/test_text_agreement.py")
    return [ran.line("csv and json read as by Spark: types × texts, lines", ran.passed, 10, "tables")]


def payload() -> list[Line]:
    """Every type, name and size of a column on Spark; its workers, its places."""
    names = ("payload", "names", "sizes", "workers", "places", "fingerprint")
    ran = run_tests(*(f"tests/engines/spark/test_{name}.py" for name in names), "-m", "not slow")
    return [
        ran.line("Spark: types, names and sizes of columns, workers, places, fingerprints", ran.passed, 41, "tests")
    ]


def exactly_once() -> list[Line]:
    """Kills, failing tasks, lost caches."""
    ran = run_tests("tests/engines/spark/test_exactly_once.py")
    return [ran.line("exactly once: kill −9, failing tasks, caches lost", ran.passed, 41, "exact")]


def kills() -> list[Line]:
    """kill −9 at random moments: driver, executor, Python worker."""
    ran = run_tests("tests/engines/spark/test_kills.py", "-m", "not slow", "-k", "at_any_moment")
    return [ran.line("kill −9 at random moments: nothing lost, nothing twice", ran.passed, 9, "runs exact")]


def kept_checkpoints() -> list[Line]:
    """Checkpoints of earlier versions."""
    ran = run_tests("tests/engines/spark/test_kept_checkpoints.py")
    versions = sorted(path.name for path in (ROOT / "tests" / "fixtures" / "checkpoints").iterdir())
    name = f"checkpoints written by {', '.join(versions)} go on: rows, refused rows, counters"
    return [ran.line(name, ran.count("goes_on"), 2, "checkpoints")]


def refused_join() -> list[Line]:
    """The README's snippets, of which the first is the join that Spark refuses."""
    ran = run_tests("tests/test_readme.py")
    return [ran.line("the join Spark refuses, exact with handfast; every README snippet", ran.passed, 7, "tests")]


def light_import() -> list[Line]:
    """`import handfast`."""
    ran = run_tests("tests/test_import.py")
    seconds = ran.figure("import seconds", float("inf"))
    light = Line("import handfast", f"{seconds:.3f} s", "< 0.3 s", ran.ok and seconds < 0.3, ran.output)
    return [light, ran.line("import handfast, without numba, duckdb, pyspark", ran.passed, 11, "tests")]


def chain() -> list[Line]:
    """The handshake chain: schedules, broken rules, both ways of forwarding."""
    scheduled = run_tests("tests/engines/local/test_handshake.py", "-m", "not slow")
    native = run_tests("tests/engines/local/native")
    modes = run_tests("tests/engines/local/test_forwarding.py")
    admission = run_tests(
        "tests/engines/local/test_admission_control.py", "tests/engines/local/test_soak.py", "-m", "not slow"
    )
    name = "handshake chain: schedules of 1, 2, 3, 4, 7 cores; the missed and the double pair"
    joins = modes.total(", low-latency") + modes.total(", handshake")
    return [
        scheduled.line(name, scheduled.total("schedules"), 500, "schedules"),
        scheduled.line("handshake chain: broken rules caught", scheduled.count("broken_rule"), 10, "rules"),
        native.line(
            "the chain in machine code: schedules of 1, 2, 3, 4, 7 cores, as Python and compiled",
            native.total("schedules in machine code"),
            400,
            "schedules",
        ),
        native.line("the chain in machine code: broken rules caught", native.count("broken_rule"), 15, "rules"),
        native.line("the chain in machine code, in threads", native.total("sessions in machine code"), 24, "sessions"),
        modes.line("both forwardings in threads, all local joins", joins, 400, "joins"),
        admission.line("a burst loses no admitted row; soak adds up every second", admission.passed, 18, "tests"),
    ]


def ring() -> list[Line]:
    """Three streams and more in this process: agreement, every order of small rings, schedules, broken rules."""
    folder = "tests/engines/local/multiway"
    agreed = run_tests("tests/engines/local/multiway/test_multiway_agreement.py")
    rule = run_tests(f"{folder}/test_rule.py")
    scheduled = run_tests(f"{folder}/test_ring_schedules.py", "-m", "not slow")
    parts = run_tests(f"{folder}/test_choice.py", f"{folder}/test_multiway_sessions.py", "tests/core/test_stash.py")
    joins = agreed.total("joins of many streams") + agreed.total("joins whose layout changes")
    return [
        agreed.line("3 to 16 streams, plain, ring, stash, chosen = oracle and DuckDB", joins, 2_064, "joins"),
        rule.line(
            "every order of steps of small rings and lines, real stages", rule.total("real stages"), 13_731, "states"
        ),
        rule.line("the same of the model; without the rule it blocks", rule.total("ring or a line"), 113_912, "states"),
        scheduled.line(
            "adversarial schedules of rings and stashes", scheduled.total("rings and stashes"), 500, "schedules"
        ),
        Line(
            "broken rules of rings and stashes caught",
            f"{rule.count('catches') + scheduled.count('catches')} rules",
            "≥ 30, 0 fail",
            rule.ok and scheduled.ok and rule.count("catches") + scheduled.count("catches") >= 30,
            scheduled.output if rule.ok else rule.output,
        ),
        parts.line("stash, choice, counters, failures and Ctrl-C in a stage", parts.passed, 99, "tests"),
    ]


def circuits() -> list[Line]:
    """The join as a circuit against the oracle, and the fast model against the circuit."""
    folder = "tests/engines/hardware"
    ran = run_tests("tests/agreement/test_hardware.py")
    cycles = run_tests(f"{folder}/test_circuit_model.py")
    rings = run_tests(f"{folder}/test_ring_model.py")
    return [
        ran.line("circuit = oracle: Amaranth", ran.total("joins on Amaranth"), 300, "joins"),
        ran.line("circuit = oracle: the fast model", ran.total("joins on the model"), 300, "joins"),
        ran.line("circuit = oracle: Verilator", ran.total("inputs on Verilator"), 40, "inputs"),
        cycles.line(
            "the fast model = Verilator: every result's cycle, every buffer's level",
            cycles.total("configurations on Verilator"),
            200,
            "circuits",
        ),
        rings.line(
            "the fast model of Circular-MJ and Stashed-MJ = Verilator, likewise",
            rings.total("configurations on Verilator"),
            120,
            "circuits",
        ),
        rings.line("the same = Amaranth", rings.count("test_model_and_circuit"), 240, "circuits"),
    ]


def rings() -> list[Line]:
    """Joins of three to eight streams as circuits: against the oracle, and deliberate bugs in their parts."""
    ran = run_tests("tests/engines/hardware/circular/test_ring_agreement.py")
    model = run_tests("tests/engines/hardware/circular/test_ring_model_agreement.py")
    bugs = run_tests("tests/engines/hardware/circular/test_mutants.py")
    return [
        ran.line("ring of stages = oracle: Amaranth", ran.total("ring joins on Amaranth"), 200, "joins"),
        ran.line("line with a stash = oracle: Amaranth", ran.total("line joins on Amaranth"), 200, "joins"),
        ran.line("ring and line = oracle: Verilator", ran.total("ring inputs on Verilator"), 48, "inputs"),
        model.line(
            "ring of stages = oracle: the fast model", model.total("joins of a ring on the model"), 200, "joins"
        ),
        model.line(
            "line with a stash = oracle: the fast model", model.total("joins of a line on the model"), 200, "joins"
        ),
        ran.line(
            "everything matches, room for one: never stuck, 3 to 8 streams", ran.count("never_stuck"), 30, "joins"
        ),
        bugs.line("rings and stashes: deliberate bugs caught", bugs.passed, 30, "bugs"),
    ]


def circuit_parts() -> list[Line]:
    """Deliberate bugs in circuits, their reports and the model; what is proven of their parts."""
    folder = "tests/engines/hardware"
    names = ("join", "network", "circuit_model", "ring_model", "proof", "report")
    ran = run_tests(*(f"{folder}/test_{name}_mutants.py" for name in names))
    proven = run_tests(f"{folder}/test_proofs.py", "-m", "not slow")
    return [
        ran.line("circuits: deliberate bugs caught", ran.passed, 144, "bugs"),
        proven.line("circuits: parts do what is claimed, whatever happens around them", proven.passed, 28, "proofs"),
    ]


def thesis() -> list[Line]:
    """The thesis' evaluation and that of Circular-MJ again, and the commands that explore circuits."""
    folder = "tests/cli/reproduce"
    ran = run_tests(f"{folder}/test_evaluation.py", f"{folder}/test_page.py")
    rings = run_tests(f"{folder}/test_circular.py")
    others = run_tests("tests/cli/sweep", "tests/cli/size", "tests/cli/circuit")
    engines = run_tests("tests/cli/bench/test_engines.py")
    return [
        ran.line("the thesis' printed figures, from the model of its circuits", ran.passed, 29, "tests"),
        rings.line(
            "Circular-MJ: within 1% of N · f / w; busy in 90% of its cycles at mp 0.01%; a stash saves 30% of scans",
            rings.passed,
            16,
            "tests",
        ),
        others.line("handfast simulate, synthesize, sweep, size, also of rings", others.passed, 142, "tests"),
        engines.line("one join on oracle, local, Spark and circuit: the same matches", engines.passed, 9, "tests"),
    ]
