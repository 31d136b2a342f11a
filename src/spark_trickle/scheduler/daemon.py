"""The daemon: look what is due, refresh it, again.

One thread plans; workers refresh. What two refreshes must not do at once is decided by the leases in the catalog,
so any number of daemons may share one: each works on what the others have not begun.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import datetime, timedelta

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from spark_trickle.catalog import StreamTable
from spark_trickle.catalyst.spark_errors import refresh_error, sentence_of
from spark_trickle.errors import TrickleError
from spark_trickle.frontier import SourceVersion
from spark_trickle.graph.units import Unit
from spark_trickle.names import shown
from spark_trickle.refresh.choose import Action
from spark_trickle.refresh.graph import read_graph
from spark_trickle.refresh.idle import Idle, Look, look_at, record_idle
from spark_trickle.refresh.pins import Pins, is_suspended
from spark_trickle.refresh.ready import get_ready
from spark_trickle.refresh.remember import record_failure
from spark_trickle.refresh.retention import Risk, risks
from spark_trickle.refresh.runtime import Runtime
from spark_trickle.refresh.tidy import tidy
from spark_trickle.refresh.units import Terms, UnitFailed, refresh_unit
from spark_trickle.scheduler.due import Crowd, Job, due
from spark_trickle.scheduler.events import Event, Webhook
from spark_trickle.scheduler.overview import Overview, Progress, next_due
from spark_trickle.scheduler.retry import Retry, is_transient
from spark_trickle.scheduler.schedules import Manual, parse_schedule
from spark_trickle.scheduler.staleness import stale_tables
from spark_trickle.scheduler.world import World, look_around
from spark_trickle.storage.commits import version_at

_MOST_WORKERS = 64
_EPOCHS_KEPT = timedelta(days=1)
_LOOK_EVERY = timedelta(minutes=10)


def _nobody(_about: object) -> None:
    """The default listener."""


class Daemon:
    """Keeps the stream tables of a catalog as fresh as their schedules ask."""

    def __init__(
        self,
        runtime: Runtime,
        on_event: Callable[[Event], None] = _nobody,
        on_tick: Callable[[Overview], None] = _nobody,
    ) -> None:
        self._runtime = runtime
        self._on_event = on_event
        self._on_tick = on_tick
        self._progress = Progress()
        self._webhook: Webhook | None = None
        self._crowd = Crowd()
        self._stale: set[str] = set()
        self._refreshed: set[str] = set()
        """Tables that may have to be compacted."""
        self._risks: set[Risk] = set()
        self._looked_at: datetime | None = None
        self._guard = threading.RLock()
        self._pool = ThreadPoolExecutor(_MOST_WORKERS, thread_name_prefix="refresh")
        self._pins: dict[datetime, Pins] = {}
        self.waiting: dict[str, Job] = {}
        self.running: dict[str, Job] = {}

    def run(self, stop: threading.Event) -> None:
        """Tick until told to stop; then finish what has begun."""
        told = self._runtime.on_step

        def on_step(step: str) -> None:
            self._progress.step(step)
            told(step)

        self._runtime.on_step = on_step
        url = self._runtime.settings.alert_webhook
        self._webhook = Webhook(url, self._trouble) if url else None
        try:
            while not stop.is_set():
                try:
                    self.tick()
                except Exception as error:
                    self._trouble(f"Looking for work failed: {sentence_of(error)}")
                stop.wait(self._runtime.settings.scheduler_interval_ms / 1000)
        finally:
            self.finish()
            self._runtime.on_step = told
            if self._webhook:
                self._webhook.close()

    def tick(self) -> None:
        """Queue what is due and start what is ready."""
        with self._guard:
            busy = self._at_work()
            waiting, running = list(self.waiting.values()), list(self.running.values())
        world = look_around(self._runtime, busy)
        crowded = self._crowd.look(waiting, running, self._most, world.now)
        jobs = due(world.states, world.now, self._retry, list(world.units), crowded=crowded)
        ready = self._without_idle(self._with_pins(jobs, world), world)
        with self._guard:
            self.waiting.update((job.name, job) for job in ready)
        self._start_ready()
        self._warn_of_stale(world)
        self._warn_of_retention(world)
        self._on_tick(self._overview(world))

    def finish(self) -> None:
        """Wait for what is running; what only waits is left to the next daemon."""
        with self._guard:
            self.waiting.clear()
        self._pool.shutdown(wait=True)

    def _tell(self, event: Event) -> None:
        self._on_event(event)
        if self._webhook and event.alert:
            self._webhook.send(event.alert)

    def _trouble(self, message: str) -> None:
        self._tell(Event("trouble", "", self._runtime.clock(), message=message))

    def _overview(self, world: World) -> Overview:
        with self._guard:
            waiting = sorted(self.waiting.values(), key=lambda job: job.deadline)
        names = tuple(job.name for job in waiting)
        return Overview(self._progress.running(), names, *next_due(world.states, world.now))

    def _warn_of_stale(self, world: World) -> None:
        """Once for every time that a table becomes stale."""
        stale = stale_tables(world.states, world.now)
        for name in stale.keys() - self._stale:
            age = timedelta(seconds=int(stale[name].total_seconds()))
            allowed = world.tables[name].schedule
            message = f"It is {age} old, more than twice what its schedule `{allowed}` allows."
            self._tell(Event("stale", name, world.now, message=message))
        self._stale = set(stale)

    def _warn_of_retention(self, world: World) -> None:
        """Now and then, and once for every version that is at risk."""
        if self._looked_at is not None and world.now - self._looked_at < _LOOK_EVERY:
            return
        self._looked_at = world.now
        found = set(risks(read_graph(self._runtime.catalog), world.now, self._runtime))
        for risk in found - self._risks:
            self._tell(Event("retention", risk.name, world.now, message=risk.message))
        self._risks = found

    @property
    def _most(self) -> int:
        """Refreshes at once."""
        return self._runtime.settings.max_concurrent_refreshes

    @property
    def _retry(self) -> Retry:
        return Retry(most_errors=self._runtime.settings.max_consecutive_errors)

    def _with_pins(self, jobs: list[Job], world: World) -> list[Job]:
        """The jobs whose base versions are known; a source that cannot be looked at fails those that need it."""
        fine, spoilt = [], set[str]()
        for job in jobs:
            error = world.problem_of(job.tables)
            if error is not None:
                spoilt.update(job.tables)
                self._failed(world.tables[job.name], job, error, recorded=False)
            elif job.after & spoilt:
                spoilt.update(job.tables)
            else:
                fine.append(job)
        if fine:
            self._pin(fine, world)
        return fine

    def _pin(self, jobs: list[Job], world: World) -> None:
        """Decide the version of every base table for the data timestamps of some jobs, once and for all daemons."""
        wanted: dict[datetime, dict[str, SourceVersion]] = {}
        for job in jobs:
            for base in {base for name in job.tables for base in world.bases[name]}:
                versions = wanted.setdefault(job.at, {})
                versions.setdefault(base, self._version_at(base, job.at, world))
        with self._runtime.catalog.begin() as catalog:
            for at, versions in wanted.items():
                known = self._pins[at].bases if at in self._pins else {}
                self._pins[at] = Pins({**known, **catalog.epochs.resolve(at, versions)}, at)
            catalog.epochs.forget_before(world.now - _EPOCHS_KEPT)
        for at in [at for at in self._pins if at < world.now - _EPOCHS_KEPT]:
            del self._pins[at]

    def _without_idle(self, jobs: list[Job], world: World) -> list[Job]:
        """The jobs that have something to do; the others are done at once, those that are read first."""
        look, place = look_at(world.tables, self._runtime), {s.name: i for i, s in enumerate(world.states)}
        idle: dict[str, Idle] = {}
        for job in sorted(jobs, key=lambda job: place[job.name]):
            still = not job.together and job.after <= idle.keys()
            above = [world.tables[source] for source in world.states[place[job.name]].reads]
            if still and not any(map(_stays, above)) and self._is_idle(look, world.tables[job.name], job):
                idle[job.name] = Idle(world.tables[job.name], job.at)
        if not idle:
            return jobs
        done = {one.table.name: one for one in record_idle(idle.values(), self._runtime)}
        for one in done.values():
            self._tell(Event("refreshed", one.table.name, one.at, one.result))
        return [job for job in jobs if job.name not in done]

    def _is_idle(self, look: Look, table: StreamTable, job: Job) -> bool:
        try:
            return look.is_idle(table, self._pins[job.at])
        except (TrickleError, PySparkException, Py4JError):
            return False  # its own refresh tells what is wrong

    def _version_at(self, base: str, at: datetime, world: World) -> SourceVersion:
        return version_at(self._runtime.tables, world.locations[base], world.newest[base], at)

    def _start_ready(self) -> None:
        with self._guard:
            for job in sorted(self.waiting.values(), key=lambda job: job.deadline):
                if len(self.running) >= self._most:
                    return
                if any(map(job.waits_for, (*self.waiting.values(), *self.running.values()))):
                    continue
                del self.waiting[job.name]
                self.running[job.name] = job
                self._pool.submit(self._work, job)

    def _at_work(self) -> set[str]:
        """The tables that are being refreshed or wait for it. To be called with the guard held."""
        return {name for job in (*self.waiting.values(), *self.running.values()) for name in job.tables}

    def _work(self, job: Job) -> None:
        failed = False
        self._progress.begin(job.name)
        try:
            failed = not self._refresh(job)
            if not failed:
                self._tidy(job)
        finally:
            self._progress.end()
            with self._guard:
                self.running.pop(job.name, None)
                if failed:
                    self._give_up_on_readers(job)
            self._start_ready()

    def _give_up_on_readers(self, failed: Job) -> None:
        """What waits for a table that failed is planned anew, with what there is."""
        for reader in [job for job in self.waiting.values() if job.after.intersection(failed.tables)]:
            if self.waiting.pop(reader.name, None):
                self._give_up_on_readers(reader)

    def _refresh(self, job: Job) -> bool:
        """Refresh one table, or what is refreshed together; False when it failed."""
        runtime = self._runtime
        # Every table has a pool of its own, so that a long refresh does not starve a short one.
        runtime.spark.sparkContext.setLocalProperty("spark.scheduler.pool", job.name)
        graph = read_graph(runtime.catalog)
        unit = next((u for u in graph.units if job.name in u.members), Unit((job.name,)))
        if unit.members != job.tables or job.name not in graph.tables:
            return True  # dropped or defined anew meanwhile: the next tick knows better
        self._tell(Event("started", job.name, job.at))
        try:
            results = refresh_unit(unit, Terms(self._pins[job.at], _stays, job.at), runtime)
        except UnitFailed as failed:
            self._failed(graph.tables[failed.name], job, failed.error)
            return False
        except Exception as error:
            failure = refresh_error(shown(job.name), error)
            self._failed(graph.tables[job.name], job, failure, recorded=False)
            return False
        done = True
        for name, result in zip(unit.members, results, strict=False):
            skipped = result.action is Action.SKIP
            self._tell(Event("skipped" if skipped else "refreshed", name, job.at, result))
            done = done and not skipped
        return done

    def _tidy(self, job: Job) -> None:
        """Compact what was refreshed and get it ready for the next time, once nothing waits any more.

        It is nobody's failure if that fails.
        """
        with self._guard:
            self._refreshed.update(job.tables)
            if self.waiting:
                return
            left, self._refreshed = sorted(self._refreshed), set()
        tables = read_graph(self._runtime.catalog).tables
        while left:
            with self._guard:
                if self.waiting:
                    self._refreshed.update(left)
                    return
            table = tables.get(left.pop())
            if table is None:
                continue
            try:
                if tidy(table, self._runtime):
                    self._tell(Event("tidied", table.name, job.at))
                if table.name in job.tables:  # others may be about to be refreshed
                    get_ready(table, self._runtime)
            except Exception as error:
                self._trouble(f"Compacting `{shown(table.name)}` failed: {sentence_of(error)}")

    def _failed(self, table: StreamTable, job: Job, error: TrickleError, *, recorded: bool = True) -> None:
        if not recorded:
            with suppress(TrickleError):  # dropped meanwhile
                record_failure(table, error, self._runtime)
        self._tell(Event("failed", table.name, job.at, error=error))
        with self._runtime.catalog.begin() as catalog:
            row = catalog.stream_tables.get_by_id(table.id)
            if row is None or is_transient(error.code) or not self._retry.gives_up(row.consecutive_errors):
                return
            catalog.stream_tables.update(row.id, status="SUSPENDED")
        self._tell(Event("suspended", table.name, job.at, error=error))


def _stays(table: StreamTable) -> bool:
    """The daemon does not refresh it, whoever reads it."""
    return is_suspended(table) or isinstance(parse_schedule(table.schedule), Manual)
