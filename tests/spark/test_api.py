"""The verbs of the API beyond the happy path: modes, order, versions, frames, dropping."""

from __future__ import annotations

import pytest

from spark_trickle import Action, Trickle, TrickleError
from tests.spark.oracle import Checked, rows_of


def orders(trickle: Trickle) -> None:
    trickle.sql("CREATE TABLE orders (id INT, region STRING, amount DECIMAL(10,2)) USING delta")
    trickle.sql("INSERT INTO orders VALUES (1,'n',10.00),(2,'n',5.50),(3,'s',7.25),(4,NULL,1.00)")


def jobs(trickle: Trickle) -> int:
    return int(trickle.spark.sparkContext._jsc.sc().dagScheduler().numTotalJobs())


def test_a_refresh_without_changes_runs_no_spark_job(trickle: Trickle, database: str) -> None:
    orders(trickle)
    trickle.create_stream_table("st", "SELECT region, SUM(amount) AS s FROM orders GROUP BY region")
    trickle.create_stream_table("top", "SELECT MAX(s) AS m FROM st")
    trickle.refresh_stream_table("top")
    before = jobs(trickle)
    assert trickle.refresh_stream_table("top").action is Action.NO_DATA
    assert jobs(trickle) == before


def test_a_refresh_without_changes_is_recorded_for_all_it_reads(trickle: Trickle, database: str) -> None:
    orders(trickle)
    trickle.create_stream_table("st", "SELECT region, SUM(amount) AS s FROM orders GROUP BY region")
    trickle.create_stream_table("top", "SELECT MAX(s) AS m FROM st")
    trickle.refresh_stream_table("top")
    result = trickle.refresh_stream_table("top")
    assert (result.action, result.reason) == (Action.NO_DATA, "no source has changed")
    assert result.seconds > 0
    history = trickle.refresh_history().head(2)
    assert sorted(history["name"]) == [f"{database}.st", f"{database}.top"]
    assert set(history["action"]) == {"NO_DATA"}
    assert trickle.verify("top", as_of=int(history["id"].iloc[0])).equal


def test_a_refresh_without_changes_puts_right_what_a_killed_one_left(trickle: Trickle, database: str) -> None:
    orders(trickle)
    trickle.create_stream_table("st", "SELECT id, amount FROM orders")
    with trickle._catalog.begin() as catalog:
        catalog.refreshes.start(trickle._table("st").id, 2, "another machine:1:1:1")
    assert trickle.refresh_stream_table("st").action is Action.NO_DATA
    assert "RUNNING" not in set(trickle.refresh_history("st")["status"])


def test_an_altered_table_tells_so_although_nothing_changes(trickle: Trickle, database: str) -> None:
    orders(trickle)
    trickle.create_stream_table("st", "SELECT id, amount FROM orders")
    trickle.alter_stream_table("st", schedule="17m")
    for _ in range(2):
        assert trickle.refresh_stream_table("st").action is Action.NO_DATA
    location = trickle._table("st").location
    assert "17m" in trickle._runtime.tables.setting(location, "trickle.definition")


def test_a_chain_is_refreshed_upstream_first_at_one_set_of_versions(trickle: Trickle, database: str) -> None:
    orders(trickle)
    trickle.create_stream_table("b", "SELECT region, SUM(amount) AS s FROM orders GROUP BY region")
    trickle.create_stream_table("c", "SELECT region, COUNT(*) AS n FROM orders GROUP BY region")
    query = "SELECT b.region, b.s / c.n AS mean, o.id FROM b JOIN c ON b.region <=> c.region JOIN orders o ON o.region <=> b.region"
    trickle.create_stream_table("d", query)
    trickle.sql("INSERT INTO orders VALUES (5,'n',100.00)")
    result = trickle.refresh_stream_table("d")
    assert result.action is Action.DIFFERENTIAL
    assert result.frontier is not None
    history = trickle.refresh_history().head(3)
    assert sorted(history["name"]) == [f"{database}.b", f"{database}.c", f"{database}.d"]
    assert trickle.verify("d").equal
    base = [v for n, v in result.frontier.bases.items() if n.endswith("orders")]
    assert [v.version for v in base] == [2]


def test_every_past_refresh_can_be_verified(trickle: Trickle, database: str) -> None:
    orders(trickle)
    trickle.create_stream_table("st", "SELECT region, SUM(amount) AS s FROM orders GROUP BY region")
    for i in range(3):
        trickle.sql(f"INSERT INTO orders VALUES ({10 + i},'n',{i}.00)")
        trickle.refresh_stream_table("st")
    for refresh in trickle.refresh_history("st")["id"]:
        assert trickle.verify("st", as_of=int(refresh)).equal


