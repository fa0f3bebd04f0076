"""Whose a place is: marks that are put before a query starts, wherever Spark can write."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import handfast as hf
from handfast.engines.spark import places

pytestmark = pytest.mark.spark


def fill(spark: SparkSession, folder: Path) -> None:
    """Write rows as a batch of `hf.write` does."""
    spark.range(3).write.parquet(str(folder / "handfast_batch=0"))


def claim(spark: SparkSession, checkpoint: Path, place: Path, *, alone: bool = True) -> None:
    places.check(spark, str(checkpoint), {str(place): "to"}, alone=alone)
    places.mark(spark, str(checkpoint), [str(place)])


@pytest.mark.parametrize("name", ["out", "out[1]{2}*"])
def test_a_filled_place_is_open_to_its_own_checkpoint_alone(spark: SparkSession, tmp_path: Path, name: str) -> None:
    place, first, second = tmp_path / name, tmp_path / "first", tmp_path / "second"
    claim(spark, first, place)
    fill(spark, place)
    claim(spark, first, place)
    claim(spark, second, tmp_path / "other")
    refusal = r"to writes to .*, which belongs to the checkpoint .*/first; take another path, or go on with that"
    for checkpoint in (second, tmp_path / "third"):
        with pytest.raises(hf.SpecError, match=refusal):
            claim(spark, checkpoint, place)
    assert not (tmp_path / "third").exists(), "what is refused leaves nothing behind"
    shutil.rmtree(first)
    with pytest.raises(hf.SpecError, match="which is gone; take another path, or empty the folder"):
        claim(spark, first, place)


def test_a_mark_counts_while_its_checkpoint_is_there_or_rows_are(spark: SparkSession, tmp_path: Path) -> None:
    claim(spark, tmp_path / "first", tmp_path / "out")
    with pytest.raises(hf.SpecError, match="belongs to the checkpoint"):
        claim(spark, tmp_path / "second", tmp_path / "out")
    shutil.rmtree(tmp_path / "first")
    claim(spark, tmp_path / "second", tmp_path / "out")


def test_a_checkpoint_keeps_its_places_when_it_is_moved(spark: SparkSession, tmp_path: Path) -> None:
    claim(spark, tmp_path / "first", tmp_path / "out")
    fill(spark, tmp_path / "out")
    (tmp_path / "first").rename(tmp_path / "moved")
    claim(spark, tmp_path / "moved", tmp_path / "out")


def test_what_nobody_has_marked_is_in_the_way_of_a_new_checkpoint(spark: SparkSession, tmp_path: Path) -> None:
    fill(spark, tmp_path / "of hf.write")
    (tmp_path / "of Spark" / "_spark_metadata").mkdir(parents=True)
    (tmp_path / "of Spark" / "_spark_metadata" / "0").write_text("v1\n")
    for place in ("of hf.write", "of Spark"):
        with pytest.raises(hf.SpecError, match="which belongs to a stream with another checkpoint; take another path"):
            claim(spark, tmp_path / "new", tmp_path / place, alone=False)
    spark.range(3).write.parquet(str(tmp_path / "plain"))
    claim(spark, tmp_path / "new", tmp_path / "plain", alone=False)
    spark.range(3).write.parquet(str(tmp_path / "more"))
    with pytest.raises(hf.SpecError, match=r"to writes to .*/more, and something is there already; take another path"):
        claim(spark, tmp_path / "new", tmp_path / "more")


def test_a_checkpoint_from_before_there_were_marks_goes_on(spark: SparkSession, tmp_path: Path) -> None:
    fill(spark, tmp_path / "out")
    (tmp_path / "old").mkdir()
    (tmp_path / "old" / "metadata").write_text(json.dumps({"id": "6b1f"}))
    claim(spark, tmp_path / "old", tmp_path / "out")
    claim(spark, tmp_path / "old", tmp_path / "out")
    with pytest.raises(hf.SpecError, match=r"which belongs to the checkpoint .*/old;"):
        claim(spark, tmp_path / "new", tmp_path / "out")
