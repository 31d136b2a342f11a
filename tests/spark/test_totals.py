"""Aggregates continued from their stored totals: the input is not read again, the answer is Spark's own."""

from __future__ import annotations

import pytest

from spark_trickle import Action, Trickle
from spark_trickle.algebra.relations import KeysOf
from spark_trickle.catalyst.build import Builder
from spark_trickle.catalyst.plan import Plan
from spark_trickle.incremental.maintain import ByKey, Maintenance, Totals
from tests.spark.oracle import Checked

QUERIES = {
    "functions": "SELECT g, count(*) n, count(v) c, sum(v) s, avg(d) a, sum(d) sd, min(v) lo, max(b) hi, avg(v) av,"
    " bit_xor(v) x, bool_or(v > 3) some FROM o GROUP BY g",
    "spread": "SELECT g, var_pop(v) vp, stddev(d) sd, var_samp(b) vb, stddev_pop(v) FILTER (WHERE v > 1) f,"
    " variance(1000000 + v) far FROM o GROUP BY g",
    "spread_whole": "SELECT stddev(d) sd, var_pop(v) vp, stddev_samp(b) sb FROM o",
    "whole_table": "SELECT count(*) n, sum(v) s, avg(d) a, max(v) m FROM o",
    "having": "SELECT g, sum(v) s FROM o GROUP BY g HAVING sum(d) > 2",
    "having_whole": "SELECT sum(v) s FROM o HAVING sum(v) > 100",
    "ratio": "SELECT 100.0 * sum(CASE WHEN v > 2 THEN d ELSE 0 END) / sum(d) r FROM o WHERE d > 0",
    "joined": "SELECT name, count(*) n, sum(d) FILTER (WHERE v > 1) s, count(v) c"
    " FROM o JOIN c USING (g) GROUP BY name",
    "outer": "SELECT name, count(v) n, sum(d) s, max(d) m FROM c LEFT JOIN o USING (g) GROUP BY name",
    "hidden_key": "SELECT sum(v) + 1 AS s FROM o GROUP BY g",
    "rollup": "SELECT g, v, grouping_id() gi, sum(d) s, count(*) n FROM o GROUP BY ROLLUP (g, v)",
    "constant_group": "SELECT count(*) n, sum(v) s FROM o GROUP BY 'k'",
    "large": "SELECT g, sum(b) s, avg(b) a FROM o WHERE id < 100 GROUP BY g",
}
EDITS = [
    [
        "INSERT INTO o VALUES (6,'a',10,1.25,9),(6,'a',10,1.25,9),(7,'d',NULL,1,1)",
        "DELETE FROM o WHERE id IN (1, 5)",
    ],
    ["UPDATE o SET v = v + 1, d = d * 2", "UPDATE o SET g = 'z' WHERE id = 4"],
    ["DELETE FROM o"],
    [
        "INSERT INTO o VALUES (1,NULL,NULL,NULL,NULL),(100,NULL,99,922337203.1,9223372036854775807)",
        "INSERT INTO o VALUES (2,'q',200,1.1,9223372036854775807),(3,'q',7,0.1,-9223372036854775808)",
    ],
    ["DELETE FROM o WHERE id = 2"],
]


def maintenance_of(trickle: Trickle, name: str) -> Maintenance:
    return trickle._runtime.definitions.of(trickle._table(name)).definition.maintenance


def fill(trickle: Trickle) -> None:
    trickle.sql("CREATE TABLE o (id INT, g STRING, v INT, d DECIMAL(12,2), b BIGINT) USING delta")
    trickle.sql(
        "INSERT INTO o VALUES (1,'a',1,1.5,5),(2,'a',NULL,2.5,6),(3,'b',3,NULL,7),(4,NULL,4,4.5,8),"
        "(5,'c',NULL,NULL,NULL)"
    )
    trickle.sql("CREATE TABLE c (g STRING, name STRING) USING delta")
    trickle.sql("INSERT INTO c VALUES ('a','A'),('b','B'),(NULL,'N'),('c','C'),('q','B')")


def test_totals_follow_every_edit(trickle: Trickle, database: str) -> None:
    """`verify` compares with Spark's own answer, the stored totals included."""
    fill(trickle)
    for name, query in QUERIES.items():
        trickle.create_stream_table(name, query, "manual")
        assert isinstance(maintenance_of(trickle, name), Totals), name
    for edits in EDITS:
        for edit in edits:
            trickle.sql(edit)
        for name in QUERIES:
            assert trickle.refresh_stream_table(name).action is Action.DIFFERENTIAL, name
            verified = trickle.verify(name)
            assert verified.equal, f"{name} after {edits}: {verified}"
    for name in QUERIES:
        assert trickle.refresh_stream_table(name).action is Action.NO_DATA