def test_verify_finds_and_repairs_a_wrong_row(trickle: Trickle, database: str) -> None:
    orders(trickle)
    trickle.create_stream_table("st", "SELECT id, amount FROM orders")
    trickle.sql("UPDATE st SET amount = 0 WHERE id = 1")
    with trickle._catalog.begin() as catalog:
        # As if the foreign write had been overlooked.
        latest = trickle._runtime.tables.latest(trickle._table("st").location)
        catalog.stream_tables.update(trickle._table("st").id, table_version=latest.version)
    result = trickle.verify("st", repair=True)
    assert (result.equal, result.missing, result.unexpected) == (False, 1, 1)
    assert len(result.examples) == 2
    assert trickle.verify("st").equal


def test_mode_full_recomputes_and_says_so(trickle: Trickle, database: str) -> None:
    orders(trickle)
    query = "SELECT region, SUM(amount) AS s FROM orders GROUP BY region"
    trickle.create_stream_table("st", query, refresh_mode="FULL")
    checked = Checked(trickle, "st", query)
    checked.created()
    trickle.sql("DELETE FROM orders WHERE id = 3")
    result = checked.refresh(Action.FULL)
    assert "refresh_mode is FULL" in result.reason
    trickle.alter_stream_table("st", refresh_mode="DIFFERENTIAL")
    trickle.sql("INSERT INTO orders VALUES (9,'s',1.00)")
    checked.refresh(Action.DIFFERENTIAL)


def test_full_with_readers_writes_only_the_difference(trickle: Trickle, database: str) -> None:
    orders(trickle)
    trickle.create_stream_table(
        "st", "SELECT region, SUM(amount) AS s FROM orders GROUP BY region", refresh_mode="FULL"
    )
    trickle.create_stream_table("reader", "SELECT region FROM st WHERE s > 6")
    trickle.sql("INSERT INTO orders VALUES (9,'s',1.00)")
    result = trickle.refresh_stream_table("st")
    assert (result.action, result.rows_inserted, result.rows_deleted) == (Action.FULL, 1, 1)


def test_auto_recomputes_when_most_of_a_large_source_changed(trickle: Trickle, database: str) -> None:
    from dataclasses import replace

    orders(trickle)
    trickle.create_stream_table("st", "SELECT id, amount FROM orders")
    runtime = trickle._runtime
    kept = runtime.settings
    runtime.settings = replace(kept, full_refresh_min_rows=0)
    try:
        trickle.sql("UPDATE orders SET amount = amount + 1")
        result = trickle.refresh_stream_table("st")
    finally:
        runtime.settings = kept
    assert result.action is Action.FULL
    assert "% of" in result.reason
    assert trickle.verify("st").equal


def test_explain_tells_the_decision_before_it_is_taken(trickle: Trickle, database: str) -> None:
    orders(trickle)
    trickle.create_stream_table("st", "SELECT region, SUM(amount) AS s FROM orders GROUP BY region")
    assert "NO_DATA" in str(trickle.explain("st"))
    trickle.sql("INSERT INTO orders VALUES (9,'s',1.00)")
    text = str(trickle.explain("st"))
    assert "DIFFERENTIAL" in text and "Support: incremental" in text and "changes of" in text
    partly = trickle.explain("SELECT id FROM orders WHERE amount > (SELECT AVG(amount) FROM orders)")
    assert partly.support.startswith("partly recomputed: an aggregate without grouping keys")
    assert any(note.startswith("evaluating in full reads `") and "KiB" in note for note in partly.notes)
    whole = trickle.explain("SELECT id, RANK() OVER (ORDER BY amount) AS r FROM orders")
    assert whole.support.startswith("recomputed: a window without PARTITION BY")
    assert whole.support.endswith("(line 1, column 12)")


def test_a_dataframe_defines_a_stream_table_in_its_process(trickle: Trickle, database: str) -> None:
    orders(trickle)
    frame = trickle.spark.table("orders").groupBy("region").count()
    trickle.create_stream_table("st", frame)
    trickle.sql("DELETE FROM orders WHERE region = 'n'")
    result = trickle.refresh_stream_table("st")
    assert result.action is Action.DIFFERENTIAL
    assert trickle.verify("st").equal
    assert set(trickle.status().query(f"name == '{database}.st'")["defined_by"]) == {
        "DataFrame of one process"
    }
    trickle._runtime.definitions.forget(trickle._table("st").id)
    with pytest.raises(TrickleError) as refused:
        trickle.refresh_stream_table("st")
    assert refused.value.code == "DATAFRAME_OF_ANOTHER_PROCESS"


def test_dropping_respects_readers(trickle: Trickle, database: str) -> None:
    orders(trickle)
    trickle.create_stream_table("a", "SELECT id FROM orders")
    trickle.create_stream_table("b", "SELECT id FROM a")
    with pytest.raises(TrickleError) as refused:
        trickle.drop_stream_table("a")
    assert refused.value.code == "HAS_DEPENDENTS"
    assert f"`{database}.b`" in refused.value.message
    trickle.drop_stream_table("a", cascade=True)
    assert not [n for n in trickle.status()["name"] if n.startswith(database)]
    assert not trickle.spark.catalog.tableExists("a")


