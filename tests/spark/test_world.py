"""The world changes: every thing that can happen to a source, a view or the table itself has one outcome."""

from __future__ import annotations

import pytest

from spark_trickle import Action, Trickle, TrickleError
from tests.spark.oracle import Checked

QUERY = "SELECT k, SUM(v) AS s, COUNT(*) AS c FROM t GROUP BY k"
BAG = "SELECT id, v FROM t WHERE v > 0"


def table(trickle: Trickle, properties: str = "") -> None:
    trickle.sql(f"CREATE TABLE t (id INT, k STRING, v INT) USING delta {properties}")
    trickle.sql("INSERT INTO t VALUES (1,'a',10),(2,'a',20),(3,'b',30),(4,NULL,40)")


def checked(trickle: Trickle, query: str = QUERY) -> Checked:
    trickle.create_stream_table("st", query)
    under_test = Checked(trickle, "st", query)
    under_test.created()
    return under_test


@pytest.mark.parametrize(
    "statements",
    [
        ["TRUNCATE TABLE t"],
        ["INSERT OVERWRITE t VALUES (1,'a',10),(9,'z',90)"],
        [
            "DELETE FROM t WHERE id < 3",
            "RESTORE TABLE t TO VERSION AS OF 1",
            "INSERT INTO t VALUES (5,'c',1)",
        ],
        ["UPDATE t SET k = 'b' WHERE id = 1", "OPTIMIZE t", "DELETE FROM t WHERE id = 3"],
        ["ALTER TABLE t ADD COLUMN extra STRING", "INSERT INTO t VALUES (6,'a',1,'x')"],
        ["MERGE INTO t USING (SELECT 2 AS id) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET v = 21"],
    ],
    ids=["truncate", "overwrite", "restore", "optimize", "add_column", "merge"],
)
def test_a_rewritten_source_is_a_change_like_any_other(
    trickle: Trickle, database: str, statements: list[str]
) -> None:
    table(trickle)
    under_test = checked(trickle)
    for statement in statements:
        trickle.sql(statement)
    under_test.refresh(Action.DIFFERENTIAL)


def test_overwriting_with_equal_content_makes_no_commit(trickle: Trickle, database: str) -> None:
    table(trickle)
    under_test = checked(trickle, BAG)
    trickle.sql("INSERT OVERWRITE t SELECT * FROM t")
    result = under_test.refresh(Action.DIFFERENTIAL)
    assert (result.rows_inserted, result.rows_deleted, result.version) == (0, 0, 1)


def test_optimize_and_properties_are_no_data(trickle: Trickle, database: str) -> None:
    table(trickle)
    trickle.sql("INSERT INTO t VALUES (8,'h',8)")
    under_test = checked(trickle)
    trickle.sql("OPTIMIZE t")
    trickle.sql("ALTER TABLE t SET TBLPROPERTIES ('a' = 'b')")
    under_test.refresh(Action.NO_DATA)


def test_create_or_replace_gives_a_source_a_new_identity(trickle: Trickle, database: str) -> None:
    table(trickle)
    under_test = checked(trickle)
    trickle.sql("CREATE OR REPLACE TABLE t USING delta AS SELECT 7 AS id, 'q' AS k, 70 AS v")
    assert "replaced" in under_test.refresh(Action.REINITIALIZE).reason


def test_drop_and_create_under_the_same_name_rebuilds(trickle: Trickle, database: str) -> None:
    table(trickle)
    under_test = checked(trickle)
    trickle.sql("DROP TABLE t")
    with pytest.raises(TrickleError) as refused:
        trickle.refresh_stream_table("st")
    assert refused.value.code in {"SOURCE_DROPPED", "TABLE_OR_VIEW_NOT_FOUND"}
    table(trickle)
    trickle.sql("INSERT INTO t VALUES (5,'n',5)")
    result = under_test.refresh(Action.REINITIALIZE)
    assert "replaced" in result.reason


def test_vacuum_past_the_version_read_last_rebuilds(trickle: Trickle, database: str) -> None:
    table(trickle)
    under_test = checked(trickle, BAG)
    trickle.sql("UPDATE t SET v = v + 1")
    location = trickle._runtime.definitions.of(trickle._table("st")).definition.sources
    trickle.spark.conf.set("spark.databricks.delta.retentionDurationCheck.enabled", "false")
    trickle.spark.conf.set("spark.databricks.delta.vacuum.parallelDelete.enabled", "false")
    assert location
    trickle.sql("VACUUM t RETAIN 0 HOURS")
    result = under_test.refresh(Action.REINITIALIZE)
    assert "gone" in result.reason


def test_a_used_column_renamed_fails_until_it_is_back(trickle: Trickle, database: str) -> None:
    table(trickle, "TBLPROPERTIES ('delta.columnMapping.mode' = 'name')")
    under_test = checked(trickle)
    trickle.sql("ALTER TABLE t RENAME COLUMN v TO w")
    with pytest.raises(TrickleError) as refused:
        trickle.refresh_stream_table("st")
    assert refused.value.code.startswith("UNRESOLVED_COLUMN")
    assert trickle.status().set_index("name").loc[under_test_name(database), "status"] == "ERROR"
    trickle.sql("ALTER TABLE t RENAME COLUMN w TO v")
    trickle.sql("INSERT INTO t VALUES (5,'c',5)")
    under_test.refresh(Action.DIFFERENTIAL)


