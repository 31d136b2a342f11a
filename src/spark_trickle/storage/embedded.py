"""The embedded Spark session: local, quiet, with Delta, over the folder of a home."""

from __future__ import annotations

import logging
import os
import shutil
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pyspark.sql import SparkSession

from spark_trickle.errors import SetupError

DELTA_PACKAGE = "io.delta:delta-spark_4.2_2.13:4.4.0"

REQUIRED = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
}


def start_session(home: Path) -> SparkSession:
    """Start Spark over `home`. Its own chatter goes to `home/spark.log`."""
    check_java()
    home.mkdir(parents=True, exist_ok=True)
    cores = str(os.cpu_count() or 2)
    builder = SparkSession.builder.appName("spark-trickle").master(
        os.environ.get("TRICKLE_MASTER", "local[*]")
    )
    settings = REQUIRED | {
        "spark.jars.packages": DELTA_PACKAGE,
        "spark.sql.warehouse.dir": str((home / "warehouse").resolve()),
        # Both, or every Delta commit verifies the whole file list again.
        # Without its native library, Hadoop starts a program to set a file's mode or to follow a link.
        "spark.driver.extraJavaOptions": "-Duser.timezone=UTC -Djdk.lang.Process.launchMechanism=VFORK",
        # The log without sidecars of checksums: half as many such programs, and no sidecar of another writer's commit.
        "spark.hadoop.fs.AbstractFileSystem.file.impl": "org.apache.hadoop.fs.local.RawLocalFs",
        "spark.sql.session.timeZone": "UTC",
        "spark.databricks.delta.snapshotPartitions": "2",
        "spark.sql.shuffle.partitions": cores,
        # Every refresh runs the same generated code again, if it was not thrown away in the meantime.
        "spark.sql.codegen.cache.maxEntries": "2000",
        # Every sort and every hash table begins with a page; the default of up to 64 MB is cleared for each of them.
        "spark.buffer.pageSize": "2m",
        "spark.driver.memory": os.environ.get("TRICKLE_DRIVER_MEMORY", "2g"),
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.scheduler.mode": "FAIR",
        # CREATE TABLE without USING makes a table that can be a source.
        "spark.sql.sources.default": "delta",
        "spark.log.level": "ERROR",
    }
    for name, value in settings.items():
        builder = builder.config(name, value)
    with _stderr_to(home / "spark.log"), _interrupts_deferred():
        try:
            spark = builder.getOrCreate()
        except Exception as error:
            raise SetupError(
                f"Spark could not be started: {str(error).splitlines()[0]}",
                hint=f"Look into {home / 'spark.log'}; the first start downloads Delta from Maven Central.",
                code="SPARK_START_FAILED",
            ) from None
    quiet()
    return spark


def adopt(spark: SparkSession) -> SparkSession:
    """Check that a session we are given can work with Delta; say what is missing."""
    if not isinstance(spark, SparkSession) or not hasattr(spark, "_jsparkSession"):
        raise SetupError(
            "A classic Spark session is needed: the planner lives in its JVM.",
            hint="Create it with SparkSession.builder.getOrCreate(), not with Spark Connect.",
            code="NO_CLASSIC_SESSION",
        )
    for name, value in REQUIRED.items():
        if value not in (spark.conf.get(name, "") or ""):
            raise SetupError(
                f"The Spark session is not configured for Delta: `{name}` is not `{value}`.",
                hint=f"Start it with .config('{name}', '{value}') and .config('spark.jars.packages', '{DELTA_PACKAGE}').",
                code="DELTA_NOT_CONFIGURED",
            )
    quiet()
    return spark


def check_java() -> None:
    """One sentence instead of a launcher's traceback."""
    home = os.environ.get("JAVA_HOME")
    found = (Path(home) / "bin" / "java").exists() if home else shutil.which("java") is not None
    if not found:
        where = f"JAVA_HOME is `{home}`, which has no bin/java" if home else "no `java` is on the PATH"
        raise SetupError(
            f"Spark needs Java 17, and {where}.",
            hint="Install it (Debian: apt install openjdk-17-jre-headless) or set JAVA_HOME.",
            code="JAVA_MISSING",
        )


def quiet() -> None:
    """PySpark logs every refused query as JSON; we translate those errors ourselves."""
    logging.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL)
    logging.getLogger("DataFrameQueryContextLogger").setLevel(logging.CRITICAL)


@contextmanager
def _interrupts_deferred() -> Iterator[None]:
    """Ctrl-C while the JVM starts would leave it running without us: it is heard when Spark is up."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    heard: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, _frame: heard.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    if heard:
        raise KeyboardInterrupt


@contextmanager
def _stderr_to(path: Path) -> Iterator[None]:
    """Start a child process whose stderr is a file: the JVM keeps what it was started with."""
    sys.stderr.flush()
    kept = os.dup(2)
    with path.open("ab") as file:
        os.dup2(file.fileno(), 2)
        try:
            yield
        finally:
            sys.stderr.flush()
            os.dup2(kept, 2)
            os.close(kept)