def test_a_suspended_table_waits_and_resumes(trickle: Trickle, database: str) -> None:
    orders(trickle)
    trickle.create_stream_table("st", "SELECT id FROM orders")
    trickle.suspend("st")
    with pytest.raises(TrickleError) as refused:
        trickle.refresh_stream_table("st")
    assert refused.value.code == "SUSPENDED"
    trickle.resume("st")
    assert trickle.refresh_stream_table("st").action is Action.NO_DATA


def test_a_diamond_never_mixes_versions(trickle: Trickle, database: str) -> None:
    orders(trickle)
    trickle.create_stream_table("b", "SELECT region, SUM(amount) AS s FROM orders GROUP BY region")
    trickle.create_stream_table("d", "SELECT o.id, b.s FROM orders o JOIN b ON o.region <=> b.region")
    trickle.suspend("b")
    trickle.sql("INSERT INTO orders VALUES (9,'s',1.00)")
    # `b` stays where it is, so `orders` is read as of the version that `b` has read.
    assert trickle.refresh_stream_table("d").action is Action.NO_DATA
    assert trickle.verify("d").equal
    trickle.resume("b")
    assert trickle.refresh_stream_table("d").action is Action.DIFFERENTIAL
    assert trickle.verify("d").equal


def test_replacing_a_definition_and_refusing_a_cycle(trickle: Trickle, database: str) -> None:
    orders(trickle)
    trickle.create_stream_table("a", "SELECT id FROM orders")
    trickle.create_stream_table("b", "SELECT id FROM a")
    with pytest.raises(TrickleError) as refused:
        trickle.create_stream_table("a", "SELECT id FROM b", or_replace=True)
    assert refused.value.code == "CYCLE"
    with pytest.raises(TrickleError) as failed:
        trickle.create_stream_table("a", "SELECT 1 / (id - id) AS id FROM orders", or_replace=True)
    assert failed.value.code == "DIVIDE_BY_ZERO"
    assert trickle.verify("a").equal
    assert trickle.refresh_stream_table("a").action is Action.NO_DATA
    trickle.create_stream_table(
        "a", "SELECT id, amount AS `odd (x)` FROM orders WHERE id > 1", or_replace=True
    )
    assert trickle.create_stream_table("a", "SELECT 1 AS x", if_not_exists=True) is None
    assert trickle.verify("a").equal
    trickle.refresh_stream_table("b")
    assert trickle.verify("b").equal
    assert rows_of(trickle.spark.table("b")) == rows_of(
        trickle.spark.sql("SELECT id FROM orders WHERE id > 1")
    )


def test_an_uninitialized_table_is_filled_by_its_first_refresh(trickle: Trickle, database: str) -> None:
    orders(trickle)
    assert trickle.create_stream_table("st", "SELECT id FROM orders", initialize=False) is None
    assert rows_of(trickle.spark.table("st")) == {}
    result = trickle.refresh_stream_table("st")
    assert (result.action, result.reason) == (Action.FULL, "it is filled for the first time")
    assert trickle.verify("st").equal


def test_a_query_that_fails_leaves_everything_as_it_was(trickle: Trickle, database: str) -> None:
    orders(trickle)
    query = "SELECT id, 100 / amount AS x FROM orders"
    trickle.create_stream_table("st", query)
    checked = Checked(trickle, "st", query)
    checked.created()
    frontier = trickle._table("st").frontier
    trickle.sql("INSERT INTO orders VALUES (8,'s',0.00)")
    with pytest.raises(TrickleError) as failed:
        trickle.refresh_stream_table("st")
    assert failed.value.code == "DIVIDE_BY_ZERO"
    assert trickle._table("st").frontier == frontier
    assert trickle.refresh_history("st")["status"].iloc[0] == "FAILED"
    trickle.sql("DELETE FROM orders WHERE id = 8")
    trickle.sql("INSERT INTO orders VALUES (9,'s',2.00)")
    checked.refresh(Action.DIFFERENTIAL)


def test_a_table_whose_change_feed_was_switched_off_stays_right(trickle: Trickle, database: str) -> None:
    orders(trickle)
    trickle.create_stream_table("st", "SELECT id, amount FROM orders")
    trickle.sql("ALTER TABLE st SET TBLPROPERTIES ('delta.enableChangeDataFeed' = 'false')")
    trickle.sql("UPDATE orders SET amount = 3 WHERE id = 1")
    assert trickle.refresh_stream_table("st").action is Action.DIFFERENTIAL
    assert trickle.verify("st").equal


