"""One Spark session per definition: the settings and the namespace its text was written under."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import SparkSession

ALWAYS = (
    "spark.sql.ansi.enabled",
    "spark.sql.caseSensitive",
    "spark.sql.session.timeZone",
    "spark.sql.timestampType",
    "spark.sql.mapKeyDedupPolicy",
)
"""Settings that change what a query means; stored whatever their value."""

PREFIXES = (
    "spark.sql.ansi.",
    "spark.sql.legacy.",
    "spark.sql.parser.",
    "spark.sql.decimalOperations.",
    "spark.sql.session.",
    "spark.sql.crossJoin.",
    "spark.sql.groupBy",
    "spark.sql.orderBy",
)
"""The same for settings that most sessions never touch; stored when set."""

OURS = {
    # Labels in EXPLAIN and fingerprints must not be cut short.
    "spark.sql.debug.maxToStringFields": "10000",
    # A bounded collect looks at all partitions in one job instead of one, then four, then sixteen.
    "spark.sql.limit.initialNumPartitions": "1000000",
    # Rows held by the driver are projected by one of these rules, without a job.
    "spark.sql.optimizer.excludedRules": "",
    # A list of keys is a parameter of the generated code, not a part of it: no compiling for every refresh.
    "spark.sql.optimizer.inSetSwitchThreshold": "0",
    # A list is handed to the files in parts, so that pages without any of the keys are not read (see `listing`).
    "spark.sql.parquet.pushdown.inFilterThreshold": "256",
    # Comparing every key of a list with every dictionary takes longer than reading.
    "parquet.filter.dictionary.enabled": "false",
    # Lists of dates and times reach the files as Java's new types: the old ones have no days between two calendars.
    "spark.sql.datetime.java8API.enabled": "true",
    # A missing or broken file must fail the refresh: skipping it would be a wrong answer.
    "spark.sql.files.ignoreMissingFiles": "false",
    "spark.sql.files.ignoreCorruptFiles": "false",
}
"""What refreshes need whatever the user's session says."""


def meaning_of(spark: SparkSession) -> dict[str, str]:
    """The session's settings that decide what a query means."""
    found = {name: str(spark.conf.get(name)) for name in ALWAYS}
    found.update({k: str(v) for k, v in spark.conf.getAll.items() if k.startswith(PREFIXES)})
    return found


def session_for(
    spark: SparkSession, settings: Mapping[str, str], catalog: str, database: str
) -> SparkSession:
    """A session of its own: the parent's tuning, the definition's meaning; no temporary views or functions."""
    session = spark.newSession()
    for name, value in {**spark.conf.getAll, **settings}.items():
        if name.startswith(("spark.sql.", "spark.databricks.delta.")) and session.conf.isModifiable(name):
            session.conf.set(name, value)
    for name, value in OURS.items():
        session.conf.set(name, value)
    if session.catalog.currentCatalog() != catalog:
        session.catalog.setCurrentCatalog(catalog)
    if session.catalog.currentDatabase() != database:
        session.catalog.setCurrentDatabase(database)
    return session
