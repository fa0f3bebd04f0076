"""What tests share: one Spark session for the whole run."""

from __future__ import annotations

import fcntl
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests import jvm

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


jvm.start_lightly()


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """A local Spark session of two cores that is ready for stateful operators."""
    from pyspark.sql import SparkSession

    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    os.environ["PYSPARK_PYTHON"] = sys.executable
    home = tmp_path_factory.mktemp("spark")
    provider = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    session = (
        SparkSession.builder.master("local[2]")
        .appName("handfast tests")
        .config("spark.driver.memory", "2g")
        .config("spark.local.dir", str(home / "local"))
        .config("spark.sql.warehouse.dir", str(home / "warehouse"))
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.streaming.stateStore.providerClass", provider)
        # types that Spark is shy of; here, for py4j may call from a thread of the JVM that knows no other session
        .config("spark.sql.timeType.enabled", "true")
        .config("spark.sql.geospatial.enabled", "true")
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("ERROR")
    yield session
    session.stop()


@pytest.fixture
def shared_session(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pipelines on Spark run in the session of the tests instead of one that is started and stopped for each."""

    from handfast.engines.spark import embedded

    @contextmanager
    def session(cores: int, home: Path, check_interrupts: Any, settings: Any = None) -> Iterator[SparkSession]:
        yield spark.newSession()

    monkeypatch.setattr(embedded, "session", session)


@pytest.fixture(scope="session")
def yosys(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Yosys has been started once: its first start on a machine compiles it, and two at a time would do so twice."""
    from handfast.engines.hardware import toolchain

    folder = tmp_path_factory.mktemp("yosys")
    with open(tmp_path_factory.getbasetemp().parent / "yosys.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        toolchain.yosys("log ready", folder=folder)


# files of long tests, each of which runs in one process: they begin first, so that none is left at the end
_LONG = (
    "test_kills.py",
    "test_exactly_once.py",
    "test_interrupt.py",
    "test_write.py",
    "test_kinds.py",
    "test_connect.py",
    "test_proofs.py",
    "test_spark_mutants.py",
    "test_mutants.py",
    "test_readme.py",
    "test_pages.py",
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the long files in front; the order is the same in every process."""
    order = {name: place for place, name in enumerate(_LONG)}
    items.sort(key=lambda item: order.get(item.path.name, len(_LONG)))
