from __future__ import annotations

from datetime import timedelta

import pytest

from spark_trickle.catalog import Catalog, Refresh
from spark_trickle.errors import StateError
from tests.catalog.samples import NOON, FakeClock, frontier, stream_table

ONE, TWO = stream_table("a.b.one"), stream_table("a.b.two")


@pytest.fixture(autouse=True)
def _two_stream_tables(catalog: Catalog) -> None:
    with catalog.begin() as transaction:
        transaction.stream_tables.add(ONE)
        transaction.stream_tables.add(TWO)


def test_a_refresh_from_start_to_end(catalog: Catalog, clock: FakeClock) -> None:
    with catalog.begin() as transaction:
        started = transaction.refreshes.start(ONE.id, 4, "host:1")
    assert started == Refresh(
        id=started.id, stream_table_id=ONE.id, sequence=4, status="RUNNING", started_at=NOON, owner="host:1"
    )
    with catalog.begin(write=False) as transaction:
        assert transaction.refreshes.get(started.id) == started
        assert transaction.refreshes.running(ONE.id) == [started]
        assert transaction.refreshes.unfinished() == {ONE.id}
        assert transaction.refreshes.last_completed(ONE.id) is None
    clock.advance(1.5)
    with catalog.begin() as transaction:
        finished = transaction.refreshes.finish(
            started.id,
            status="COMPLETED",
            action="DIFFERENTIAL",
            reason="0.1 % of `orders` changed",
            rows_inserted=2**40,
            rows_deleted=1,
            rows_changed=3,
            version=9,
            frontier=frontier(),
            durations={"plan": 0.25, "merge": 1.0 / 3.0},
        )
    assert finished.finished_at == NOON + timedelta(seconds=1.5)
    assert finished.durations == {"plan": 0.25, "merge": 1.0 / 3.0}
    with catalog.begin(write=False) as transaction:
        assert transaction.refreshes.get(started.id) == finished
        assert transaction.refreshes.running(ONE.id) == []
        assert transaction.refreshes.last_completed(ONE.id) == finished


def test_history_is_newest_first_and_per_stream_table(catalog: Catalog) -> None:
    with catalog.begin() as transaction:
        rows = [transaction.refreshes.start(table.id, 1, "me") for table in (ONE, TWO, ONE, ONE)]
        first, other, second, third = rows
        assert transaction.refreshes.of(ONE.id) == [third, second, first]
        assert transaction.refreshes.of(ONE.id, limit=2) == [third, second]
        assert transaction.refreshes.all() == rows[::-1]
        assert transaction.refreshes.all(limit=3) == [third, second, other]
        assert transaction.refreshes.all(limit=0) == []


def test_last_completed_skips_failures(catalog: Catalog) -> None:
    with catalog.begin() as transaction:
        good, bad, idle = (transaction.refreshes.start(ONE.id, n, "me") for n in (1, 2, 2))
        done = transaction.refreshes.finish(good.id, status="COMPLETED", action="NO_DATA")
        transaction.refreshes.finish(bad.id, status="FAILED", error="no\0pe", error_code="REFRESH_FAILED")
        transaction.refreshes.finish(idle.id, status="SKIPPED", action="SKIP")
        assert transaction.refreshes.last_completed(ONE.id) == done


def test_finish_refuses_what_is_not_an_end(catalog: Catalog) -> None:
    with catalog.begin() as transaction:
        row = transaction.refreshes.start(ONE.id, 1, "me")
        with pytest.raises(ValueError, match="RUNNING"):
            transaction.refreshes.finish(row.id, action="FULL")
        with pytest.raises(TypeError, match="colour"):
            transaction.refreshes.finish(row.id, status="COMPLETED", colour="red")
        with pytest.raises(TypeError, match="finished_at"):
            transaction.refreshes.finish(row.id, status="COMPLETED", finished_at=NOON)
        assert transaction.refreshes.get(row.id) == row


def test_the_history_goes_with_its_stream_table_and_numbers_are_not_reused(catalog: Catalog) -> None:
    with catalog.begin() as transaction:
        gone = transaction.refreshes.start(ONE.id, 1, "me")
        transaction.stream_tables.remove(ONE.id)
        assert transaction.refreshes.all() == []
        with pytest.raises(StateError, match="STREAM_TABLE_DROPPED"):
            transaction.refreshes.finish(gone.id, status="FAILED")
        with pytest.raises(StateError, match="STREAM_TABLE_DROPPED"):
            transaction.refreshes.start(ONE.id, 2, "me")
        assert transaction.refreshes.start(TWO.id, 1, "me").id > gone.id