def test_ties_under_a_limit_are_decided(trickle: Trickle, database: str) -> None:
    orders(trickle)
    trickle.create_stream_table("st", "SELECT region, id FROM orders ORDER BY region DESC LIMIT 2")
    trickle.sql("INSERT INTO orders VALUES (0,'s',1.00), (7,'s',1.00)")
    assert trickle.refresh_stream_table("st").action is Action.DIFFERENTIAL
    assert rows_of(trickle.spark.table("st")) == {("s", 0): 1, ("s", 3): 1}


def test_subqueries_leave_nothing_to_recompute(trickle: Trickle, database: str) -> None:
    orders(trickle)
    for query in (
        "SELECT id FROM orders o WHERE EXISTS (SELECT 1 FROM orders p WHERE p.region = o.region AND p.id > o.id)",
        "SELECT id FROM orders WHERE region IN (SELECT region FROM (SELECT region, id FROM orders) x WHERE x.id > 1)",
        "SELECT id, (SELECT SUM(amount) FROM orders p WHERE p.region = o.region) AS s FROM orders o",
    ):
        assert trickle.explain(query).support == "incremental"


def test_subqueries_inside_uncorrelated_subqueries_are_taken_apart_too(
    trickle: Trickle, database: str
) -> None:
    orders(trickle)
    inner = {
        "exists": "SELECT MAX(id) FROM orders p WHERE EXISTS (SELECT 1 FROM orders q WHERE q.id > p.id)",
        "in": "SELECT MAX(id) FROM orders p WHERE region NOT IN (SELECT region FROM orders q WHERE q.amount > 20)",
        "lateral": "SELECT MAX(m) FROM orders p, LATERAL (SELECT MIN(q.id) AS m FROM orders q WHERE q.region = p.region)",
        "scalar": "SELECT MAX(id) FROM orders p WHERE amount >= (SELECT AVG(q.amount) FROM orders q WHERE q.id <> p.id)",
        "scalar in scalar": "SELECT MAX(id) FROM orders WHERE amount < (SELECT MAX(amount) FROM orders WHERE id IN (SELECT id FROM orders))",
    }
    checks = []
    for number, query in enumerate(inner.values()):
        text = f"SELECT id, ({query}) AS x FROM orders"
        assert trickle.explain(text).support.startswith("partly recomputed: an aggregate without")
        trickle.create_stream_table(f"st{number}", text, refresh_mode="DIFFERENTIAL")
        checks.append(Checked(trickle, f"st{number}", text))
        checks[-1].created()
    for edit in ("UPDATE orders SET amount = 50 WHERE id = 1", "INSERT INTO orders VALUES (9, NULL, 1.00)"):
        trickle.sql(edit)
        for check in checks:
            check.refresh({Action.DIFFERENTIAL, Action.NO_DATA})


def test_the_latest_row_of_each_key_is_maintained_although_ties_are_left_open(
    trickle: Trickle, database: str
) -> None:
    """`row_number() = 1` is how people deduplicate; ORDER BY rarely decides all ties."""
    trickle.sql("CREATE TABLE events (k INT, at INT, v STRING) USING delta")
    trickle.sql(
        "INSERT INTO events VALUES (1, 1, 'a'), (1, 2, 'b'), (2, 1, 'c'), (NULL, 1, 'd'), (NULL, 3, 'e')"
    )
    ranked = "SELECT *, ROW_NUMBER() OVER (PARTITION BY k ORDER BY at DESC) AS rn FROM events"
    queries = {
        "shown": f"SELECT k, at, v FROM ({ranked}) WHERE rn = 1",
        "hidden": f"SELECT v FROM ({ranked}) WHERE rn = 1",
        "having": "SELECT k, SUM(CAST(at AS DOUBLE)) AS s FROM events GROUP BY k HAVING SUM(CAST(at AS DOUBLE)) > 1.5",
    }
    checks = []
    for name, query in queries.items():
        trickle.create_stream_table(name, query, refresh_mode="DIFFERENTIAL")
        checks.append(Checked(trickle, name, query))
        checks[-1].created()
    for edit in (
        "INSERT INTO events VALUES (1, 3, 'f'), (3, 1, 'g')",
        "DELETE FROM events WHERE v IN ('f', 'e')",
        "UPDATE events SET k = 2, at = 9 WHERE v = 'b'",
        "DELETE FROM events WHERE k = 2",
    ):
        trickle.sql(edit)
        for check in checks:
            check.refresh({Action.DIFFERENTIAL, Action.NO_DATA})
    trickle.sql("INSERT INTO events VALUES (1, 9, 'x'), (1, 9, NULL)")
    for name in queries:
        assert trickle.refresh_stream_table(name).action is Action.DIFFERENTIAL
        assert trickle.verify(name).equal
    assert trickle.verify("shown").not_compared == ("at", "v")
