"""Of a large source only the files are read that the keys of a change can reach."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from spark_trickle import Action, Trickle
from spark_trickle.catalyst import listing
from spark_trickle.catalyst.listing import Within
from spark_trickle.catalyst.plan import Expression, Planner
from spark_trickle.storage import tables
from spark_trickle.storage.files import DataFile
from spark_trickle.storage.tables import Snapshot
from tests.spark.oracle import Checked

QUERIES = {
    "joined": "SELECT f.k, f.v, d.name FROM f JOIN d ON f.k = d.k",
    "grouped": "SELECT k, collect_list(v) AS vs FROM f GROUP BY k",
    "totals": "SELECT k, SUM(v) AS s FROM f GROUP BY k",
    "outer": "SELECT d.name, f.v FROM d LEFT JOIN f ON f.k = d.k",
}
KEYS = {"INT": "{}", "BIGINT": "{}", "DATE": "date_add(DATE'2020-01-01', {})"}
MAPPED = "TBLPROPERTIES ('delta.columnMapping.mode' = 'name', 'delta.enableDeletionVectors' = 'true')"


def fill(trickle: Trickle, key_type: str) -> None:
    """Four files of each table, each with its own ten keys."""
    key = KEYS[key_type]
    trickle.sql(f"CREATE TABLE f (k {key_type}, v INT) USING delta {MAPPED}")
    trickle.sql(f"CREATE TABLE d (k {key_type}, name STRING) USING delta")
    for first in range(0, 40, 10):
        rows = f"range({first}, {first + 10}, 1, 1)"
        trickle.sql(f"INSERT INTO f SELECT {key.format('CAST(id AS INT)')}, id FROM {rows}")
        trickle.sql(f"INSERT INTO d SELECT {key.format('CAST(id AS INT)')}, concat('n', id) FROM {rows}")


def edits(key: str) -> list[str]:
    return [
        f"UPDATE f SET v = v + 100 WHERE k = {key.format(12)}",
        f"DELETE FROM f WHERE k = {key.format(13)}",
        f"UPDATE d SET name = 'other' WHERE k = {key.format(31)}",
        f"INSERT INTO f VALUES (NULL, 5), ({key.format(99)}, 6)",
        f"UPDATE f SET k = {key.format(1)} WHERE k IS NULL OR k = {key.format(38)}",
        f"DELETE FROM f WHERE k IN ({key.format(12)}, {key.format(99)})",
    ]


@pytest.mark.parametrize(
    ("key_type", "names"),
    [("INT", ["outer"]), ("BIGINT", ["joined", "totals"]), ("DATE", ["grouped", "joined"])],
    ids=["int", "bigint", "date"],
)
def test_files_that_no_key_reaches_are_left_out(
    trickle: Trickle,
    database: str,
    key_type: str,
    names: Sequence[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    read: list[tuple[int, int]] = []
    right = Snapshot.files_within

    def watched(self: Snapshot, within: Within) -> list[DataFile] | None:
        found = right(self, within)
        if found is not None:
            read.append((len(found), len(self.by_content)))
        return found

    monkeypatch.setattr(Snapshot, "files_within", watched)
    if key_type == "DATE":  # tables as small as these are read whole by the driver, unless it looks keys up
        monkeypatch.setattr(trickle._runtime.tables, "most_scanned", 0)
    fill(trickle, key_type)
    checks = []
    for name in names:
        trickle.create_stream_table(name, QUERIES[name], "manual", "DIFFERENTIAL")
        checks.append(Checked(trickle, name, QUERIES[name]))
        checks[-1].created()
    for edit in edits(KEYS[key_type]):
        trickle.sql(edit)
        read.clear()
        for checked in checks:
            checked.refresh({Action.DIFFERENTIAL, Action.NO_DATA})
        # NULL lies in no range, so with it among the keys every file may hold one.
        assert "NULL" in edit or any(few < 4 <= every for few, every in read), edit


def test_a_file_left_out_by_mistake_is_noticed(
    trickle: Trickle, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(trickle, "INT")
    trickle.create_stream_table("st", QUERIES["joined"], "manual", "DIFFERENTIAL")
    checked = Checked(trickle, "st", QUERIES["joined"])
    checked.created()
    right = DataFile.may_hold

    def wrong(self: DataFile, column: str, ranges: Sequence[tuple[int, int]]) -> bool:
        return right(self, column, [(low + 10, high + 10) for low, high in ranges])

    monkeypatch.setattr(DataFile, "may_hold", wrong)
    trickle.sql("UPDATE d SET name = 'other' WHERE k = 12")
    with pytest.raises(AssertionError):
        checked.refresh(Action.DIFFERENTIAL)


@pytest.mark.parametrize("key_type", KEYS)
def test_keys_go_to_the_pages_of_files_in_parts(
    trickle: Trickle, database: str, key_type: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One key, as many as there are parts, some more and some fewer; each table's file has several pages."""
    key = KEYS[key_type].format("CAST(id AS INT)")
    monkeypatch.setattr(trickle._runtime.tables, "most_scanned", 0)  # the driver would find them by itself
    monkeypatch.setattr(tables, "_MANY_PAGES", 0)
    monkeypatch.setattr(tables, "_FEW_PAGES", 1.0)
    asked: list[int] = []
    right = listing._in_parts

    def watched(planner: Planner, value: Expression, values: Any) -> Expression:
        asked.append(int(values.size()))
        return right(planner, value, values)

    monkeypatch.setattr(listing, "_in_parts", watched)
    trickle.spark.conf.set("parquet.page.row.count.limit", "100")
    try:
        trickle.sql(
            f"CREATE TABLE f USING delta {MAPPED} AS SELECT {key} AS k, id AS v FROM range(0, 1000, 1, 1)"
        )
        trickle.sql(
            f"CREATE TABLE d USING delta AS SELECT {key} AS k, concat('n', id) AS name FROM range(0, 1000, 1, 1)"
        )
    finally:
        trickle.spark.conf.unset("parquet.page.row.count.limit")
    checks = []
    for name in ("joined", "grouped"):
        trickle.create_stream_table(name, QUERIES[name], "manual", "DIFFERENTIAL")
        checks.append(Checked(trickle, name, QUERIES[name]))
        checks[-1].created()
    for number, wanted in enumerate(
        ("v = 500", "v % 60 = 7", "v % 63 = 5", "v % 7 = 3", "v IN (0, 99, 100, 999)"), 498
    ):
        trickle.sql(f"UPDATE f SET v = v + 1000 WHERE {wanted}")
        trickle.sql(f"DELETE FROM d WHERE name = concat('n', {number})")
        asked.clear()
        for checked in checks:
            checked.refresh(Action.DIFFERENTIAL)
        assert asked, wanted
