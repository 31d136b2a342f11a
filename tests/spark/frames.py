"""Functions that define stream tables in tests; other processes find them by name."""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the name everybody knows


def doubled(value):  # type: ignore[no-untyped-def]
    return None if value is None else 2 * value


def totals(spark: SparkSession) -> DataFrame:
    """A grouped DataFrame over a filter with a Python function."""
    rows = spark.table("t").where(F.udf(doubled, "int", useArrow=False)("v") > 2)
    return rows.groupBy("k").agg(F.count("*").alias("n"), F.sum("v").alias("total"))


def nothing(spark: SparkSession) -> None:
    """Forgets to return."""
    spark.table("t")
