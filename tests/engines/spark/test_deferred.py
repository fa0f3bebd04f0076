"""What Spark's driver starts a new Python for is quick: it is asked for the states of a processor, and nothing else."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

from pyspark.sql.types import StructType

from handfast.engines.spark.deferred import VALUE_OF_CORE, VALUE_OF_SEQUENCER, Deferred
from handfast.engines.spark.operator import JoinProcessor
from handfast.engines.spark.sequence import SequenceProcessor
from tests.engines.spark.driven import plan

_ASKED = """
import pickle, sys
processor = pickle.load(sys.stdin.buffer)

class Handle:
    def getValueState(self, name, columns):
        print(name, columns.simpleString())

    def getMapState(self, name, key, value):
        print(name, key.simpleString(), value.simpleString())

processor.init(Handle())
heavy = {"numpy", "pandas", "pyarrow", "handfast.plan", "handfast.core"} & sys.modules.keys()
assert not heavy, heavy
"""


class Handle:
    """Writes down what is asked of it."""

    def __init__(self) -> None:
        self.asked: list[tuple[Any, ...]] = []

    def getValueState(self, *asked: Any) -> None:
        self.asked.append(asked)

    getMapState = getValueState


def test_a_driver_learns_the_states_and_imports_nothing_of_the_join() -> None:
    from pyspark import cloudpickle

    pickled = cloudpickle.dumps(Deferred(JoinProcessor(plan("range")), VALUE_OF_CORE))
    done = subprocess.run([sys.executable, "-c", _ASKED], input=pickled, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()
    value, blocks = done.stdout.decode().splitlines()
    assert value == "core struct<manifest:binary,attention:string,metrics:string,about:string>"
    assert blocks == "blocks struct<id:string> struct<block:binary>"


def test_the_states_that_are_told_are_those_that_are_opened() -> None:
    join = plan("range")
    for processor, value in ((JoinProcessor(join), VALUE_OF_CORE), (SequenceProcessor(join), VALUE_OF_SEQUENCER)):
        own, told = Handle(), Handle()
        processor.init(own)  # type: ignore[arg-type]
        Deferred(processor, value).init(told)  # type: ignore[arg-type]
        assert own.asked == told.asked


def test_no_state_is_described_by_text_that_spark_would_parse() -> None:
    handle = Handle()
    Deferred(JoinProcessor(plan("range")), VALUE_OF_CORE).init(handle)  # type: ignore[arg-type]
    assert all(isinstance(columns, StructType) for _, *own in handle.asked for columns in own)
