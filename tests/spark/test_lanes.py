"""What the driver reads and writes by itself is what Spark would have read and written."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext

import pytest
from pyspark.sql import DataFrame, SparkSession

from spark_trickle import Action, Trickle
from spark_trickle.catalyst import held
from spark_trickle.catalyst.leaves import Shape
from spark_trickle.catalyst.listing import Values
from spark_trickle.catalyst.plan import Planner
from spark_trickle.storage import feed
from spark_trickle.storage.changes import changes_between
from spark_trickle.storage.direct import look_up
from spark_trickle.storage.shared_changes import small_change
from spark_trickle.storage.tables import Snapshot
from tests.spark.shapes import SHAPES, TABLES, Edits

EVERY_TYPE = (
    "k BIGINT, i INT, sh SMALLINT, ti TINYINT, b BOOLEAN, d DECIMAL(12,3), big DECIMAL(38,10), f DOUBLE, r FLOAT, "
    "s STRING, t DATE, ts TIMESTAMP, n TIMESTAMP_NTZ, x BINARY"
)
VALUES = (
    "(1, 1, 1S, 1Y, true, 1.125, 12345678901234567890.5, double('NaN'), float('-0.0'), 'a', DATE'1582-10-10',"
    " TIMESTAMP'1500-01-01 01:02:03.000004', TIMESTAMP_NTZ'0999-12-31 23:59:59.999999', X'00FF')",
    "(2, -2147483648, -32768S, -128Y, false, -0.001, -0.0000000001, double('-0.0'), float('Infinity'), '',"
    " DATE'9999-12-31', TIMESTAMP'2024-02-29 12:00:00.123456', TIMESTAMP_NTZ'2024-02-29 00:00:00', X'')",
    "(3, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL)",
    "(NULL, 4, 4S, 4Y, true, 4, 4, 4, 4, 'äöü 漢字', DATE'1970-01-01', TIMESTAMP'1970-01-01', "
    "TIMESTAMP_NTZ'1969-12-31 23:59:59', X'04')",
)
PROPERTIES = {
    "plain": "",
    "mapped": "TBLPROPERTIES ('delta.columnMapping.mode' = 'name', 'delta.enableDeletionVectors' = 'true')",
    "partitioned": "PARTITIONED BY (i)",
    "with a feed": "TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true', 'delta.enableDeletionVectors' = 'true')",
}


def _bag(frame: DataFrame) -> Counter[str]:
    return Counter(str(row) for row in frame.collect())


def _of_driver(trickle: Trickle, snapshot: Snapshot, keys: Values) -> Counter[str]:
    kinds = {f.name: f.dataType.simpleString() for f in snapshot.schema.fields}
    shape = Shape(tuple(kinds), tuple(kinds.items()))
    found = look_up(trickle._runtime.tables, snapshot, shape, {"k": keys}, 100)
    assert found is not None
    assert found.complete
    return _bag(Planner(trickle.spark).frame(found.plan))


@pytest.mark.parametrize("properties", PROPERTIES.values(), ids=PROPERTIES)
def test_looked_up_rows_are_those_that_spark_reads(trickle: Trickle, database: str, properties: str) -> None:
    trickle.sql(f"CREATE TABLE t ({EVERY_TYPE}) USING delta {properties}")
    for row in VALUES:
        trickle.sql(f"INSERT INTO t VALUES {row}, {row}")
    trickle.sql("INSERT INTO t SELECT k + 10, * EXCEPT (k) FROM t")
    if "DeletionVectors" in properties:
        trickle.sql("DELETE FROM t WHERE k IN (11, 12) AND f IS NOT NULL")
    if "columnMapping" in properties:
        trickle.sql("ALTER TABLE t RENAME COLUMN s TO text")
        trickle.sql("ALTER TABLE t ADD COLUMN later INT")
        trickle.sql(f"INSERT INTO t VALUES {VALUES[0][:-1]}, 7)")
    tables = trickle._runtime.tables
    snapshot = tables.latest_snapshot(trickle.sql("DESCRIBE DETAIL t").collect()[0]["location"])
    for keys, null in (([1, 3, 12], False), ([2], True), ([], True), ([99], False)):
        condition = f"k IN ({', '.join(map(str, [-1, *keys]))})" + (" OR k IS NULL" if null else "")
        expected = _bag(tables.rows(snapshot).where(condition))
        assert _of_driver(trickle, snapshot, Values("bigint", keys, null)) == expected
    assert "columnMapping" not in properties or "later=7" in str(_bag(tables.rows(snapshot)))


def test_a_feed_read_by_the_driver_nets_to_what_spark_reads(
    trickle: Trickle, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = []
    right = feed.read_feed
    monkeypatch.setattr(
        "spark_trickle.storage.shared_changes.read_feed", lambda *a: read.append(right(*a)) or read[-1]
    )
    # As in sessions of definitions: with Java's old dates Spark shows another day for one between two calendars.
    monkeypatch.setattr(trickle._runtime, "tables", trickle._runtime.tables.in_session(_modern(trickle)))
    trickle.sql(f"CREATE TABLE t ({EVERY_TYPE}) USING delta {PROPERTIES['with a feed']}")
    statements = [
        f"INSERT INTO t VALUES {', '.join(VALUES)}",
        "INSERT INTO t SELECT k + 10, * EXCEPT (k) FROM t",
        "UPDATE t SET i = i + 1, f = double('0.0') WHERE k < 3",
        "DELETE FROM t WHERE k > 11 OR k IS NULL",
        "DELETE FROM t WHERE k = 1",
        "OPTIMIZE t",
        "MERGE INTO t USING (SELECT 2L AS key UNION ALL SELECT 77L) ON k = key"
        " WHEN MATCHED THEN UPDATE SET s = 'merged' WHEN NOT MATCHED THEN INSERT (k, s) VALUES (key, 'new')",
        "DELETE FROM t",
    ]
    tables = trickle._runtime.tables
    place = trickle.sql("DESCRIBE DETAIL t").collect()[0]["location"]
    snapshots = [tables.latest_snapshot(place)]
    for statement in statements:
        trickle.sql(statement)
        snapshots.append(tables.latest_snapshot(place))
    names = snapshots[0].schema.names
    kinds = {f.name: f.dataType.simpleString() for f in snapshots[0].schema.fields}
    planner = Planner(trickle.spark)
    intervals = [
        *itertools.pairwise(snapshots),
        (snapshots[0], snapshots[5]),
        (snapshots[1], snapshots[7]),
    ]
    for old, new in intervals:
        for columns in (names, ["k", "f"], ["b"]):
            own = small_change(
                tables, old, new, Shape(tuple(names), tuple((c, kinds[c]) for c in columns)), 1000
            )
            assert own is not None
            change = changes_between(tables, old, new, columns)
            expected = Counter[str]() if change is None else _bag(change)
            assert _bag(planner.frame(own.plan).select(*columns, "__st_weight")) == expected
    assert all(one is not None for one in read)
    assert len(read) == len(intervals)


def _modern(trickle: Trickle) -> SparkSession:
    session = trickle.spark.newSession()
    session.conf.set("spark.sql.datetime.java8API.enabled", "true")
    return session


@contextmanager
def _left_to_spark(trickle: Trickle) -> Iterator[None]:
    tables, in_thread = trickle._runtime.tables, held.evaluated
    kept, tables.most_scanned = tables.most_scanned, 0
    tables._changes.clear()
    held.evaluated = lambda *_, **__: None
    try:
        yield
    finally:
        held.evaluated = in_thread
        tables.most_scanned = kept
        tables._changes.clear()


def test_both_ways_lead_to_the_same_tables_and_the_same_change_feeds(trickle: Trickle, database: str) -> None:
    """All shapes twice, one of each maintained by the driver where it can, the other by Spark alone."""
    edits = Edits(20261117)
    for table, schema in TABLES.items():
        trickle.sql(f"CREATE TABLE {table} ({schema}) USING delta {PROPERTIES['with a feed']}")
        trickle.sql(edits.initial(table))
    for name, query in SHAPES.items():
        for kind in ("quick", "slow"):
            trickle.create_stream_table(f"{kind}_{name}", query, "manual", "DIFFERENTIAL")
    for _ in range(4):
        for statement in edits.batch():
            trickle.sql(statement)
    for name in SHAPES:
        quick = trickle.refresh_stream_table(f"quick_{name}")
        with _left_to_spark(trickle):
            slow = trickle.refresh_stream_table(f"slow_{name}")
        assert quick.action is slow.action
        assert _bag(trickle.spark.table(f"quick_{name}")) == _bag(trickle.spark.table(f"slow_{name}")), name
        if quick.action is Action.DIFFERENTIAL:
            assert _netted(trickle, f"quick_{name}") == _netted(trickle, f"slow_{name}"), name


@pytest.mark.parametrize("left_to_spark", [False, True], ids=["driver", "spark"])
def test_a_change_is_written_as_by_merge(trickle: Trickle, database: str, left_to_spark: bool) -> None:
    """The same rows and the same change feed as those of a table into which the change is merged by hand."""
    edits = (
        "UPDATE t SET v = v + 1 WHERE id % 7 = 0",
        "DELETE FROM t WHERE id % 11 = 3",
        "INSERT INTO t SELECT id, NULL, 'new' FROM range(500, 520)",
        "UPDATE t SET v = NULL WHERE id BETWEEN 100 AND 110",
    )
    trickle.sql(f"CREATE TABLE t (id BIGINT, v INT, s STRING) USING delta {PROPERTIES['with a feed']}")
    trickle.sql("INSERT INTO t SELECT id, CAST(id % 5 AS INT), 'old' FROM range(400)")
    query = "SELECT id, v * 2 AS w, s FROM t WHERE id % 3 < 2"
    trickle.create_stream_table("own", query, "manual", "DIFFERENTIAL")
    trickle.sql(f"CREATE TABLE merged (id BIGINT, w INT, s STRING) USING delta {PROPERTIES['with a feed']}")
    trickle.sql(f"INSERT INTO merged {query}")
    for edit in edits:
        trickle.sql(edit)
        with _left_to_spark(trickle) if left_to_spark else nullcontext():
            assert trickle.refresh_stream_table("own").action is Action.DIFFERENTIAL
        trickle.sql(
            f"MERGE INTO merged m USING ({query}) q ON m.id = q.id"
            " WHEN MATCHED AND NOT (m.w <=> q.w AND m.s <=> q.s) THEN UPDATE SET w = q.w, s = q.s"
            " WHEN NOT MATCHED THEN INSERT * WHEN NOT MATCHED BY SOURCE THEN DELETE"
        )
        assert _bag(trickle.spark.table("own")) == _bag(trickle.spark.table("merged"))
        assert _netted(trickle, "own") == _netted(trickle, "merged")


def _netted(trickle: Trickle, name: str) -> dict[str, int]:
    """The change feed since the table was filled; version 0 creates it, version 1 fills it."""
    rows = trickle.sql(f"SELECT * FROM table_changes('{name}', 2)") if _version(trickle, name) > 1 else None
    found: Counter[str] = Counter()
    for row in rows.collect() if rows is not None else []:
        values = {k: v for k, v in row.asDict().items() if not k.startswith("_c")}
        found[str(values)] += 1 if row["_change_type"] in {"insert", "update_postimage"} else -1
    return {row: count for row, count in found.items() if count}


def _version(trickle: Trickle, name: str) -> int:
    return int(trickle.sql(f"DESCRIBE HISTORY {name} LIMIT 1").collect()[0]["version"])


def test_files_of_the_driver_are_skipped_by_their_statistics(trickle: Trickle, database: str) -> None:
    trickle.sql("CREATE TABLE t (k INT, s STRING, d DECIMAL(8,2), t DATE, f DOUBLE) USING delta")
    trickle.sql("INSERT INTO t VALUES (1, 'a', 1.5, DATE'2024-01-01', 0.5)")
    trickle.create_stream_table("st", "SELECT * FROM t", "manual", "DIFFERENTIAL")
    trickle.sql("INSERT INTO t VALUES (5, 'b', -2.25, DATE'2024-02-29', NULL), (7, 'c', 9, NULL, 1.5)")
    assert trickle.refresh_stream_table("st").rows_inserted == 2
    latest = trickle._runtime.tables.latest_snapshot(
        trickle.sql("DESCRIBE DETAIL st").collect()[0]["location"]
    )
    newest = max(latest.by_content.values(), key=lambda file: file.rows or 0)
    assert newest.ends("k") == (5, 7)
    for condition, count in (
        ("k = 6", 0),
        ("d < 0", 1),
        ("t >= '2024-02-29'", 1),
        ("s = 'c'", 1),
        ("f > 1", 1),
    ):
        assert trickle.spark.table("st").where(condition).count() == count