def test_functions_without_totals_are_evaluated_by_key(trickle: Trickle, database: str) -> None:
    fill(trickle)
    for number, function in enumerate(
        (
            "count(DISTINCT v)",
            "sum(CAST(v AS DOUBLE))",
            "stddev(CAST(v AS FLOAT))",
            "skewness(v)",
            "collect_list(v)",
            "first(v)",
            "max_by(v, id)",
        )
    ):
        trickle.create_stream_table(f"t{number}", f"SELECT g, {function} AS f, count(*) n FROM o GROUP BY g")
        assert isinstance(maintenance_of(trickle, f"t{number}"), ByKey), function


def test_the_hidden_totals_are_not_part_of_a_star(trickle: Trickle, database: str) -> None:
    fill(trickle)
    trickle.create_stream_table("first", "SELECT g, avg(d) a FROM o GROUP BY g")
    assert trickle.spark.table("first").columns == ["g", "a", "__st"]
    trickle.sql("CREATE VIEW seen AS SELECT * FROM first")
    queries = {
        "star": "SELECT * FROM first",
        "distinct_star": "SELECT DISTINCT * FROM first",
        "nested": "SELECT x.*, name FROM (SELECT * FROM first) x LEFT JOIN c USING (g)",
        "through_view": "SELECT * FROM seen",
        "table_itself": "TABLE first",
        "union_of_stars": "SELECT * FROM first UNION ALL SELECT * FROM first",
    }
    for name, query in queries.items():
        trickle.create_stream_table(name, query)
        assert "__st" not in trickle.spark.table(name).columns[:2], name
    trickle.sql("INSERT INTO o VALUES (9, 'a', 1, 7, 1)")
    for name in queries:
        assert trickle.refresh_stream_table(name).action is Action.DIFFERENTIAL, name
        assert trickle.verify(name).equal
        assert trickle.spark.table(name).where("g = 'a' AND a > 3").count() in (1, 2)


def test_what_a_filter_drops_is_not_computed(trickle: Trickle, database: str) -> None:
    """Compiled, Spark computes what several aggregates share before it looks at their filters."""
    fill(trickle)
    kept = trickle.spark.conf.get("spark.sql.codegen.wholeStage")
    trickle.spark.conf.set("spark.sql.codegen.wholeStage", "true")
    try:
        trickle.create_stream_table(
            "t",
            "SELECT g, sum(100 div v) FILTER (WHERE v <> 0) s, count(*) n FROM o GROUP BY g",
            "manual",
            "DIFFERENTIAL",
        )
        assert isinstance(maintenance_of(trickle, "t"), Totals)
        for edit in (
            "INSERT INTO o VALUES (8,'a',0,1,1),(9,'a',7,1,1)",
            "DELETE FROM o WHERE v = 0 OR id = 1",
        ):
            trickle.sql(edit)
            assert trickle.refresh_stream_table("t").action is Action.DIFFERENTIAL
            assert trickle.verify("t").equal
    finally:
        trickle.spark.conf.set("spark.sql.codegen.wholeStage", kept)


def test_groups_are_read_again_only_where_their_extreme_may_be_gone(
    trickle: Trickle, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An extreme beyond all that was removed is certain, whether it was stored or has just been added."""
    trickle.sql("CREATE TABLE t (id INT, g STRING, v INT) USING delta")
    trickle.sql("INSERT INTO t VALUES (1,'a',1),(2,'a',5),(3,'a',5),(4,'b',NULL),(5,'b',3),(6,NULL,2)")
    query = "SELECT g, min(v) lo, max(v) hi, count(v) n FROM t GROUP BY g"
    trickle.create_stream_table("st", query, "manual", "DIFFERENTIAL")
    checked = Checked(trickle, "st", query)
    checked.created()
    assert isinstance(maintenance_of(trickle, "st"), Totals)
    read: list[object] = []
    original = Builder.provide

    def provided(builder: Builder, keys: KeysOf, key_set: Plan) -> None:
        read.append(keys)
        original(builder, keys, key_set)

    monkeypatch.setattr(Builder, "provide", provided)
    for edits, again in (
        (["UPDATE t SET v = 7 WHERE id = 2"], False),  # above what was removed
        (["UPDATE t SET v = 6 WHERE id = 2"], True),  # below it
        (["UPDATE t SET v = 9 WHERE id = 3", "UPDATE t SET v = 8 WHERE id = 2"], False),
        (["DELETE FROM t WHERE id = 3", "INSERT INTO t VALUES (7,'a',9)"], False),  # nothing is left to do
        (["DELETE FROM t WHERE id = 7", "INSERT INTO t VALUES (8,'a',0)"], True),
        (["UPDATE t SET v = v - 1 WHERE id IN (5, 6)"], True),
        (["UPDATE t SET v = -v WHERE id = 6", "DELETE FROM t WHERE id = 5"], True),
        (["INSERT INTO t VALUES (9,'b',4)", "DELETE FROM t WHERE g = 'a'"], True),
    ):
        read.clear()
        for edit in edits:
            trickle.sql(edit)
        checked.refresh(Action.DIFFERENTIAL)
        assert bool(read) is again, edits
