"""How a join is laid out in this process: bound to the columns of its streams, as the options ask."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from handfast.core.planner import make_plan
from handfast.engines.local.options import LocalOptions
from handfast.errors import SpecError
from handfast.flow.batch import schema_of
from handfast.flow.wide import wide_schema
from handfast.plan import Plan
from handfast.spec.join import JoinSpec


def checked_options(options: Any) -> LocalOptions:
    """The options that are given, or the defaults for None."""
    if options is not None and not isinstance(options, LocalOptions):
        raise SpecError(f"options must be hf.LocalOptions(…), not {options!r}")
    return options or LocalOptions()


def lay_out(spec: JoinSpec, schemas: Mapping[str, pa.Schema], options: LocalOptions) -> Plan:
    """The plan of a join over streams with these columns."""
    bound = spec.bind({name: schema_of(schemas[name]) for name in spec.names})
    arrow = [wide_schema(schemas[name]) for name in spec.names]
    return make_plan(bound, options.cores, arrow, options.local_join, handshake=options.handshake)
