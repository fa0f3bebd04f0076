"""Workers stay for many tasks: what they have imported is left out of the garbage collection that follows each task.

Spark collects after every task of a Python worker. With all that a join imports that takes a worker a tenth of a second
and more, of the CPUs that the next task, or the commit of the batch, would have had.
"""

from __future__ import annotations

import gc
import sys

from pyspark import TaskContext

_known: set[str] = set()  # the modules that were left out already


def settle() -> None:
    """At the end of a task: leave out of later collections what is there now, if modules came since the last time."""
    if TaskContext.get() is not None and not _known.issuperset(sys.modules):
        gc.freeze()
        _known.update(sys.modules)
