"""A physical plan over rows at hand, run by the calling thread: no job.

A job sends its rows to a task and back, each by itself, and waits for its turn: for a few thousand rows that takes
several times as long as the work. Spark's operators ask for a task around them only for its memory and its locks, so they get one.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from py4j.clientserver import ClientServer
from pyspark.sql.types import StructType

from spark_trickle.catalyst.few import arrow_type
from spark_trickle.catalyst.guard import stopped_by
from spark_trickle.catalyst.java import scala_object
from spark_trickle.catalyst.later import later
from spark_trickle.catalyst.plan import Planner, kind_of

_NUMBERS = itertools.count(2**40)
"""Of our tasks, taken as negative: no task has such a number, nor do those stand for something that Spark knows."""
_ALL = 2**30
_KNOWN: dict[str, bool] = {}
"""Which schemas Arrow has; there are few different ones."""


def evaluated(planner: Planner, execution: Any) -> Any | None:
    """The rows of a query execution, a Scala sequence; None where that needs a job or types that Arrow does not have."""
    # Without a thread of its own in the JVM, one call does not find what the last one has set.
    if not isinstance(planner.spark.sparkContext._gateway, ClientServer):
        return None
    executed = execution.executedPlan()
    schema = later(executed).schema()
    if not _is_plain(str(schema.json())):
        return None
    rows = executed.execute()
    partitions = rows.getNumPartitions()
    if not partitions:
        return planner.seq([])
    if partitions > 1 or _is_exchanged(planner, rows):
        return None
    arrow = scala_object(planner.jvm.org.apache.spark.sql.execution.arrow, "ArrowConverters")
    with _task(planner) as task, stopped_by(partial(task.markInterrupted, "its time is over")):
        found = rows.iterator(rows.partitions()[0], task)
        # Spark's operators use one row again for the next, so rows are copied on their way, in one call for all.
        batches = arrow.toBatchIterator(found, schema, _ALL, "UTC", False, False, task)
        frame = arrow.toDataFrame(batches, schema, planner.session, "UTC", False, False)
    held = later(frame).queryExecution().analyzed()
    return held.data() if kind_of(held) == "LocalRelation" else None


def _is_plain(schema: str) -> bool:
    if schema not in _KNOWN:
        fields = StructType.fromJson(json.loads(schema)).fields
        _KNOWN[schema] = bool(fields) and all(arrow_type(field.dataType) is not None for field in fields)
    return _KNOWN[schema]


def _is_exchanged(planner: Planner, rows: Any) -> bool:
    """Some of them: what lies behind an exchange comes from another job."""
    scheduler = planner.spark.sparkContext._jsc.sc().dagScheduler()
    return not scheduler.getShuffleDependenciesAndResourceProfiles(rows)._1().isEmpty()


@contextmanager
def _task(planner: Planner) -> Iterator[Any]:
    """What Spark's operators need around them: memory and locks by a number that no task has, let go of at the end."""
    spark, nothing = planner.jvm.org.apache.spark, planner.none
    environment = spark.SparkEnv.get()
    number, memory, blocks = -next(_NUMBERS), environment.memoryManager(), environment.blockManager()
    own = spark.memory.TaskMemoryManager(memory, number)
    properties, metrics = planner.settings_for_tasks, spark.executor.TaskMetrics.empty()
    resources = scala_object(planner.jvm.scala.collection.immutable, "Map").empty()
    task = spark.TaskContextImpl(
        0, 0, 0, number, 0, 1, own, properties, environment.metricsSystem(), metrics, 1, resources
    )
    current = scala_object(spark, "TaskContext")
    blocks.registerTask(number)  # what is broadcast is read under a lock
    current.setTaskContext(task)
    try:
        yield task
    finally:
        task.markTaskCompleted(nothing)
        current.unset()
        blocks.releaseAllLocksForTask(number)
        own.cleanUpAllAllocatedMemory()
        memory.releaseAllExecutionMemoryForTask(number)
