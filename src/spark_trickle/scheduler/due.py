"""What is due, and in which order: a pure function of the graph, the catalog rows and the clock.

A table is due when its schedule asks for a newer data timestamp than it has reached. Whatever it reads is brought
to the same timestamp first. Jobs are ordered by deadline, the instant at which the freshness bound breaks; a job
inherits the earliest deadline of those that wait for it. A table that is late grows ever more urgent compared with
new work, so nothing starves.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from spark_trickle.scheduler.retry import Retry
from spark_trickle.scheduler.schedules import (
    Cron,
    Downstream,
    Every,
    Manual,
    OnChange,
    Schedule,
    aligned,
    last_instant,
)

_PROMPTLY = 60
"""Seconds that a table without a freshness bound is given after the instant it is due."""
_FINEST = 3


@dataclass(frozen=True, slots=True)
class TableState:
    """What planning needs to know of a stream table."""

    name: str
    schedule: Schedule
    reads: tuple[str, ...] = ()
    """The stream tables it reads directly."""
    active: bool = True
    reached: datetime | None = None
    """The data timestamp of its newest refresh."""
    busy: bool = False
    """It is being refreshed, or waits for its turn."""
    changed: bool = False
    """One of its sources has a newer version than it has read."""
    failures: int = 0
    failed_at: datetime | None = None
    rhythm: int = 0
    """The bound, in seconds, whose instants it follows while there is too much to do; 0 for its own."""


@dataclass(frozen=True, slots=True)
class Job:
    """One refresh to do: not before those in `after`, as early as its deadline asks."""

    name: str
    at: datetime
    deadline: datetime
    after: frozenset[str] = frozenset()
    planned: datetime | None = None
    together: tuple[str, ...] = ()
    """The members of the unit it stands for, if it is more than one table."""

    @property
    def tables(self) -> tuple[str, ...]:
        return self.together or (self.name,)

    def waits_for(self, other: Job) -> bool:
        """The other comes first. One planned later does not: what this job reads was brought to its instant before."""
        earlier = other.planned is None or self.planned is None or other.planned <= self.planned
        return earlier and not self.after.isdisjoint(other.tables)


class Crowd:
    """Whether there was too much to do lately: more that could be begun at once than there are workers for."""

    def __init__(self) -> None:
        self._last: datetime | None = None

    def look(self, waiting: Collection[Job], running: Collection[Job], workers: int, now: datetime) -> bool:
        ready = [job for job in waiting if not any(map(job.waits_for, (*waiting, *running)))]
        if len(ready) > workers - len(running):
            self._last = now
        return self._last is not None and now - self._last < timedelta(seconds=_PROMPTLY)


def due(
    tables: Sequence[TableState],
    now: datetime,
    retry: Retry,
    units: Sequence[tuple[str, ...]] = (),
    *,
    crowded: bool = False,
) -> list[Job]:
    """The refreshes to start or queue now, most urgent first. `tables` stand in an order in which sources come first.

    `units` are refreshed together: if one member is due all are, and if one cannot be refreshed none is.
    `crowded`: there is more to do than can be done.
    """
    if crowded:
        tables = _slowed_down(tables, now)
    blocked = _blocked(tables, now, retry, units)
    blocked |= {t.name for t in tables if not t.active}
    blocked |= _whole_units(blocked, units)
    state = {t.name: t for t in tables}
    wishes = {t.name: job for t in tables if t.name not in blocked and (job := _own_job(t, now)) is not None}
    jobs: dict[str, Job] = {}
    while wishes != jobs:
        jobs = wishes
        wishes = _passed_on(tables, state, blocked, jobs)
        for unit in units:
            wishes = _shared(unit, wishes)
        if not units:
            break
    planned = (replace(job, planned=now) for job in _linked(wishes, state, units))
    return sorted(planned, key=lambda job: job.deadline)


def _slowed_down(tables: Sequence[TableState], now: datetime) -> list[TableState]:
    """With instants as far apart as the tables, or those that read them, are late.

    With more work than workers something below a table is always at work, and those that read much would never
    have their turn. Instants of a wider bound are also instants of a narrower one, so all that lies below such a
    table is brought to the same instant, rests there, and lets it pass.
    """
    bounds = effective_bounds(tables)
    late: dict[str, float] = {}
    for table in reversed(tables):
        late[table.name] = max(_lateness(table, bounds[table.name], now), late.get(table.name, 0.0))
        for source in table.reads:
            late[source] = max(late.get(source, 0.0), late[table.name])
    return [replace(t, rhythm=_widened(bounds[t.name] or 0, late[t.name])) for t in tables]


def _lateness(table: TableState, bound: int | None, now: datetime) -> float:
    """Seconds since what it shows; by a cron expression, since the instant asked for if that is the first one missed."""
    if not table.active or table.reached is None:
        return 0.0
    since = None if bound is None else table.reached
    if isinstance(table.schedule, Cron) and (job := _own_job(table, now)) is not None:
        one_before = last_instant(table.schedule, job.at - timedelta(seconds=1))
        since = table.reached if one_before and _behind(table, one_before) else job.at
    return 0.0 if since is None else (now - since).total_seconds()


def _widened(bound: int, late: float) -> int:
    while 0 < bound < late:
        bound *= 2
    return bound


def _passed_on(
    tables: Sequence[TableState], state: Mapping[str, TableState], blocked: Set[str], jobs: Mapping[str, Job]
) -> dict[str, Job]:
    """What a table needs, its sources need first."""
    wishes = dict(jobs)
    for table in reversed(tables):
        job = wishes.get(table.name)
        if job is None or table.name in blocked:
            wishes.pop(table.name, None)
            continue
        for source in table.reads:
            if _behind(state[source], job.at) and not isinstance(state[source].schedule, Manual):
                wanted = Job(source, job.at, job.deadline)
                wishes[source] = _earlier(wanted, wishes.get(source)) or wanted
    return {name: job for name, job in wishes.items() if name not in blocked}


def _shared(unit: tuple[str, ...], wishes: dict[str, Job]) -> dict[str, Job]:
    """What one member of a unit needs, all do."""
    own = [wishes[name] for name in unit if name in wishes]
    if not own:
        return wishes
    at, deadline = max(job.at for job in own), min(job.deadline for job in own)
    return wishes | {name: Job(name, at, deadline) for name in unit}


def _linked(
    jobs: Mapping[str, Job], state: Mapping[str, TableState], units: Sequence[tuple[str, ...]]
) -> Iterator[Job]:
    """Every job with those that come before it; a unit is one job."""
    together = {name: unit for unit in units for name in unit}
    for name, job in ((name, jobs[name]) for name in state if name in jobs):
        members = together.get(name, (name,))
        if name == members[0]:
            before = {source for member in members for source in state[member].reads if source in jobs}
            unit = members if len(members) > 1 else ()
            yield replace(job, after=frozenset(before - set(members)), together=unit)


def effective_bounds(tables: Sequence[TableState]) -> dict[str, int | None]:
    """The freshness bound of every table in seconds; DOWNSTREAM takes the smallest of those that read it."""
    bounds: dict[str, int | None] = {}
    needed: dict[str, int] = {}
    for table in reversed(tables):
        own = table.schedule.seconds if isinstance(table.schedule, Every) else None
        if isinstance(table.schedule, Downstream):
            own = needed.get(table.name)
        bounds[table.name] = own
        if own is not None:
            for source in table.reads:
                needed[source] = min(own, needed.get(source, own))
    return bounds


def _own_job(table: TableState, now: datetime) -> Job | None:
    """What the table's own schedule asks for."""
    match table.schedule:
        case Every(seconds=seconds):
            at = last_instant(Every(table.rhythm or seconds), now)
            assert at is not None  # noqa: S101 - a period always has a last instant
            if not _behind(table, at):
                return None
            # Another attempt is for what there is by now: the data may have been mended since.
            at = max(at, aligned(now, _FINEST)) if table.failed_at else at
            return Job(table.name, at, (table.reached or at) + timedelta(seconds=seconds))
        case Cron():
            at = last_instant(table.schedule, now)
            if at is None or not _behind(table, at):
                return None
            wanted = max(at, aligned(now, _FINEST)) if table.failed_at else at
            return Job(table.name, wanted, at + timedelta(seconds=_PROMPTLY))
        case OnChange():
            if not table.changed and table.reached is not None:
                return None
            return Job(table.name, aligned(now, _FINEST), now + timedelta(seconds=_FINEST))
        case Downstream() | Manual():
            return None


def _behind(table: TableState, at: datetime) -> bool:
    return table.reached is None or table.reached < at


def _earlier(one: Job | None, other: Job | None) -> Job | None:
    """Both wishes in one job: the newest data timestamp, the earliest deadline."""
    if one is None or other is None:
        return one or other
    return Job(one.name, max(one.at, other.at), min(one.deadline, other.deadline))


def _blocked(
    tables: Sequence[TableState], now: datetime, retry: Retry, units: Sequence[tuple[str, ...]]
) -> set[str]:
    """Tables at work or waiting for another attempt, and those that read one of them: it may soon be known more.

    A table that is suspended blocks nobody: what reads it goes on with what there is.
    """
    blocked: set[str] = set()
    size = -1
    while len(blocked) != size:
        size = len(blocked)
        for table in tables:
            waits = table.failed_at is not None and now < retry.again_at(table.failed_at, table.failures)
            if table.busy or (table.active and waits) or any(source in blocked for source in table.reads):
                blocked.add(table.name)
        blocked |= _whole_units(blocked, units)
        if not units:
            break
    return blocked


def _whole_units(names: Set[str], units: Sequence[tuple[str, ...]]) -> set[str]:
    return {name for unit in units if not names.isdisjoint(unit) for name in unit}
