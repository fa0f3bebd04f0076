"""Which checkpoint a folder belongs to: the folders that a query writes to are marked as its own before it starts.

Every checkpoint numbers its batches from 0. In one folder the batches of a second checkpoint would replace those of the
first, or be left out because they seem to be written already.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any
from uuid import uuid4

from pyspark.sql import SparkSession

from handfast.engines.spark.text import has_files, read_text, write_text
from handfast.errors import SpecError

BATCH = "handfast_batch"  # the column, and the folders, that hold a batch's number

_MARK = "_handfast_owner"  # in a place: whose it is; readers of the folder pass over such a name
_ID = "handfast_id"  # in a checkpoint: what its marks say
_RUN = "metadata"  # in a checkpoint that has run: Spark's own id of the query
_LOG = "_spark_metadata"  # in a folder of Spark's own file sink


def check(spark: SparkSession, checkpoint: str, places: Mapping[str, str], *, alone: bool) -> None:
    """Refuse a place that belongs to another checkpoint, and with `alone` also one that holds files without a mark.

    Args:
        spark: The session, which reaches the file systems.
        checkpoint: The checkpoint of the query that is to write.
        places: What the user calls each folder, by its path.
        alone: Whether files that nobody has marked are refused as well.
    """
    ours = _id(spark, checkpoint)
    has_run = ours is not None and read_text(spark, f"{checkpoint}/{_ID}") is None  # with a version that put no marks
    for place, what in places.items():
        owner = _owner(spark, place)
        if owner is None:
            if not has_run:
                _check_unmarked(spark, what, place, alone=alone)
        elif owner["id"] != ours and (has_files(spark, place) or owner["id"] == _id(spark, owner["checkpoint"])):
            if _id(spark, owner["checkpoint"]) is None:
                raise SpecError(
                    f"{what} writes to {place}, which belongs to the checkpoint {owner['checkpoint']}, which is gone; "
                    "take another path, or empty the folder"
                )
            raise _belongs_to_another(what, place, f"which belongs to the checkpoint {owner['checkpoint']}")


def has_run(spark: SparkSession, checkpoint: str) -> bool:
    """Whether a query has run with this checkpoint."""
    return read_text(spark, f"{checkpoint}/{_RUN}") is not None


def mark(spark: SparkSession, checkpoint: str, places: Iterable[str]) -> None:
    """Mark the places as the checkpoint's own."""
    ours = _id(spark, checkpoint)
    if ours is None:
        ours = str(uuid4())
        write_text(spark, f"{checkpoint}/{_ID}", ours)
    for place in places:
        owner = _owner(spark, place)
        if owner is None or owner["id"] != ours:
            said = json.dumps({"checkpoint": checkpoint, "id": ours}, ensure_ascii=False)
            write_text(spark, f"{place}/{_MARK}", said)


def _check_unmarked(spark: SparkSession, what: str, place: str, *, alone: bool) -> None:
    if read_text(spark, f"{place}/{_LOG}") is not None or has_files(spark, place, f"/{BATCH}="):
        raise _belongs_to_another(what, place, "which belongs to a stream with another checkpoint")
    if alone and has_files(spark, place):
        raise SpecError(f"{what} writes to {place}, and something is there already; take another path")


def _id(spark: SparkSession, checkpoint: str) -> str | None:
    """The id by which marks name a checkpoint; None if it is new."""
    said = read_text(spark, f"{checkpoint}/{_ID}")
    if said:
        return said.strip()
    run = read_text(spark, f"{checkpoint}/{_RUN}")
    return str(json.loads(run)["id"]) if run else None


def _owner(spark: SparkSession, place: str) -> dict[str, Any] | None:
    """The mark of a place; None if there is none, or one that was not written to its end."""
    said = read_text(spark, f"{place}/{_MARK}")
    found: dict[str, Any] | None = json.loads(said) if said else None
    return found


def _belongs_to_another(what: str, place: str, owner: str) -> SpecError:
    return SpecError(f"{what} writes to {place}, {owner}; take another path, or go on with that checkpoint")
