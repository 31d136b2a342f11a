"""The daemon: look what is due, refresh it, again.

One thread plans; workers refresh. What two refreshes must not do at once is decided by the leases in the catalog,
so any number of daemons may share one: each works on what the others have not begun.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal

from spark_trickle.catalog import StreamTable
from spark_trickle.errors import TrickleError
from spark_trickle.refresh.choose import Action
from spark_trickle.refresh.graph import read_graph
from spark_trickle.refresh.interval import Pins
from spark_trickle.refresh.remember import record_failure
from spark_trickle.refresh.results import RefreshResult
from spark_trickle.refresh.run import refresh_table
from spark_trickle.refresh.runtime import Runtime
from spark_trickle.refresh.upstream import settled
from spark_trickle.scheduler.due import Job, due
from spark_trickle.scheduler.retry import Retry, is_transient
from spark_trickle.scheduler.schedules import Manual, parse_schedule
from spark_trickle.scheduler.world import World, look_around

_MOST_WORKERS = 64
_EPOCHS_KEPT = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Event:
    """Something that people and alerts may want to know."""

    kind: Literal["started", "refreshed", "skipped", "failed", "suspended"]
    name: str
    at: datetime
    result: RefreshResult | None = None
    error: TrickleError | None = None


def _nobody(_event: Event) -> None:
    """The default listener."""


class Daemon:
    """Keeps the stream tables of a catalog as fresh as their schedules ask."""

    def __init__(self, runtime: Runtime, on_event: Callable[[Event], None] = _nobody) -> None:
        self._runtime = runtime
        self._tell = on_event
        self._guard = threading.RLock()
        self._pool = ThreadPoolExecutor(_MOST_WORKERS, thread_name_prefix="refresh")
        self._pins: dict[datetime, Pins] = {}
        self.waiting: dict[str, Job] = {}
        self.running: dict[str, Job] = {}

    def run(self, stop: threading.Event) -> None:
        """Tick until told to stop; then finish what has begun."""
        try:
            while not stop.is_set():
                self.tick()
                stop.wait(self._runtime.settings.scheduler_interval_ms / 1000)
        finally:
            self.finish()

    def tick(self) -> None:
        """Queue what is due and start what is ready."""
        with self._guard:
            busy = {*self.waiting, *self.running}
        world = look_around(self._runtime, busy)
        jobs = due(world.states, world.now, self._retry)
        ready = self._with_pins(jobs, world)
        with self._guard:
            self.waiting.update((job.name, job) for job in ready)
        self._start_ready()

    def finish(self) -> None:
        """Wait for what is running; what only waits is left to the next daemon."""
        with self._guard:
            self.waiting.clear()
        self._pool.shutdown(wait=True)

    @property
    def _retry(self) -> Retry:
        return Retry(most_errors=self._runtime.settings.max_consecutive_errors)

    def _with_pins(self, jobs: list[Job], world: World) -> list[Job]:
        """The jobs whose base versions are known; a source that cannot be looked at fails those that need it."""
        fine, spoilt = [], set[str]()
        for job in jobs:
            error = world.problem_of(job.name)
            if error is not None:
                spoilt.add(job.name)
                self._failed(world.tables[job.name], job, error, recorded=False)
            elif job.after & spoilt:
                spoilt.add(job.name)
            else:
                fine.append(job)
        with self._runtime.catalog.begin() as catalog:
            for at in {job.at for job in fine}:
                bases = {name for job in fine if job.at == at for name in world.bases[job.name]}
                newest = {name: world.newest[name] for name in bases}
                known = self._pins[at].bases if at in self._pins else {}
                self._pins[at] = Pins({**known, **catalog.epochs.resolve(at, newest)}, at)
            catalog.epochs.forget_before(world.now - _EPOCHS_KEPT)
        for at in [at for at in self._pins if at < world.now - _EPOCHS_KEPT]:
            del self._pins[at]
        return fine

    def _start_ready(self) -> None:
        with self._guard:
            for job in sorted(self.waiting.values(), key=lambda job: job.deadline):
                if len(self.running) >= self._runtime.settings.max_concurrent_refreshes:
                    return
                if job.after & (self.waiting.keys() | self.running.keys()):
                    continue
                del self.waiting[job.name]
                self.running[job.name] = job
                self._pool.submit(self._work, job)

    def _work(self, job: Job) -> None:
        failed = False
        try:
            failed = not self._refresh(job)
        finally:
            with self._guard:
                self.running.pop(job.name, None)
                if failed:
                    self._give_up_on_readers(job.name)
            self._start_ready()

    def _give_up_on_readers(self, name: str) -> None:
        """What waits for a table that failed is planned anew, with what there is."""
        for reader in [job.name for job in self.waiting.values() if name in job.after]:
            del self.waiting[reader]
            self._give_up_on_readers(reader)

    def _refresh(self, job: Job) -> bool:
        """Refresh one table; False when it failed."""
        runtime = self._runtime
        # Every table has a pool of its own, so that a long refresh does not starve a short one.
        runtime.spark.sparkContext.setLocalProperty("spark.scheduler.pool", job.name)
        graph = read_graph(runtime.catalog)
        tables = graph.tables
        if job.name not in tables:
            return True
        self._tell(Event("started", job.name, job.at))
        try:
            pins = settled(self._pins[job.at], graph.upstream(job.name), _stays)
            result = refresh_table(job.name, pins, tables, runtime, unless_reached=job.at)
        except TrickleError as error:
            self._failed(tables[job.name], job, error)
            return False
        self._tell(
            Event("skipped" if result.action is Action.SKIP else "refreshed", job.name, job.at, result)
        )
        return result.action is not Action.SKIP

    def _failed(self, table: StreamTable, job: Job, error: TrickleError, *, recorded: bool = True) -> None:
        if not recorded:
            record_failure(table, error, self._runtime)
        self._tell(Event("failed", job.name, job.at, error=error))
        with self._runtime.catalog.begin() as catalog:
            row = catalog.stream_tables.get_by_id(table.id)
            if row is None or is_transient(error.code) or not self._retry.gives_up(row.consecutive_errors):
                return
            catalog.stream_tables.update(row.id, status="SUSPENDED")
        self._tell(Event("suspended", job.name, job.at, error=error))


def _stays(table: StreamTable) -> bool:
    """The daemon does not refresh it, whoever reads it."""
    return table.status == "SUSPENDED" or isinstance(parse_schedule(table.schedule), Manual)


def overview(daemon: Daemon) -> Mapping[str, list[str]]:
    """What is being refreshed and what waits for its turn, most urgent first."""
    waiting = sorted(daemon.waiting.values(), key=lambda job: job.deadline)
    return {"running": sorted(daemon.running), "waiting": [job.name for job in waiting]}
