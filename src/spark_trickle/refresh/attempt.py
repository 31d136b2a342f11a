"""One refresh on its way."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from spark_trickle.catalog import StreamTable
from spark_trickle.refresh.cost import GIVEN_UP
from spark_trickle.refresh.definitions import Prepared
from spark_trickle.refresh.interval import Interval
from spark_trickle.refresh.runtime import Runtime


class Steps:
    """Names and times the steps of one refresh."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._start = time.monotonic()
        self.seconds: dict[str, float] = {}
        self.changed_rows = 0

    @property
    def elapsed(self) -> float:
        return time.monotonic() - self._start

    def give_up(self) -> None:
        """What was computed so far was in vain."""
        self.seconds[GIVEN_UP] = self.seconds.pop("compute", 0.0)

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        self._runtime.on_step(name)
        start = time.monotonic()
        try:
            yield
        finally:
            spent = self.seconds.get(name, 0.0) + time.monotonic() - start
            self.seconds[name] = round(spent, 4)


@dataclass(frozen=True, slots=True)
class Attempt:
    """What is refreshed, from where to where, and with what."""

    table: StreamTable
    prepared: Prepared
    interval: Interval
    steps: Steps
    runtime: Runtime
