from __future__ import annotations

from dataclasses import replace

import pytest

from spark_trickle.catalog import Catalog
from spark_trickle.errors import StateError
from tests.catalog.samples import dependency, stream_table

ONE, TWO = stream_table("a.b.one"), stream_table("a.b.two")


@pytest.fixture(autouse=True)
def _two_stream_tables(catalog: Catalog) -> None:
    with catalog.begin() as transaction:
        transaction.stream_tables.add(ONE)
        transaction.stream_tables.add(TWO)


def test_rows_read_back_as_written(catalog: Catalog) -> None:
    many = replace(
        dependency(ONE, "a.b.x"), source_kind="stream_table", columns=(("b", "int"), ("a", "date"))
    )
    none = replace(dependency(ONE, "a.b.y"), columns=())
    with catalog.begin() as transaction:
        transaction.dependencies.replace(ONE.id, (row for row in [none, many]))
    with catalog.begin(write=False) as transaction:
        assert transaction.dependencies.of(ONE.id) == [many, none]
        assert transaction.dependencies.of(TWO.id) == []


def test_replace_leaves_only_the_new_rows_of_that_stream_table(catalog: Catalog) -> None:
    with catalog.begin() as transaction:
        transaction.dependencies.replace(ONE.id, [dependency(ONE, "a.b.x"), dependency(ONE, "a.b.y")])
        transaction.dependencies.replace(TWO.id, [dependency(TWO, "a.b.y")])
        transaction.dependencies.replace(ONE.id, [dependency(ONE, "a.b.y"), dependency(ONE, "a.b.z")])
        assert transaction.dependencies.dependents_of("a.b.x") == []
        assert transaction.dependencies.dependents_of("a.b.y") == [ONE.id, TWO.id]
        assert transaction.dependencies.all() == [
            dependency(ONE, "a.b.y"),
            dependency(ONE, "a.b.z"),
            dependency(TWO, "a.b.y"),
        ]
        transaction.dependencies.replace(ONE.id, [])
        assert transaction.dependencies.of(ONE.id) == []


def test_rows_must_belong_to_the_stream_table(catalog: Catalog) -> None:
    with catalog.begin() as transaction, pytest.raises(ValueError, match="does not belong"):
        transaction.dependencies.replace(ONE.id, [dependency(TWO)])


def test_a_dropped_stream_table_depends_on_nothing(catalog: Catalog) -> None:
    with catalog.begin() as transaction:
        transaction.dependencies.replace(ONE.id, [dependency(ONE)])
        transaction.stream_tables.remove(ONE.id)
        assert transaction.dependencies.all() == []
        with pytest.raises(StateError):
            transaction.dependencies.replace(ONE.id, [dependency(ONE)])


def test_edges_and_the_rows_of_some(catalog: Catalog) -> None:
    with catalog.begin() as transaction:
        transaction.dependencies.replace(TWO.id, [dependency(TWO, "a.b.one")])
        transaction.dependencies.replace(ONE.id, [dependency(ONE, "a.b.y"), dependency(ONE, "a.b.x")])
    with catalog.begin(write=False) as transaction:
        found = transaction.dependencies
        assert found.edges() == sorted([(TWO.id, "a.b.one"), (ONE.id, "a.b.x"), (ONE.id, "a.b.y")])
        assert found.of_some([ONE.id]) == found.of(ONE.id)
        assert found.of_some([ONE.id, TWO.id]) == found.all()
        assert found.of_some([]) == []
