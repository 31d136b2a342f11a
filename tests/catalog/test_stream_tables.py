from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta, timezone

import pytest

from spark_trickle.catalog import Catalog
from spark_trickle.errors import StateError, TableNameError
from spark_trickle.frontier import Frontier
from tests.catalog.samples import NOON, FakeClock, frontier, stream_table


def test_a_new_row_reads_back_as_written_with_its_nulls(catalog: Catalog) -> None:
    row = stream_table()
    assert (row.frontier, row.table_version) == (None, None)
    with catalog.begin() as transaction:
        transaction.stream_tables.add(row)
    with catalog.begin(write=False) as transaction:
        assert transaction.stream_tables.get(row.name) == row
        assert transaction.stream_tables.get_by_id(row.id) == row


def test_every_field_reads_back_as_written(catalog: Catalog) -> None:
    row = stream_table(
        query="SELECT 'Übergrößenträger ✓ \U0001f600', `a b`\nFROM \"x\" -- %s :name",
        definition_kind="dataframe",
        session_settings={"spark.sql.ansi.enabled": "true", "spark.sql.session.timeZone": "UTC"},
        refresh_mode="DIFFERENTIAL",
        status="ERROR",
        frontier=frontier(),
        table_version=2**40,
        table_id="delta-9",
        sequence=2**40,
        consecutive_errors=3,
        last_error="x" * 100_000,
        needs_reinit=True,
        reinit_reason="a column changed its type",
    )
    with catalog.begin() as transaction:
        transaction.stream_tables.add(row)
    with catalog.begin(write=False) as transaction:
        assert transaction.stream_tables.get(row.name) == row


def test_an_empty_frontier_is_not_a_missing_one(catalog: Catalog) -> None:
    row = stream_table(frontier=Frontier())
    with catalog.begin() as transaction:
        transaction.stream_tables.add(row)
        stored = transaction.stream_tables.get(row.name)
    assert stored is not None
    assert stored.frontier == Frontier()


@pytest.mark.parametrize(
    "moment",
    [
        NOON,
        NOON.replace(microsecond=0),
        NOON.replace(microsecond=1),
        NOON.replace(microsecond=999_999),
        NOON.astimezone(timezone(timedelta(hours=5, minutes=45))),
        datetime(1970, 1, 1, tzinfo=NOON.tzinfo),
    ],
    ids=str,
)
def test_times_come_back_exact_and_in_utc(catalog: Catalog, moment: datetime) -> None:
    row = stream_table(created_at=moment)
    with catalog.begin() as transaction:
        transaction.stream_tables.add(row)
    with catalog.begin(write=False) as transaction:
        stored = transaction.stream_tables.get(row.name)
    assert stored is not None
    assert stored.created_at == moment
    assert stored.created_at.utcoffset() == timedelta(0)


def test_characters_a_database_refuses_do_not_cost_the_error_message(catalog: Catalog) -> None:
    with catalog.begin() as transaction:
        transaction.stream_tables.add(stream_table(last_error="bad \0 byte \ud800 half"))
        (stored,) = transaction.stream_tables.all()
    assert stored.last_error == "bad \ufffd byte ? half"


def test_a_taken_name_is_refused_and_the_transaction_goes_on(catalog: Catalog) -> None:
    with catalog.begin() as transaction:
        transaction.stream_tables.add(stream_table())
        with pytest.raises(TableNameError) as refusal:
            transaction.stream_tables.add(stream_table(id="another"))
        transaction.stream_tables.add(stream_table("spark_catalog.default.other"))
    assert refusal.value.code == "NAME_TAKEN"
    assert "`spark_catalog.default.totals`" in refusal.value.message
    with catalog.begin(write=False) as transaction:
        assert [t.name.rpartition(".")[2] for t in transaction.stream_tables.all()] == ["other", "totals"]


def test_renaming_to_a_taken_name_is_refused(catalog: Catalog) -> None:
    with catalog.begin() as transaction:
        transaction.stream_tables.add(stream_table("a.b.one"))
        transaction.stream_tables.add(stream_table("a.b.two", id="two"))
        with pytest.raises(TableNameError) as refusal:
            transaction.stream_tables.update("two", name="a.b.one")
        assert transaction.stream_tables.update("two", name="a.b.three").name == "a.b.three"
    assert refusal.value.code == "NAME_TAKEN"


def test_all_sorts_by_name_alike_on_both_databases(catalog: Catalog) -> None:
    names = ["a.b.B", "a.b.a", "a.b._", "a.b.Z", "a.b.é"]
    with catalog.begin() as transaction:
        for name in names:
            transaction.stream_tables.add(stream_table(name))
        assert [row.name for row in transaction.stream_tables.all()] == sorted(names)


