"""The Spark session of the tests: the embedded one, tuned for tiny tables."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from pyspark.sql import SparkSession

from spark_trickle import Trickle
from spark_trickle.config import Settings
from spark_trickle.storage.embedded import start_session

TUNING = {
    "spark.sql.shuffle.partitions": "2",
    "spark.databricks.delta.snapshotPartitions": "1",
    # Tiny plans: compiling them costs more than interpreting them, and stages need no adapting.
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.adaptive.enabled": "false",
    # A bad checksum must fail a test instead of silently ending checkpoints.
    "spark.databricks.delta.checkpoint.exceptionThrowing.enabled": "true",
}


def start(home: Path) -> SparkSession:
    os.environ.setdefault("TRICKLE_MASTER", "local[2]")
    # Tables of tests are tiny; they shall be read by keys all the same. `as_in_production` reads them whole.
    os.environ.setdefault("TRICKLE_WHOLE_READ_BYTES", "0")
    os.environ.setdefault("JAVA_TOOL_OPTIONS", "-XX:+UseSerialGC")
    spark = start_session(home)
    for name, value in TUNING.items():
        spark.conf.set(name, value)
    return spark


@contextmanager
def as_in_production(trickle: Trickle) -> Iterator[None]:
    """Sources are read by keys only if they are large, which no table of a test is."""
    runtime = trickle._runtime
    kept = runtime.settings
    runtime.settings = replace(kept, whole_read_bytes=Settings().whole_read_bytes)
    try:
        yield
    finally:
        runtime.settings = kept


def forget_definitions(trickle: Trickle) -> None:
    """What this process has understood of definitions: the next refresh starts as that of another process."""
    definitions = trickle._runtime.definitions
    definitions._kept.clear()
    definitions._newest = None
