"""The definition of a stream table, kept in the table's own properties: a lost catalog can be rebuilt from it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from spark_trickle.names import TableName, quote
from spark_trickle.storage.commits import Commit, read_commit
from spark_trickle.storage.tables import DeltaTables
from spark_trickle.storage.warehouse import location_of

PROPERTY = "trickle.definition"


def written_definition(definition: Mapping[str, object]) -> str:
    """A definition as the property holds it."""
    return json.dumps(definition, sort_keys=True)


def describe(spark: SparkSession, location: str, text: str) -> None:
    """Make a table say how it is defined: a commit without data."""
    session = spark.newSession()
    session.conf.set("spark.sql.parser.escapedStringLiterals", "false")
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    session.sql(f"ALTER TABLE delta.{quote(location)} SET TBLPROPERTIES ('{PROPERTY}' = '{escaped}')")


def described_tables(
    spark: SparkSession, tables: DeltaTables
) -> Iterator[tuple[TableName, str, dict[str, Any]]]:
    """Every table of the session catalog that says it is a stream table: its name, place and definition."""
    for (database,) in spark.sql("SHOW DATABASES").collect():
        for row in spark.sql(f"SHOW TABLES IN {quote(database)}").collect():
            name = TableName("spark_catalog", row["namespace"], row["tableName"])
            if row["isTemporary"]:
                continue
            try:
                location = location_of(spark, name)
                found = tables.setting(location, PROPERTY) if tables.exists(location) else ""
            except (PySparkException, Py4JError):
                continue  # a view, a table that is not Delta, or one that cannot be read
            if found:
                yield name, location, json.loads(found)


def last_stamped(tables: DeltaTables, location: str) -> Commit | None:
    """The newest commit of ours that the log still has."""
    for version in range(tables.latest(location).version, -1, -1):
        commit = read_commit(tables, location, version)
        if commit.stamp is not None:
            return commit
        if commit.gone:
            return None
    return None
