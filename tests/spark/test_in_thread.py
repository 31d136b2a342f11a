"""What the calling thread evaluates by itself is what a job would have given."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame

from spark_trickle import Action, Trickle
from spark_trickle.catalyst import held
from spark_trickle.catalyst.plan import Plan, Planner, output
from tests.spark.oracle import Checked
from tests.spark.test_lanes import EVERY_TYPE, VALUES


def _jobs(trickle: Trickle) -> int:
    return int(trickle.spark.sparkContext._jsc.sc().dagScheduler().nextJobId())


def _held(planner: Planner, frame: DataFrame) -> DataFrame:
    found = held.hold(planner, frame)
    assert found is not None
    return planner.frame(found)


def _bag(frame: DataFrame) -> Counter[str]:
    return Counter(str(row) for row in frame.collect())


@pytest.fixture
def rows(trickle: Trickle, database: str) -> Iterator[str]:
    """Rows of every type at hand, as a view for the time of a test."""
    trickle.sql(f"CREATE TABLE t ({EVERY_TYPE}) USING delta")
    trickle.sql(f"INSERT INTO t VALUES {', '.join(VALUES)}, {VALUES[0]}")
    _held(Planner(trickle.spark), trickle.spark.table("t")).createOrReplaceTempView("at_hand")
    yield "at_hand"
    trickle.spark.catalog.dropTempView("at_hand")


QUERIES = {
    "join": "SELECT a.*, b.s AS other FROM at_hand a JOIN at_hand b ON a.k = b.k",
    "several joins": "SELECT a.k, c.s FROM at_hand a JOIN at_hand b ON a.k <=> b.k JOIN at_hand c ON b.i = c.i LEFT JOIN at_hand d ON d.s = c.s",
    "nested loop": "SELECT a.k, b.k AS other FROM at_hand a JOIN at_hand b ON a.k < b.k OR a.i > b.i",
    "anti join without equality": "SELECT * FROM at_hand a WHERE NOT EXISTS (SELECT 1 FROM at_hand b WHERE b.k > a.k)",
    "product": "SELECT a.k, b.s FROM at_hand a, at_hand b",
    "groups": "SELECT s, COUNT(*) AS n, MAX(ts) AS m, SUM(big) AS b, MIN(t) AS d FROM at_hand GROUP BY s",
    "no groups": "SELECT COUNT(*) AS n, AVG(d) AS a FROM at_hand WHERE k > 100",
    "distinct": "SELECT DISTINCT * FROM at_hand",
    "union": "SELECT k, s FROM at_hand UNION ALL SELECT i, s FROM at_hand UNION ALL SELECT k, 'x' FROM at_hand",
    "set operations": "SELECT k FROM at_hand EXCEPT ALL SELECT i FROM at_hand",
    "window": "SELECT k, row_number() OVER (PARTITION BY s ORDER BY k, i) AS n FROM at_hand",
    "sorted": "SELECT * FROM at_hand ORDER BY k DESC NULLS LAST, i LIMIT 2",
    "generated": "SELECT k, e FROM at_hand LATERAL VIEW explode(array(s, 'b')) x AS e",
    "an error that Spark proves away": "SELECT a.k FROM at_hand a JOIN at_hand b ON a.k = b.k WHERE 1 / (a.i - b.i) > 0 OR 1 = 1",
    "nothing": "SELECT a.* FROM at_hand a JOIN at_hand b ON a.k = b.k AND a.k > 100",
    "nested types": "SELECT k, collect_list(named_struct('s', s)) AS l FROM at_hand GROUP BY k",
}


@pytest.mark.parametrize("query", QUERIES.values(), ids=QUERIES)
def test_rows_are_those_of_a_job(trickle: Trickle, rows: str, query: str) -> None:
    frame = trickle.spark.sql(query)
    assert _bag(_held(Planner(trickle.spark), frame)) == _bag(frame)


@pytest.mark.parametrize("name", ["join", "groups", "distinct", "union", "window", "nested types"])
def test_no_job_is_run(trickle: Trickle, rows: str, name: str) -> None:
    frame, planner = trickle.spark.sql(QUERIES[name]), Planner(trickle.spark)
    before = _jobs(trickle)
    assert held.hold(planner, frame) is not None
    assert _jobs(trickle) == before


def test_columns_beside_an_outer_join_may_be_null(trickle: Trickle) -> None:
    """A plan of analyzed parts is not analyzed again, but its relations say that their columns are never NULL."""
    planner = Planner(trickle.spark)
    one, other = (
        held.hold(planner, trickle.spark.range(start, start + 3).selectExpr(f"id AS {name}"))
        for start, name in ((0, "a"), (1, "b"))
    )
    (a,), (b,) = output(one), output(other)
    joined = planner.join(one, other, "LeftOuter", planner.equal(a, b))
    missing = planner.project([a, planner.alias(planner.is_null(b), "missing")], joined)
    found = held.hold(planner, missing)
    assert _bag(planner.frame(found)) == _bag(planner.frame(missing))
    assert sorted(map(tuple, planner.frame(found).collect())) == [(0, True), (1, False), (2, False)]


def test_a_relation_on_both_sides_of_a_join(trickle: Trickle) -> None:
    """Its ids are not told apart, so Spark has to give one side others."""
    planner = Planner(trickle.spark)
    one = held.hold(planner, trickle.spark.range(3))
    (column,) = output(one)
    twice = held.hold(planner, planner.join(one, one, "Inner", planner.less(planner.literal(0), column)))
    assert len(planner.frame(twice).collect()) == 6
    both = held.hold(planner, planner.distinct(planner.union([one, planner.project([column], one)])))
    assert len(planner.frame(both).collect()) == 3


def test_an_error_is_spark_s_own_and_nothing_stays_behind(trickle: Trickle, rows: str) -> None:
    planner, memory = (
        Planner(trickle.spark),
        trickle.spark._jvm.org.apache.spark.SparkEnv.get().memoryManager(),
    )
    before = memory.executionMemoryUsed()
    failing = "SELECT a.k, SUM(1 / (a.i - b.i)) AS q FROM at_hand a JOIN at_hand b ON a.k = b.k GROUP BY a.k ORDER BY q LIMIT 1"
    with pytest.raises(PySparkException, match="DIVIDE_BY_ZERO"):
        held.hold(planner, trickle.spark.sql(failing))
    assert memory.executionMemoryUsed() == before
    assert trickle.spark._jvm.org.apache.spark.TaskContext.get() is None
    assert trickle.spark.range(5).count() == 5


def test_more_rows_than_asked_for_are_none(trickle: Trickle, rows: str) -> None:
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


def test_what_spark_reads_is_not_brought_into_one_partition(
    trickle: Trickle, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A source that the driver cannot look into is read by keys: its joins must stay spread."""
    for table in ("a", "b"):
        trickle.sql(f"CREATE TABLE {table} (id BIGINT, next BIGINT, v INT) USING delta")
        trickle.sql(f"INSERT INTO {table} SELECT id, id % 7, id % 5 FROM range(30)")
    query = "SELECT a.id, b.v FROM a JOIN b ON a.next = b.id"
    trickle.create_stream_table("st", query, "manual", "DIFFERENTIAL")
    checked = Checked(trickle, "st", query)
    checked.created()
    gathered, in_one = list[bool](), Planner.in_one

    def watched(planner: Planner, plan: Plan) -> Plan:
        gathered.append(planner.is_at_hand(plan))
        return in_one(planner, plan)

    monkeypatch.setattr(Planner, "in_one", watched)
    monkeypatch.setattr(trickle._runtime.tables, "most_scanned", 0)
    monkeypatch.setattr(trickle._runtime, "settings", replace(trickle._runtime.settings, whole_read_bytes=0))
    trickle.sql("INSERT INTO a VALUES (31, 3, 9)")
    trickle.sql("DELETE FROM b WHERE id = 4")
    checked.refresh(Action.DIFFERENTIAL)
    assert all(gathered)


