"""What the calling thread evaluates by itself is what a job would have given."""

from __future__ import annotations

from collections import Counter

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame

from spark_trickle import Action, Trickle
from spark_trickle.catalyst import held
from spark_trickle.catalyst.plan import Plan, Planner
from tests.spark.oracle import Checked
from tests.spark.test_lanes import EVERY_TYPE, VALUES


def _jobs(trickle: Trickle) -> int:
    return int(trickle.spark.sparkContext._jsc.sc().dagScheduler().nextJobId())


def _held(planner: Planner, frame: DataFrame) -> Plan:
    found = held.hold(planner, frame)
    assert found is not None
    return planner.frame(found)


def _bag(frame: DataFrame) -> Counter[str]:
    return Counter(str(row) for row in frame.collect())


@pytest.fixture
def rows(trickle: Trickle, database: str) -> DataFrame:
    """Rows of every type at hand."""
    trickle.sql(f"CREATE TABLE t ({EVERY_TYPE}) USING delta")
    trickle.sql(f"INSERT INTO t VALUES {', '.join(VALUES)}, {VALUES[0]}")
    planner = Planner(trickle.spark)
    return _held(planner, trickle.spark.table("t"))


QUERIES = {
    "join": "SELECT a.*, b.s AS other FROM r a JOIN r b ON a.k = b.k",
    "several joins": "SELECT a.k, c.s FROM r a JOIN r b ON a.k <=> b.k JOIN r c ON b.i = c.i LEFT JOIN r d ON d.s = c.s",
    "nested loop": "SELECT a.k, b.k AS other FROM r a JOIN r b ON a.k < b.k OR a.i > b.i",
    "anti join without equality": "SELECT * FROM r a WHERE NOT EXISTS (SELECT 1 FROM r b WHERE b.k > a.k)",
    "product": "SELECT a.k, b.s FROM r a, r b",
    "groups": "SELECT s, COUNT(*) AS n, MAX(ts) AS m, SUM(big) AS b, MIN(t) AS d FROM r GROUP BY s",
    "no groups": "SELECT COUNT(*) AS n, AVG(d) AS a FROM r WHERE k > 100",
    "distinct": "SELECT DISTINCT * FROM r",
    "union": "SELECT k, s FROM r UNION ALL SELECT i, s FROM r UNION ALL SELECT k, 'x' FROM r",
    "set operations": "SELECT k FROM r EXCEPT ALL SELECT i FROM r",
    "window": "SELECT k, row_number() OVER (PARTITION BY s ORDER BY k, i) AS n FROM r",
    "sorted": "SELECT * FROM r ORDER BY k DESC NULLS LAST, i LIMIT 2",
    "generated": "SELECT k, e FROM r LATERAL VIEW explode(array(s, 'b')) x AS e",
    "nothing": "SELECT a.* FROM r a JOIN r b ON a.k = b.k AND a.k > 100",
    "nested types": "SELECT k, collect_list(named_struct('s', s)) AS l FROM r GROUP BY k",
}


@pytest.mark.parametrize("query", QUERIES.values(), ids=QUERIES)
def test_rows_are_those_of_a_job(trickle: Trickle, rows: DataFrame, query: str) -> None:
    rows.createOrReplaceTempView("r")
    frame = trickle.spark.sql(query)
    assert _bag(_held(Planner(trickle.spark), frame)) == _bag(frame)


@pytest.mark.parametrize("name", ["join", "groups", "distinct", "union", "window"])
def test_no_job_is_run(trickle: Trickle, rows: DataFrame, name: str) -> None:
    rows.createOrReplaceTempView("r")
    frame, planner = trickle.spark.sql(QUERIES[name]), Planner(trickle.spark)
    before = _jobs(trickle)
    assert held.hold(planner, frame) is not None
    assert _jobs(trickle) == before


def test_an_error_is_spark_s_own_and_nothing_stays_behind(trickle: Trickle, rows: DataFrame) -> None:
    rows.createOrReplaceTempView("r")
    planner, memory = (
        Planner(trickle.spark),
        trickle.spark._jvm.org.apache.spark.SparkEnv.get().memoryManager(),
    )
    before = memory.executionMemoryUsed()
    failing = (
        "SELECT a.k, SUM(1 / (a.i - b.i)) AS q FROM r a JOIN r b ON a.k = b.k GROUP BY a.k ORDER BY q LIMIT 1"
    )
    with pytest.raises(PySparkException, match="DIVIDE_BY_ZERO"):
        held.hold(planner, trickle.spark.sql(failing))
    assert memory.executionMemoryUsed() == before
    assert trickle.spark._jvm.org.apache.spark.TaskContext.get() is None
    assert trickle.spark.range(5).count() == 5


def test_more_rows_than_asked_for_are_none(trickle: Trickle, rows: DataFrame) -> None:
    rows.createOrReplaceTempView("r")
    frame = trickle.spark.sql(QUERIES["product"])
    assert held.hold(Planner(trickle.spark), frame, 24) is None
    assert held.hold(Planner(trickle.spark), frame, 25) is not None


def test_a_small_refresh_over_several_joins_needs_no_job(trickle: Trickle, database: str) -> None:
    feed = "TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true', 'delta.enableDeletionVectors' = 'true')"
    for table in ("a", "b", "c"):
        trickle.sql(f"CREATE TABLE {table} (id BIGINT, next BIGINT, v INT) USING delta {feed}")
        trickle.sql(f"INSERT INTO {table} SELECT id, id % 7, id % 5 FROM range(30)")
    query = (
        "SELECT c.v, COUNT(*) AS n, SUM(a.v) AS s FROM a JOIN b ON a.next = b.id JOIN c ON b.next = c.id "
        "WHERE EXISTS (SELECT 1 FROM b x WHERE x.id = a.id AND x.v <> 4) GROUP BY c.v"
    )
    trickle.create_stream_table("st", query, "manual", "DIFFERENTIAL")
    checked = Checked(trickle, "st", query)
    for statement in (
        "INSERT INTO a VALUES (31, 3, 9)",
        "UPDATE b SET next = 2 WHERE id = 3",
        "DELETE FROM c WHERE id = 4",
    ):
        trickle.sql(statement)
    before = _jobs(trickle)
    trickle.refresh_stream_table("st")
    assert _jobs(trickle) == before
    checked.created()
    trickle.sql("DELETE FROM a WHERE id < 4")
    checked.refresh(Action.DIFFERENTIAL)
