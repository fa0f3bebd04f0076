"""Which chain a handshake runs on: cores of machine code where a scan with one kernel is all of the join, else Python.

Both run the same protocol, and give the same result.
"""

from __future__ import annotations

import os

from handfast.core.recipe import recipe
from handfast.engines.local.chain_driver import ChainDriver
from handfast.engines.local.cores import Cores
from handfast.flow.topology import ChainTopology, by_size
from handfast.plan import Plan


def make_chain(plan: Plan, topology: ChainTopology, rows: int) -> Cores:
    """The chain of a join, whose messages have at most so many tuples."""
    if why_python(plan) is not None or topology.policy is not by_size:
        return ChainDriver(plan, topology, rows)
    from handfast.engines.local.native.driver import NativeDriver  # Numba takes a while to load

    return NativeDriver(plan, topology, rows)


def chain_words(plan: Plan) -> str:
    """How the cores of a chain run, and why."""
    why = why_python(plan)
    if why is None:
        return "the cores run as machine code: a scan with one kernel is all of the join"
    return f"the cores run in Python: {why}"


def why_python(plan: Plan) -> str | None:
    """Why the cores have to run in Python; None if they need not."""
    made = recipe(plan)
    pairing = made.pairing(0, 1)
    if os.name != "posix":
        return "this system is not like Unix"
    if pairing.index is not None:
        return "an index finds what may match; local_join='scan' tries every pair in machine code"
    if made.program.filters:
        return "no kernel says a part of the condition"
    if any(known.column.type.is_text for own in made.program.inputs for known in own):
        return "the condition reads text"
    return None
