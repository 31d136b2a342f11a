"""What the daemon is doing, for whoever watches."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from spark_trickle.scheduler.due import TableState
from spark_trickle.scheduler.schedules import Cron, Every, next_instant


@dataclass(frozen=True, slots=True)
class Running:
    """A refresh under way: the step it has reached, and for how long it has been going."""

    name: str
    step: str
    seconds: float


@dataclass(frozen=True, slots=True)
class Overview:
    """What is being refreshed, what waits for its turn, most urgent first, and what will be due next."""

    running: tuple[Running, ...]
    waiting: tuple[str, ...]
    next_name: str = ""
    next_at: datetime | None = None


class Progress:
    """How far the refreshes of this process are; steps are told by the threads that take them."""

    def __init__(self) -> None:
        self._names: dict[int, str] = {}
        self._steps: dict[str, tuple[str, float]] = {}

    def begin(self, name: str) -> None:
        self._names[threading.get_ident()] = name
        self._steps[name] = ("waiting", time.monotonic())

    def step(self, step: str) -> None:
        name = self._names.get(threading.get_ident())
        if name is not None:
            self._steps[name] = (step, self._steps[name][1])

    def end(self) -> None:
        self._steps.pop(self._names.pop(threading.get_ident()), None)

    def running(self) -> tuple[Running, ...]:
        now = time.monotonic()
        started = sorted(self._steps.items(), key=lambda item: item[1][1])
        return tuple(Running(name, step, now - since) for name, (step, since) in started)


def next_due(tables: Sequence[TableState], now: datetime) -> tuple[str, datetime | None]:
    """The table whose schedule asks first for a newer data timestamp, and when."""
    found: list[tuple[datetime, str]] = []
    for table in tables:
        if table.active and isinstance(table.schedule, Every | Cron):
            at = next_instant(table.schedule, now)
            if at is not None:
                found.append((at, table.name))
    if not found:
        return "", None
    at, name = min(found)
    return name, at
