"""Spark inside this process: checked beforehand, started, quiet, and gone without a trace."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from handfast.errors import EngineError, missing_extra

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

JAVA = 17  # the oldest that Spark 4 runs on


def check(what: str) -> None:
    """Refuse to start without PySpark and Java, and say what to install; `what` needs them."""
    for package in ("pyspark", "pandas", "google.protobuf"):
        if not _is_there(package):
            raise missing_extra(f"{what} needs", "spark", package)
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home, "bin", "java")) if home else shutil.which("java")
    version = _java_version(java) if java is not None else 0
    if version >= JAVA:
        return
    found = (
        f"{java} is Java {version}" if version else f"{java} does not run" if java else "there is no java on the PATH"
    )
    if home:
        found = f"JAVA_HOME is {home}, but {found}"
    raise EngineError(
        f"Spark needs Java {JAVA} or newer, and {found}; install one (Debian, Ubuntu: sudo apt-get install "
        f"openjdk-{JAVA}-jre-headless), or set JAVA_HOME to one that you have"
    )


@contextmanager
def session(
    cores: int, home: Path, check_interrupts: Callable[[], None], settings: Mapping[str, str] | None = None
) -> Iterator[SparkSession]:
    """A Spark session in this process that keeps all its files in `home`; local, unless `settings` name a master.

    Whatever is written to stderr meanwhile, above all Spark's log and its Python workers' output, goes to a file; if
    Spark fails, the file is kept and the error names it, unless `check_interrupts` says that the user has stopped it.
    """
    from py4j.protocol import Py4JError, Py4JJavaError, Py4JNetworkError  # type: ignore[import-untyped]
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # workers run on any python3 of the PATH otherwise
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    log = home / "spark.log"
    builder = SparkSession.builder.master(f"local[{cores}]").appName("handfast")
    for name, value in (_settings(home) | dict(settings or {})).items():
        builder = builder.config(name, value)
    try:
        with _stderr_in(log):  # the JVM inherits it, and hands it on to its Python workers
            # On another thread, because on the main one Spark would take Ctrl-C for itself.
            with ThreadPoolExecutor(1) as starter:
                spark = starter.submit(builder.getOrCreate).result()
            try:
                yield spark
            finally:
                spark.stop()
    except (PySparkException, Py4JError, ConnectionError) as error:
        check_interrupts()  # the signal that is to end us may have ended the JVM first
        if isinstance(error, Py4JNetworkError | ConnectionError):
            reason = "its JVM has ended"
        else:
            says = str(error.java_exception) if isinstance(error, Py4JJavaError) else str(error)
            reason = says.strip().partition("\n")[0].rstrip(".")
        raise EngineError(f"Spark failed: {reason}; its log is kept in {_keep(log)}") from error


def _is_there(package: str) -> bool:
    try:
        return find_spec(package) is not None
    except ModuleNotFoundError:  # not even the package it is in
        return False


def _settings(home: Path) -> dict[str, str]:
    return {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.local.dir": str(home / "local"),
        "spark.sql.warehouse.dir": str(home / "warehouse"),
        "spark.driver.extraJavaOptions": f"-Djava.io.tmpdir={home}",  # RocksDB unpacks its native library there
        "spark.sql.session.timeZone": "UTC",
        "spark.python.daemon.module": "handfast.engines.spark.daemon",  # a worker's first task starts at once
    }


def _java_version(java: str) -> int:
    """Its major version; 0 if it does not run."""
    try:
        said = subprocess.run([java, "-version"], capture_output=True, text=True, stdin=subprocess.DEVNULL).stderr
    except OSError:
        return 0
    version = re.search(r'version "(?:1\.)?(\d+)', said)
    return int(version[1]) if version else 0


@contextmanager
def _stderr_in(path: Path) -> Iterator[None]:
    """Let this process, and those that it starts meanwhile, write their errors to a file."""
    sys.stderr.flush()
    kept = os.dup(2)
    try:
        with path.open("ab") as file:
            os.dup2(file.fileno(), 2)
        yield
    finally:
        sys.stderr.flush()
        os.dup2(kept, 2)
        os.close(kept)


def _keep(log: Path) -> Path:
    """Move the log to where it outlives its folder."""
    descriptor, name = tempfile.mkstemp(prefix="handfast-", suffix=".log")
    with os.fdopen(descriptor, "wb") as file:
        file.write(log.read_bytes())
    return Path(name)
