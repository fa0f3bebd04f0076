"""A stateful processor that is read where rows come: before that Spark only asks for its states, in a new Python.

That Python would import the whole join for it, in the first batch of every query. So this imports next to nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from pyspark import cloudpickle
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle
from pyspark.sql.types import BinaryType, StringType, StructType

if TYPE_CHECKING:
    import pandas as pd

# Names of states and columns are those of every checkpoint there is: they stay ("attention": when who was last heard
# of). They are not text, which Spark would have to parse, twice for every state of every core in every batch.
VALUE_OF_CORE = (
    "core",
    StructType()
    .add("manifest", BinaryType())
    .add("attention", StringType())
    .add("metrics", StringType())
    .add("about", StringType()),
)
VALUE_OF_SEQUENCER = "sequencer", StructType().add("sequencer", StringType()).add("about", StringType())
BLOCKS = "blocks", StructType().add("id", StringType()), StructType().add("block", BinaryType())


class Deferred(StatefulProcessor):
    """Runs another processor with one value and the blocks in its state; that one opens them by a handle as ever."""

    def __init__(self, processor: StatefulProcessor, value: tuple[str, StructType]) -> None:
        self._pickled = cloudpickle.dumps(processor)  # type: ignore[no-untyped-call]
        self._value = value

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Open the states, which the driver is to know."""
        self._opened = Opened(handle.getValueState(*self._value), handle.getMapState(*BLOCKS))

    def handleInputRows(self, key: Any, rows: Any, timerValues: Any) -> Iterator[pd.DataFrame]:
        """What the other processor does with a batch."""
        processor = cloudpickle.loads(self._pickled)
        processor.init(self._opened)
        yield from processor.handleInputRows(key, rows, timerValues)

    def close(self) -> None:
        """Nothing to close: the state store is Spark's."""


class Opened:
    """States that are open, as a handle of the processor that uses them."""

    def __init__(self, value: Any, blocks: Any) -> None:
        self._value, self._blocks = value, blocks

    def getValueState(self, *_: Any) -> Any:
        return self._value

    def getMapState(self, *_: Any) -> Any:
        return self._blocks