def test_an_unused_column_dropped_or_renamed_changes_nothing(trickle: Trickle, database: str) -> None:
    table(trickle, "TBLPROPERTIES ('delta.columnMapping.mode' = 'name')")
    under_test = checked(trickle)
    trickle.sql("ALTER TABLE t RENAME COLUMN id TO number")
    trickle.sql("INSERT INTO t VALUES (5,'c',5)")
    under_test.refresh(Action.DIFFERENTIAL)
    trickle.sql("ALTER TABLE t DROP COLUMN number")
    trickle.sql("INSERT INTO t VALUES ('c',6)")
    under_test.refresh(Action.DIFFERENTIAL)


def test_a_used_column_widened_rebuilds(trickle: Trickle, database: str) -> None:
    table(trickle, "TBLPROPERTIES ('delta.enableTypeWidening' = 'true')")
    under_test = checked(trickle, BAG)
    trickle.sql("ALTER TABLE t ALTER COLUMN v TYPE BIGINT")
    trickle.sql("INSERT INTO t VALUES (5,'c',5000000000)")
    result = under_test.refresh(Action.REINITIALIZE)
    assert "definition" in result.reason
    assert dict(trickle.spark.table("st").dtypes)["v"] == "bigint"


def test_a_column_added_under_a_star_rebuilds(trickle: Trickle, database: str) -> None:
    table(trickle)
    under_test = checked(trickle, "SELECT * FROM t")
    trickle.sql("ALTER TABLE t ADD COLUMN extra INT")
    trickle.sql("INSERT INTO t VALUES (5,'c',5,55)")
    trickle.refresh_stream_table("st")
    assert trickle.spark.table("st").columns == ["id", "k", "v", "extra"]
    assert trickle.verify("st").equal
    assert under_test.name == "st"


def test_the_change_feed_may_be_on_off_and_on_again(trickle: Trickle, database: str) -> None:
    table(trickle, "TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true')")
    under_test = checked(trickle, BAG)
    trickle.sql("UPDATE t SET v = v + 1 WHERE id = 1")
    trickle.sql("DELETE FROM t WHERE id = 2")
    under_test.refresh(Action.DIFFERENTIAL)
    trickle.sql("ALTER TABLE t SET TBLPROPERTIES ('delta.enableChangeDataFeed' = 'false')")
    trickle.sql("INSERT INTO t VALUES (5,'c',5)")
    under_test.refresh(Action.DIFFERENTIAL)
    trickle.sql("DELETE FROM t WHERE id = 3")
    trickle.sql("ALTER TABLE t SET TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true')")
    trickle.sql("INSERT INTO t VALUES (6,'d',6)")
    under_test.refresh(Action.DIFFERENTIAL)


@pytest.mark.parametrize("query", [QUERY, BAG], ids=["by_key", "by_weight"])
def test_somebody_writing_to_the_stream_table_is_noticed(trickle: Trickle, database: str, query: str) -> None:
    table(trickle)
    under_test = checked(trickle, query)
    trickle.sql("DELETE FROM st")
    with pytest.raises(AssertionError):
        under_test.created()
    result = trickle.refresh_stream_table("st")
    assert result.action is Action.REINITIALIZE
    assert "somebody else wrote" in result.reason
    assert trickle.verify("st").equal


def test_optimizing_the_stream_table_disturbs_nothing(trickle: Trickle, database: str) -> None:
    table(trickle)
    under_test = checked(trickle, BAG)
    trickle.sql("INSERT INTO t VALUES (5,'c',5)")
    under_test.refresh(Action.DIFFERENTIAL)
    trickle.sql("OPTIMIZE st")
    trickle.sql("DELETE FROM t WHERE id IN (1, 5)")
    under_test.refresh(Action.DIFFERENTIAL)


def test_a_dropped_stream_table_is_built_again(trickle: Trickle, database: str) -> None:
    table(trickle)
    checked(trickle)
    trickle.sql("DROP TABLE st")
    result = trickle.refresh_stream_table("st")
    assert (result.action, result.reason) == (Action.REINITIALIZE, "the table itself was dropped")
    assert trickle.verify("st").equal


def test_a_view_redefined_rebuilds_although_no_table_changed(trickle: Trickle, database: str) -> None:
    table(trickle)
    trickle.sql("CREATE VIEW low AS SELECT * FROM t WHERE v < 25")
    trickle.sql("CREATE VIEW lower AS SELECT k, v FROM low")
    trickle.create_stream_table("st", "SELECT k, SUM(v) AS s FROM lower GROUP BY k")
    trickle.sql("CREATE OR REPLACE VIEW low AS SELECT * FROM t WHERE v < 35")
    result = trickle.refresh_stream_table("st")
    assert result.action is Action.REINITIALIZE
    assert trickle.spark.table("st").where("k = 'b'").count() == 1
    assert trickle.verify("st").equal
    assert trickle.refresh_stream_table("st").action is Action.NO_DATA


def under_test_name(database: str) -> str:
    return f"{database}.st"
