from __future__ import annotations

from datetime import timedelta

from spark_trickle.catalog import Catalog
from spark_trickle.frontier import SourceVersion
from tests.catalog.samples import NOON

OLD, NEW = SourceVersion("a", 3), SourceVersion("a", 4)


def test_whoever_asks_first_decides_for_everybody(catalog: Catalog) -> None:
    with catalog.begin() as now:
        assert now.epochs.resolve(NOON, {"orders": OLD}) == {"orders": OLD}
    with catalog.begin() as later:
        agreed = later.epochs.resolve(NOON, {"orders": NEW, "people": NEW})
        assert agreed == {"orders": OLD, "people": NEW}
        assert later.epochs.resolve(NOON + timedelta(seconds=48), {"orders": NEW}) == {"orders": NEW}


def test_old_epochs_are_forgotten(catalog: Catalog) -> None:
    with catalog.begin() as now:
        now.epochs.resolve(NOON, {"orders": OLD})
        now.epochs.forget_before(NOON)
        assert now.epochs.of(NOON) == {"orders": OLD}
        now.epochs.forget_before(NOON + timedelta(seconds=1))
        assert now.epochs.of(NOON) == {}
        assert now.epochs.resolve(NOON, {}) == {}


def test_a_source_that_is_another_table_by_now_is_agreed_on_anew(catalog: Catalog) -> None:
    with catalog.begin() as now:
        now.epochs.resolve(NOON, {"orders": SourceVersion("old", 7)})
        assert now.epochs.resolve(NOON, {"orders": SourceVersion("old", 9)})["orders"].version == 7
        replaced = SourceVersion("new", 1)
        assert now.epochs.resolve(NOON, {"orders": replaced}) == {"orders": replaced}