def test_some_of_them_and_all_in_outline(catalog: Catalog) -> None:
    rows = [stream_table(name) for name in ("b", "a", "c")]
    with catalog.begin() as now:
        for row in rows:
            now.stream_tables.add(replace(row, diamond_consistency="atomic" if row.name == "c" else "none"))
    with catalog.begin(write=False) as now:
        found = now.stream_tables
        assert [row.name for row in found.some([rows[0].id, rows[1].id, "of nobody"])] == ["a", "b"]
        assert found.some([]) == []
        assert sorted(found.outlines()) == sorted((r.id, r.name, r.diamond_consistency) for r in found.all())


def test_names_among_others(catalog: Catalog) -> None:
    with catalog.begin() as now:
        now.stream_tables.add(stream_table("a"))
        now.stream_tables.add(stream_table("b"))
        assert now.stream_tables.names_among(["b", "c"]) == {"b"}
        assert now.stream_tables.names_among([]) == frozenset()


def test_names_differ_by_case(catalog: Catalog) -> None:
    with catalog.begin() as transaction:
        transaction.stream_tables.add(stream_table("a.b.X"))
        assert transaction.stream_tables.get("a.b.x") is None


def test_update_writes_the_fields_and_the_time(catalog: Catalog, clock: FakeClock) -> None:
    row = stream_table()
    with catalog.begin() as transaction:
        transaction.stream_tables.add(row)
    clock.advance(90)
    with catalog.begin() as transaction:
        updated = transaction.stream_tables.update(row.id, status="ACTIVE", frontier=frontier(), sequence=1)
    assert (updated.status, updated.frontier, updated.sequence) == ("ACTIVE", frontier(), 1)
    assert (updated.created_at, updated.updated_at) == (NOON, NOON + timedelta(seconds=90))
    with catalog.begin() as transaction:
        assert transaction.stream_tables.get(row.name) == updated
        assert transaction.stream_tables.update(row.id, frontier=None).frontier is None


def test_update_refuses_what_is_not_a_row(catalog: Catalog) -> None:
    row = stream_table()
    with catalog.begin() as transaction:
        transaction.stream_tables.add(row)
        with pytest.raises(TypeError, match="colour"):
            transaction.stream_tables.update(row.id, colour="red")
        with pytest.raises(TypeError, match="created_at"):
            transaction.stream_tables.update(row.id, created_at=NOON)
        with pytest.raises(ValueError, match="ACTIV"):
            transaction.stream_tables.update(row.id, status="ACTIV")
        assert transaction.stream_tables.get(row.name) == row


def test_update_of_a_dropped_stream_table_says_so(catalog: Catalog) -> None:
    with catalog.begin() as transaction, pytest.raises(StateError) as refusal:
        transaction.stream_tables.update("nobody", status="ACTIVE")
    assert refusal.value.code == "STREAM_TABLE_DROPPED"


def test_remove_frees_the_name(catalog: Catalog) -> None:
    row = stream_table()
    with catalog.begin() as transaction:
        transaction.stream_tables.add(row)
        transaction.stream_tables.remove(row.id)
        transaction.stream_tables.remove(row.id)
        assert transaction.stream_tables.get(row.name) is None
        transaction.stream_tables.add(row)


def test_data_timestamps_move_on_together_unless_somebody_was_there_first(catalog: Catalog) -> None:
    later = NOON + timedelta(minutes=1)
    rows = {
        "idle": stream_table("a.b.idle", sequence=3, status="ACTIVE"),
        "behind": stream_table("a.b.behind", sequence=3, status="ACTIVE", data_timestamp=NOON),
        "reached": stream_table("a.b.reached", sequence=3, status="ACTIVE", data_timestamp=later),
        "refreshed": stream_table("a.b.refreshed", sequence=4, status="ACTIVE"),
        "suspended": stream_table("a.b.suspended", sequence=3, status="SUSPENDED"),
        "to rebuild": stream_table("a.b.rebuild", sequence=3, status="ACTIVE", needs_reinit=True),
    }
    with catalog.begin() as transaction:
        for row in rows.values():
            transaction.stream_tables.add(row)
    with catalog.begin() as transaction:
        asked = {row.id: (3, later) for row in rows.values()} | {"nobody": (3, later)}
        asked[rows["behind"].id] = (3, later + timedelta(seconds=1))
        moved = transaction.stream_tables.reach(asked)
    assert moved == {rows["idle"].id, rows["behind"].id}
    with catalog.begin(write=False) as transaction:
        after = {name: transaction.stream_tables.get(row.name) for name, row in rows.items()}
    assert {name: row.data_timestamp for name, row in after.items() if row} == {
        "idle": later,
        "behind": later + timedelta(seconds=1),
        "reached": later,
        "refreshed": None,
        "suspended": None,
        "to rebuild": None,
    }


def test_many_data_timestamps_move_on(catalog: Catalog) -> None:
    rows = [stream_table(f"a.b.t{i}", status="ACTIVE") for i in range(1100)]
    with catalog.begin() as transaction:
        for row in rows:
            transaction.stream_tables.add(row)
        moved = transaction.stream_tables.reach({row.id: (row.sequence, NOON) for row in rows})
    assert moved == {row.id for row in rows}
