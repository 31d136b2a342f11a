"""A limit on the time that a computation may take: its Spark jobs are cancelled when it is over."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from uuid import uuid4

from pyspark.sql import SparkSession

_GROUP = "spark.jobGroup.id"


class TookTooLong(Exception):  # noqa: N818 - not an error: another way may be shorter
    """The limit was reached before the end."""


@contextmanager
def time_limit(spark: SparkSession, seconds: float | None) -> Iterator[None]:
    """Raises TookTooLong where the block fails because its time was over; None is no limit."""
    if seconds is None:
        yield
        return
    context = spark.sparkContext
    group, over = uuid4().hex, threading.Event()
    before = context.getLocalProperty(_GROUP)

    def cancel() -> None:
        over.set()
        context._jsc.sc().cancelJobGroupAndFutureJobs(group)

    timer = threading.Timer(seconds, cancel)
    timer.daemon = True
    context.setLocalProperty(_GROUP, group)
    timer.start()
    try:
        yield
    except Exception as error:
        if over.is_set():
            raise TookTooLong(f"it was not done after {seconds:.1f} s") from error
        raise
    finally:
        timer.cancel()
        context._jsc.setLocalProperty(_GROUP, before)  # None removes it
