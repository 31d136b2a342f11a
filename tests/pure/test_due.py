"""What is due and in which order, on simulated days: no Spark, no database, no waiting."""

import heapq
import time
from collections import defaultdict
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from random import Random

import pytest

from spark_trickle.scheduler.due import Crowd, Job, TableState, due, effective_bounds
from spark_trickle.scheduler.retry import Retry
from spark_trickle.scheduler.schedules import Cron, Downstream, Every, Manual, OnChange, Schedule

START = datetime(2026, 1, 1, tzinfo=UTC)
RETRY = Retry()


def seconds(count: float) -> timedelta:
    return timedelta(seconds=count)


def names(jobs: list[Job]) -> list[str]:
    return [job.name for job in jobs]


def test_a_table_is_due_once_for_every_instant_of_its_period() -> None:
    table = TableState("t", Every(60), reached=START)
    assert due([table], START + seconds(23), RETRY) == []
    (job,) = due([table], START + seconds(24), RETRY)
    assert (job.at, job.deadline) == (START + seconds(24), START + seconds(60))
    assert due([replace(table, reached=job.at)], START + seconds(30), RETRY) == []


def test_upstream_comes_first_at_the_same_data_timestamp() -> None:
    chain = [
        TableState("a", Downstream(), reached=START),
        TableState("b", Every(3600), ("a",), reached=START),
        TableState("c", Every(60), ("b",), reached=START),
    ]
    jobs = due(chain, START + seconds(25), RETRY)
    assert names(jobs) == ["a", "b", "c"]
    assert {job.at for job in jobs} == {START + seconds(24)}
    assert [job.after for job in jobs] == [frozenset(), {"a"}, {"b"}]
    assert len({job.deadline for job in jobs}) == 1


def test_what_is_not_asked_for_is_not_refreshed() -> None:
    tables = [
        TableState("manual", Manual()),
        TableState("suspended", Every(60), active=False),
        TableState("nobody_reads_it", Downstream()),
        TableState("quiet", OnChange(), reached=START),
        TableState("reader", Every(60), ("manual",), reached=START),
    ]
    assert names(due(tables, START + seconds(30), RETRY)) == ["reader"]


def test_a_table_at_work_is_left_alone_and_its_readers_wait() -> None:
    tables = [
        TableState("a", Every(60), reached=START, busy=True),
        TableState("b", Every(60), ("a",), reached=START),
        TableState("c", Every(60), reached=START),
    ]
    assert names(due(tables, START + seconds(30), RETRY)) == ["c"]


def test_readers_wait_for_a_table_that_will_be_tried_again_but_not_for_a_suspended_one() -> None:
    failed = TableState("a", Every(60), reached=START, failures=2, failed_at=START + seconds(29))
    reader = TableState("b", Every(60), ("a",), reached=START)
    assert due([failed, reader], START + seconds(30), RETRY) == []
    assert names(due([failed, reader], START + seconds(31), RETRY)) == ["a", "b"]
    assert names(due([replace(failed, active=False), reader], START + seconds(30), RETRY)) == ["b"]


def test_a_new_version_of_a_source_wakes_a_table() -> None:
    woken = TableState("w", OnChange(), reached=START, changed=True)
    assert names(due([woken], START + seconds(1), RETRY)) == ["w"]


def test_cron_is_due_after_its_instant() -> None:
    daily = TableState("d", Cron("0 6 * * *", "Europe/Berlin"), reached=START)
    assert due([daily], START + timedelta(hours=4, minutes=59), RETRY) == []
    (job,) = due([daily], START + timedelta(hours=5), RETRY)
    assert job.at == START + timedelta(hours=5)


def test_after_a_failure_waiting_doubles() -> None:
    for failures, wait in ((1, 1), (2, 2), (3, 4), (5, 16), (50, 300)):
        failed = TableState("t", Every(60), failures=failures, failed_at=START)
        assert due([failed], START + seconds(wait - 0.1), RETRY) == []
        assert names(due([failed], START + seconds(wait), RETRY)) == ["t"]


def test_downstream_is_as_fresh_as_its_readers_need() -> None:
    tables = [
        TableState("a", Downstream()),
        TableState("b", Downstream(), ("a",)),
        TableState("slow", Every(3600), ("a",)),
        TableState("fast", Every(60), ("b",)),
        TableState("alone", Downstream()),
    ]
    assert effective_bounds(tables) == {"a": 60, "b": 60, "slow": 3600, "fast": 60, "alone": None}


