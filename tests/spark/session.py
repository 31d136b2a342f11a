"""The Spark session of the tests: the embedded one, tuned for tiny tables."""

from __future__ import annotations

import os
from pathlib import Path

from pyspark.sql import SparkSession

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
    os.environ.setdefault("JAVA_TOOL_OPTIONS", "-XX:+UseSerialGC")
    spark = start_session(home)
    for name, value in TUNING.items():
        spark.conf.set(name, value)
    return spark
