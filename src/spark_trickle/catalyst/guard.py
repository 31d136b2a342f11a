"""A limit on the time that a computation may take: when it is over, its Spark jobs are cancelled and its thread stops."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from uuid import uuid4

from pyspark.sql import SparkSession

_GROUP = "spark.jobGroup.id"


class TookTooLong(Exception):  # noqa: N818 - not an error: another way may be shorter
    """The limit was reached before the end."""


@dataclass
class _Limit:
    """The limit of one thread's computation."""

    over: threading.Event = field(default_factory=threading.Event)
    stops: list[Callable[[], None]] = field(default_factory=list)
    """What stops the thread's own work under way."""


_LIMITS = threading.local()


@contextmanager
def time_limit(spark: SparkSession, seconds: float | None) -> Iterator[None]:
    """Raises TookTooLong where the block fails because its time was over; None is no limit."""
    if seconds is None:
        yield
        return
    context = spark.sparkContext
    group, limit = uuid4().hex, _Limit()
    before, outer = context.getLocalProperty(_GROUP), getattr(_LIMITS, "current", None)

    def cancel() -> None:
        limit.over.set()
        context._jsc.sc().cancelJobGroupAndFutureJobs(group)
        for stop in list(limit.stops):
            stop()

    timer = threading.Timer(seconds, cancel)
    timer.daemon = True
    context.setLocalProperty(_GROUP, group)
    _LIMITS.current = limit
    timer.start()
    try:
        yield
    except Exception as error:
        if limit.over.is_set():
            raise TookTooLong(f"it was not done after {seconds:.1f} s") from error
        raise
    finally:
        timer.cancel()
        _LIMITS.current = outer
        context._jsc.setLocalProperty(_GROUP, before)  # None removes it


def check_time() -> None:
    """Raises TookTooLong when the time of this thread's computation is over: to be asked between two steps."""
    limit: _Limit | None = getattr(_LIMITS, "current", None)
    if limit is not None and limit.over.is_set():
        raise TookTooLong("its time is over")


@contextmanager
def stopped_by(stop: Callable[[], None]) -> Iterator[None]:
    """Work of this thread itself, which `stop`, called by another one, ends before its time."""
    limit: _Limit | None = getattr(_LIMITS, "current", None)
    if limit is None:
        yield
        return
    limit.stops.append(stop)
    try:
        check_time()
        yield
    finally:
        limit.stops.remove(stop)
