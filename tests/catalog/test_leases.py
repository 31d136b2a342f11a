from __future__ import annotations

from datetime import timedelta

from spark_trickle.catalog import Catalog, Lease
from tests.catalog.racing import acquire_lease, race_processes, race_threads
from tests.catalog.samples import NOON, FakeClock


def acquire(catalog: Catalog, owner: str, dead: str = "") -> Lease | None:
    with catalog.begin() as transaction:
        return transaction.leases.acquire("totals", owner, 60, lambda other: other == dead)


def holder(catalog: Catalog) -> Lease | None:
    with catalog.begin(write=False) as transaction:
        return transaction.leases.holder("totals")


def test_a_free_lease_is_taken_and_others_wait(catalog: Catalog) -> None:
    lease = acquire(catalog, "ann")
    assert lease == Lease("totals", "ann", NOON, NOON + timedelta(seconds=60))
    assert acquire(catalog, "bob") is None
    assert holder(catalog) == lease


def test_names_are_independent(catalog: Catalog) -> None:
    with catalog.begin() as transaction:
        assert transaction.leases.acquire("one", "ann", 60)
        assert transaction.leases.acquire("two", "bob", 60)


def test_the_same_owner_extends(catalog: Catalog, clock: FakeClock) -> None:
    acquire(catalog, "ann")
    clock.advance(30)
    assert acquire(catalog, "ann") == Lease("totals", "ann", NOON, NOON + timedelta(seconds=90))
    assert holder(catalog) == Lease("totals", "ann", NOON, NOON + timedelta(seconds=90))


def test_an_expired_lease_is_free(catalog: Catalog, clock: FakeClock) -> None:
    acquire(catalog, "ann")
    clock.advance(59.999999)
    assert acquire(catalog, "bob") is None
    clock.advance(0.000001)
    assert holder(catalog) is None
    assert acquire(catalog, "bob") == Lease("totals", "bob", clock.now, clock.now + timedelta(seconds=60))
    assert acquire(catalog, "ann") is None


def test_taking_up_ones_own_expired_lease_begins_anew(catalog: Catalog, clock: FakeClock) -> None:
    acquire(catalog, "ann")
    clock.advance(60)
    lease = acquire(catalog, "ann")
    assert lease is not None
    assert lease.acquired_at == clock.now


def test_the_lease_of_a_dead_owner_is_taken_over(catalog: Catalog, clock: FakeClock) -> None:
    acquire(catalog, "ann")
    clock.advance(1)
    assert acquire(catalog, "bob", dead="carl") is None
    lease = acquire(catalog, "bob", dead="ann")
    assert lease == Lease("totals", "bob", clock.now, clock.now + timedelta(seconds=60))
    assert holder(catalog) == lease


def test_renew_extends_only_ones_own(catalog: Catalog, clock: FakeClock) -> None:
    acquire(catalog, "ann")
    clock.advance(10)
    with catalog.begin() as transaction:
        assert transaction.leases.renew("totals", "ann", 60)
        assert not transaction.leases.renew("totals", "bob", 600)
        assert not transaction.leases.renew("other", "ann", 60)
    assert holder(catalog) == Lease("totals", "ann", NOON, NOON + timedelta(seconds=70))


def test_renew_tells_the_late_owner_whether_somebody_took_it(catalog: Catalog, clock: FakeClock) -> None:
    acquire(catalog, "ann")
    clock.advance(120)
    with catalog.begin() as transaction:
        assert transaction.leases.renew("totals", "ann", 60)
    clock.advance(120)
    acquire(catalog, "bob")
    with catalog.begin() as transaction:
        assert not transaction.leases.renew("totals", "ann", 60)


def test_release_frees_only_ones_own(catalog: Catalog) -> None:
    acquire(catalog, "ann")
    with catalog.begin() as transaction:
        transaction.leases.release("totals", "bob")
    assert holder(catalog) is not None
    with catalog.begin() as transaction:
        transaction.leases.release("totals", "ann")
    assert holder(catalog) is None
    assert acquire(catalog, "bob") is not None


def test_of_eight_threads_one_wins_a_free_lease(catalog: Catalog) -> None:
    won = race_threads(8, lambda number: acquire(catalog, f"thread-{number}") is not None)
    assert sorted(map(bool, won)) == [False] * 7 + [True]


def test_of_eight_threads_one_wins_an_expired_lease(catalog: Catalog, clock: FakeClock) -> None:
    acquire(catalog, "ann")
    clock.advance(60)
    won = race_threads(8, lambda number: acquire(catalog, f"thread-{number}") is not None)
    assert sorted(map(bool, won)) == [False] * 7 + [True]


def test_of_eight_threads_one_wins_the_lease_of_a_dead_owner(catalog: Catalog) -> None:
    acquire(catalog, "ann")
    won = race_threads(8, lambda number: acquire(catalog, f"thread-{number}", dead="ann") is not None)
    assert sorted(map(bool, won)) == [False] * 7 + [True]


def test_of_two_processes_one_wins(catalog: Catalog, url: str) -> None:
    assert sorted(map(bool, race_processes(2, acquire_lease, url))) == [False, True]
