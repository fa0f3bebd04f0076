"""How a join is laid out in this process: bound to the columns of its streams, as the options ask."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from handfast.core.planner import make_plan
from handfast.engines.local.multiway.finder import LEAST, MOST, MultiwayFinder
from handfast.engines.local.options import LocalOptions
from handfast.errors import SpecError
from handfast.flow.batch import schema_of
from handfast.flow.wide import wide_schema
from handfast.plan import PLAIN, Plan
from handfast.spec.join import JoinSpec


def checked_options(options: Any) -> LocalOptions:
    """The options that are given, or the defaults for None."""
    if options is not None and not isinstance(options, LocalOptions):
        raise SpecError(f"options must be hf.LocalOptions(…), not {options!r}")
    return options or LocalOptions()


def lay_out(spec: JoinSpec, schemas: Mapping[str, pa.Schema], options: LocalOptions) -> Plan:
    """The plan of a join over streams with these columns."""
    _check_algorithm(len(spec.names), options)
    bound = spec.bind({name: schema_of(schemas[name]) for name in spec.names})
    arrow = [wide_schema(schemas[name]) for name in spec.names]
    return make_plan(bound, options.cores, arrow, options.local_join, handshake=options.handshake)


def finder_of(plan: Plan, options: LocalOptions) -> MultiwayFinder | None:
    """How one core finds matches, if not on its own: where three and more streams are joined."""
    streams = len(plan.join.schemas)
    if not LEAST <= streams <= MOST:
        return None
    return MultiwayFinder(plan, options.algorithm, options.stage_buffer, options.stash_size)


def _check_algorithm(streams: int, options: LocalOptions) -> None:
    if options.algorithm in (None, PLAIN):
        return
    if not LEAST <= streams <= MOST:
        raise SpecError(
            f"LocalOptions(algorithm={options.algorithm!r}) joins {LEAST} to {MOST} streams, and these are {streams}; "
            "leave algorithm out"
        )