@dataclass
class World:
    """Stream tables with known refresh times, workers, and a clock that jumps from event to event."""

    tables: list[TableState]
    cost: dict[str, float]
    workers: int
    now: datetime = START
    crowd: Crowd = field(default_factory=Crowd)
    queue: dict[str, Job] = field(default_factory=dict)
    running: list[tuple[datetime, str, Job]] = field(default_factory=list)
    done: dict[str, list[tuple[datetime, datetime]]] = field(default_factory=lambda: defaultdict(list))
    late: dict[str, float] = field(default_factory=lambda: defaultdict(float))

    def run(self, until: datetime, tick: float = 1.0) -> None:
        while self.now < until:
            self._finish()
            busy = {name for _, name, _ in self.running} | set(self.queue)
            states = [replace(t, busy=t.name in busy) for t in self.tables]
            running = [job for _, _, job in self.running]
            crowded = self.crowd.look(self.queue.values(), running, self.workers, self.now)
            for job in due(states, self.now, RETRY, crowded=crowded):
                assert job.name not in busy, "the same work twice"
                self.queue[job.name] = job
            self._start()
            for table in self.tables:
                if isinstance(table.schedule, Every) and table.reached:
                    overdue = self.now - table.reached > seconds(table.schedule.seconds)
                    self.late[table.name] += tick * overdue
            self.now += seconds(tick)

    def _start(self) -> None:
        for job in sorted(self.queue.values(), key=lambda j: j.deadline):
            others = [*self.queue.values(), *(running for _, _, running in self.running)]
            if len(self.running) < self.workers and not any(map(job.waits_for, others)):
                del self.queue[job.name]
                self._check_sources(job)
                heapq.heappush(self.running, (self.now + seconds(self.cost[job.name]), job.name, job))

    def _check_sources(self, job: Job) -> None:
        state = {t.name: t for t in self.tables}
        for source in state[job.name].reads:
            reached = state[source].reached
            assert reached is not None
            assert reached >= job.at, "a table was refreshed before what it reads"

    def _finish(self) -> None:
        while self.running and self.running[0][0] <= self.now:
            _, name, job = heapq.heappop(self.running)
            place = next(i for i, t in enumerate(self.tables) if t.name == name)
            assert job.at not in {at for at, _ in self.done[name]}, "the same work twice"
            self.done[name].append((job.at, self.now))
            self.tables[place] = replace(self.tables[place], reached=job.at)


@pytest.mark.parametrize("seed", range(12))
def test_freshness_is_kept_when_capacity_suffices(seed: int) -> None:
    """Random graphs on simulated days: bounds hold 95 % of the time, work is never done twice or out of order."""
    rng = Random(seed)
    tables: list[TableState] = []
    for number in range(rng.randint(3, 25)):
        known = [t.name for t in tables]
        reads = tuple(rng.sample(known, min(len(known), rng.choice([0, 0, 1, 1, 2]))))
        bound = rng.choice([60, 120, 300, 900, 3600, 7200])
        schedule = Downstream() if rng.random() < 0.2 else Every(bound)
        tables.append(TableState(f"t{number}", schedule, reads, reached=START))
    cost = {t.name: rng.uniform(0.2, 3) for t in tables}
    world = World(tables, cost, workers=4)
    world.run(START + timedelta(hours=6))
    for table in world.tables:
        if isinstance(table.schedule, Every):
            assert world.late[table.name] <= 0.05 * 6 * 3600, table
            assert len(world.done[table.name]) >= 6 * 3600 / table.schedule.seconds


def test_nothing_starves_when_there_is_too_much_to_do() -> None:
    tables = [TableState(f"t{i}", Every(60), reached=START) for i in range(20)]
    world = World(tables, {t.name: 30.0 for t in tables}, workers=2)
    world.run(START + timedelta(hours=4))
    counts = [len(world.done[t.name]) for t in world.tables]
    assert min(counts) >= max(counts) - 2 > 20


