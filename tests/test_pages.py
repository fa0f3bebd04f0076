"""The pages of docs/ that have snippets: each runs from top to bottom, and prints what the page says."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.pages import run_page

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DOCS = Path(__file__).resolve().parent.parent / "docs"


@pytest.mark.spark
def test_testing_runs_as_it_stands(spark: SparkSession) -> None:
    run_page(DOCS / "testing.md", spark=spark)