@pytest.mark.parametrize("most_scanned", [10**8, 0], ids=["in the thread", "by jobs"])
def test_operators_find_the_settings_of_the_definition_while_they_run(
    trickle: Trickle, database: str, monkeypatch: pytest.MonkeyPatch, most_scanned: int
) -> None:
    """What happens to a key that a map has twice is a setting that Spark asks for when it makes the first map."""
    for table in ("a", "b"):
        trickle.sql(f"CREATE TABLE {table} (id BIGINT, next BIGINT, v INT) USING delta")
        trickle.sql(f"INSERT INTO {table} SELECT id, id % 7, id % 5 FROM range(30)")
    query = (
        "SELECT b.v, COUNT(element_at(map(1, 10, a.v, 20), 1)) AS n, MAX(element_at(map(1, 10, a.v, 20), 1)) AS m "
        "FROM a JOIN b ON a.next = b.id GROUP BY b.v"
    )
    policy = "spark.sql.mapKeyDedupPolicy"
    monkeypatch.setattr(trickle._runtime.tables, "most_scanned", most_scanned)
    trickle.spark.conf.set(policy, "LAST_WIN")
    try:
        trickle.create_stream_table("st", query, "manual", "DIFFERENTIAL")
        checked = Checked(trickle, "st", query)
        checked.created()
        trickle.sql("INSERT INTO a VALUES (31, 3, 1), (32, 4, 2)")
        trickle.sql("DELETE FROM b WHERE id = 4")
        checked.refresh(Action.DIFFERENTIAL)
    finally:
        trickle.spark.conf.unset(policy)