@pytest.mark.parametrize(
    "between", [Every(30), Every(3600), Downstream()], ids=["often", "seldom", "downstream"]
)
@pytest.mark.parametrize("at_the_end", [Every(30), Cron("* * * * *", "UTC")], ids=["bound", "cron"])
def test_what_reads_others_that_are_always_at_work_does_not_starve(
    between: Schedule, at_the_end: Schedule
) -> None:
    """More work than workers: somewhere below the last one there is always one that is being refreshed."""
    first = [TableState(f"a{i}", Every(30), reached=START) for i in range(12)]
    second = [TableState(f"b{i}", between, (f"a{2 * i}", f"a{2 * i + 1}"), reached=START) for i in range(6)]
    last = TableState("last", at_the_end, tuple(t.name for t in second), reached=START)
    tables = [*first, *second, last]
    world = World(tables, {t.name: 4.0 + i % 5 for i, t in enumerate(tables)}, workers=2)
    world.run(START + timedelta(hours=4))
    counts = [len(world.done[t.name]) for t in world.tables]
    assert min(counts) > 60


def test_a_table_waits_for_what_it_reads_even_where_that_is_asked_for_a_later_instant() -> None:
    tables = [
        TableState("often", Every(60), reached=START + seconds(168)),
        TableState("seldom", Every(600), ("often",), reached=START),
    ]
    often, seldom = due(tables, START + seconds(217), RETRY)
    assert (often.name, often.at, seldom.at) == ("often", START + seconds(216), START + seconds(192))
    assert seldom.waits_for(often)
    later = replace(often, planned=START + seconds(230))
    assert not seldom.waits_for(later)


def test_five_thousand_tables_are_planned_quickly() -> None:
    rng = Random(7)
    tables: list[TableState] = []
    for number in range(5000):
        reads = tuple({f"t{rng.randrange(number)}" for _ in range(2)}) if number else ()
        tables.append(TableState(f"t{number}", Every(rng.choice([60, 600, 3600])), reads, reached=START))
    started = time.process_time()
    jobs = due(tables, START + seconds(60), RETRY)
    assert jobs
    assert time.process_time() - started < 1


def test_a_unit_is_one_job_after_all_that_its_members_read() -> None:
    tables = [
        TableState("above", Downstream(), reached=START),
        TableState("b", Every(3600), ("above",), reached=START),
        TableState("c", Downstream(), reached=START),
        TableState("d", Every(60), ("b", "c"), reached=START),
        TableState("e", Every(60), ("d",), reached=START),
    ]
    unit = ("b", "c", "d")
    above, together, reader = due(tables, START + seconds(24), RETRY, [unit])
    assert (above.name, above.tables, above.after) == ("above", ("above",), frozenset())
    assert (together.tables, together.after) == (unit, {"above"})
    assert (reader.tables, reader.after) == (("e",), {"d"})
    assert {above.at, together.at, reader.at} == {START + seconds(24)}


@pytest.mark.parametrize("change", [{"busy": True}, {"active": False}, {"failures": 1, "failed_at": START}])
def test_a_unit_of_which_one_member_cannot_be_refreshed_is_left_alone(change: dict[str, object]) -> None:
    tables = [
        TableState("b", Every(60), reached=START - seconds(100)),
        TableState("c", Every(60), reached=START - seconds(100)),
        TableState("d", Every(60), ("b", "c"), reached=START - seconds(100)),
        TableState("alone", Every(60), reached=START - seconds(100)),
    ]
    tables[1] = replace(tables[1], **change)
    assert names(due(tables, START, RETRY, [("b", "c", "d")])) == ["alone"]


def test_who_reads_a_unit_at_work_waits_for_all_of_it() -> None:
    tables = [
        TableState("p", Every(60), ("q",), reached=START - seconds(100)),
        TableState("q", Every(60), ("p",), reached=START - seconds(100), busy=True),
        TableState("r", Every(60), ("p",), reached=START - seconds(100)),
    ]
    assert due(tables, START, RETRY, [("p", "q")]) == []


def test_who_reads_an_idle_member_of_a_unit_at_work_waits_too() -> None:
    """`b` itself is idle and reads nobody at work: only its unit holds up `reader`."""
    tables = [
        TableState("b", Every(60), reached=START - seconds(100)),
        TableState("c", Every(60), reached=START - seconds(100), busy=True),
        TableState("d", Every(60), ("b", "c"), reached=START - seconds(100)),
        TableState("reader", Every(60), ("b",), reached=START - seconds(100)),
    ]
    assert due(tables, START, RETRY, [("b", "c", "d")]) == []


def test_another_attempt_is_for_what_there_is_by_now() -> None:
    table = TableState("t", Every(86_400), reached=START - timedelta(days=2))
    (first,) = due([table], START + seconds(1000), RETRY)
    failed = replace(table, failures=1, failed_at=START + seconds(1000))
    (again,) = due([failed], START + seconds(1010), RETRY)
    assert first.at < again.at <= START + seconds(1010)
