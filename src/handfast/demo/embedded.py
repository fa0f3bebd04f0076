"""Spark inside this process: checked beforehand, started, quiet, and gone without a trace."""

from __future__ import annotations

import logging
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from handfast.errors import EngineError, MissingExtraError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

JAVA = 17  # the oldest that Spark 4 runs on


def check() -> None:
    """Refuse to start without PySpark and Java, and say what to install."""
    for package in ("pyspark", "pandas", "google.protobuf"):
        if not _is_there(package):
            raise MissingExtraError(
                f"The demo needs the 'spark' extra ({package} is missing): pip install 'handfast[spark]'"
            )
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
def session(cores: int, home: Path) -> Iterator[SparkSession]:
    """A local Spark session of so many cores that keeps all its files in `home`.

    Its log and the output of its Python workers go to a file; if Spark fails, the file is kept and the error names it.
    """
    from py4j.protocol import Py4JError  # type: ignore[import-untyped]
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # workers run on any python3 of the PATH otherwise
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    log = home / "spark.log"
    builder = SparkSession.builder.master(f"local[{cores}]").appName("handfast demo")
    for name, value in _settings(home).items():
        builder = builder.config(name, value)
    spark = None
    try:
        with _stderr_in(log), _interrupted_later():  # the JVM inherits its stderr
            spark = builder.getOrCreate()
        with _logging_in(log):
            yield spark
    except (PySparkException, Py4JError) as error:
        reason = str(error).strip().partition("\n")[0].rstrip(".")
        raise EngineError(f"Spark failed: {reason}; its log is kept in {_keep(log)}") from error
    finally:
        if spark is not None:
            spark.stop()


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
    """Let this process, and those it starts meanwhile for good, write their errors to a file."""
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


@contextmanager
def _logging_in(path: Path) -> Iterator[None]:
    """Let Python's loggers write to a file: py4j logs a traceback when Ctrl-C meets it at work."""
    handler = logging.FileHandler(path)
    logging.getLogger().addHandler(handler)
    try:
        yield
    finally:
        logging.getLogger().removeHandler(handler)
        handler.close()


@contextmanager
def _interrupted_later() -> Iterator[None]:
    """Hold Ctrl-C back: a JVM that is left alone half-started leaves its files behind."""
    asked = []
    before = signal.signal(signal.SIGINT, lambda *_: asked.append(True))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    if asked:
        raise KeyboardInterrupt


def _keep(log: Path) -> Path:
    """Move the log to where it outlives its folder."""
    descriptor, name = tempfile.mkstemp(prefix="handfast-demo-", suffix=".log")
    with os.fdopen(descriptor, "wb") as file:
        file.write(log.read_bytes())
    return Path(name)
