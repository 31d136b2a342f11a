"""Stream tables that read each other in a circle: the least fixpoint, also after deletes, or a refusal that names why."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from spark_trickle import Action, Trickle, TrickleError
from tests.spark.oracle import stored


@pytest.fixture
def circles(own: Trickle) -> Iterator[Trickle]:
    settings = {"allow_circular": True, "max_fixpoint_iterations": 20}
    with Trickle(own.spark, home=own._home, settings=settings) as opened:
        yield opened


def rows(trickle: Trickle, name: str) -> set[tuple[object, ...]]:
    held = stored(trickle, name)
    assert set(held.values()) <= {1}, "a member of a cycle is a set"
    return set(held)


def close(trickle: Trickle, name: str, query: str) -> None:
    """Another definition for a table that its readers lead back to."""
    trickle.create_stream_table(name, query, or_replace=True)


@pytest.fixture
def pair(circles: Trickle) -> Trickle:
    """A = src ∪ B, B = A."""
    circles.sql("CREATE TABLE src (id INT) USING delta")
    circles.sql("INSERT INTO src VALUES (1), (2)")
    circles.create_stream_table("a", "SELECT id FROM src")
    circles.create_stream_table("b", "SELECT id FROM a")
    close(circles, "a", "SELECT id FROM src UNION ALL SELECT id FROM b")
    return circles


def test_what_only_supports_itself_goes_with_its_source(pair: Trickle) -> None:
    assert rows(pair, "a") == rows(pair, "b") == {(1,), (2,)}
    pair.sql("DELETE FROM src WHERE id = 2")
    result = pair.refresh_stream_table("b")
    assert result.action is Action.FULL
    assert "were removed" in result.reason
    assert rows(pair, "a") == rows(pair, "b") == {(1,)}
    assert pair.verify("a").equal
    assert pair.verify("b").equal


def test_more_rows_continue_from_what_is_stored_and_no_news_make_no_commit(pair: Trickle) -> None:
    pair.sql("INSERT INTO src VALUES (3)")
    result = pair.refresh_stream_table("a")
    assert (result.action, result.rows_inserted, result.rows_deleted) == (Action.DIFFERENTIAL, 1, 0)
    assert rows(pair, "a") == rows(pair, "b") == {(1,), (2,), (3,)}
    again = pair.refresh_stream_table("b")
    assert (again.action, again.version) == (Action.NO_DATA, pair._table("b").table_version)
    assert pair._table("a").frontier.bases == pair._table("b").frontier.bases  # type: ignore[union-attr]


def test_insert_and_delete_in_one_batch(pair: Trickle) -> None:
    pair.sql("INSERT INTO src VALUES (4)")
    pair.sql("DELETE FROM src WHERE id = 1")
    pair.sql("UPDATE src SET id = 5 WHERE id = 2")
    pair.refresh_stream_table("a")
    assert rows(pair, "a") == rows(pair, "b") == {(4,), (5,)}
    assert pair.verify("a").equal


def test_the_status_of_a_cycle_and_its_end(pair: Trickle) -> None:
    (status,) = pair.cycle_status().to_dict("records")
    assert (status["members"].count(","), status["status"], status["last_error"]) == (1, "ACTIVE", "")
    assert status["iterations"] >= 2
    explained = str(pair.explain("a"))
    assert "evaluated until nothing is new" in explained
    assert "Next refresh" not in explained
    with pytest.raises(TrickleError) as refused:
        pair.drop_stream_table("a")
    assert refused.value.code == "HAS_DEPENDENTS"
    close(pair, "a", "SELECT id FROM src")
    assert pair.cycle_status().empty
    pair.sql("INSERT INTO src VALUES (1)")
    pair.refresh_stream_table("b")
    assert sorted(stored(pair, "b").elements()) == [(1,), (1,), (2,)], "no set any more"
    close(pair, "a", "SELECT id FROM src UNION SELECT id FROM b")
    pair.drop_stream_table("a", cascade=True)
    assert pair.status().empty


def test_reachability_with_a_cycle_cut_off_from_its_source(circles: Trickle) -> None:
    """Edges 1→2→3→2 and 1→4: cutting 1→2 leaves 2 and 3 supporting only each other."""
    circles.sql("CREATE TABLE edge (s INT, t INT) USING delta")
    circles.sql("CREATE TABLE start (id INT) USING delta")
    circles.sql("INSERT INTO edge VALUES (1,2), (2,3), (3,2), (1,4), (NULL,9)")
    circles.sql("INSERT INTO start VALUES (1), (NULL)")
    circles.create_stream_table("reached", "SELECT id FROM start")
    circles.create_stream_table(
        "next", "SELECT e.t AS id FROM edge e WHERE EXISTS (SELECT 1 FROM reached r WHERE r.id = e.s)"
    )
    close(circles, "reached", "SELECT id FROM start UNION SELECT id FROM next")
    circles.create_stream_table("known", "SELECT COUNT(*) AS n FROM reached r JOIN next n ON r.id = n.id")
    assert rows(circles, "reached") == {(1,), (None,), (2,), (3,), (4,)}
    assert rows(circles, "known") == {(3,)}
    circles.sql("DELETE FROM edge WHERE s = 1 AND t = 2")
    circles.refresh_stream_table("known")
    assert rows(circles, "reached") == {(1,), (None,), (4,)}
    assert rows(circles, "known") == {(1,)}
    circles.sql("INSERT INTO edge VALUES (4,3)")
    assert circles.refresh_stream_table("next").action is Action.DIFFERENTIAL
    assert rows(circles, "next") == {(2,), (3,), (4,)}
    for name in ("reached", "next"):
        assert circles.verify(name).equal


@pytest.mark.parametrize(
    ("query", "named"),
    [
        ("SELECT s.id FROM src s LEFT JOIN b ON s.id = b.id WHERE b.id IS NULL", "Join LeftOuter"),
        ("SELECT id FROM src WHERE id NOT IN (SELECT id FROM b)", "Join LeftAnti"),
        ("SELECT MAX(id) AS id FROM (SELECT id FROM src UNION ALL SELECT id FROM b)", "Aggregate"),
        ("SELECT id FROM src EXCEPT SELECT id FROM b", "Except"),
        ("SELECT id FROM b UNION (SELECT id FROM b ORDER BY id LIMIT 1)", "Limit"),
        ("SELECT id FROM b WHERE current_date() > DATE'2020-01-01'", "asks for the time"),
    ],
)
def test_what_may_drop_a_row_is_refused_and_named(pair: Trickle, query: str, named: str) -> None:
    before = pair._table("a")
    with pytest.raises(TrickleError) as refused:
        close(pair, "a", query)
    assert refused.value.code == "NOT_MONOTONE"
    assert named in refused.value.message
    assert pair._table("a").query == before.query
    assert rows(pair, "a") == {(1,), (2,)}


def test_a_cycle_without_end_is_an_error_and_changes_nothing(pair: Trickle) -> None:
    with pytest.raises(TrickleError) as refused:
        close(pair, "a", "SELECT id FROM src UNION ALL SELECT id + 1 FROM b")
    assert refused.value.code == "NO_FIXPOINT"
    assert rows(pair, "a") == rows(pair, "b") == {(1,), (2,)}
    pair.sql("INSERT INTO src VALUES (7)")
    pair.refresh_stream_table("b")
    assert rows(pair, "a") == {(1,), (2,), (7,)}


def test_circles_are_refused_unless_allowed(own: Trickle) -> None:
    trickle = own
    trickle.sql("CREATE TABLE src (id INT) USING delta")
    trickle.create_stream_table("a", "SELECT id FROM src")
    trickle.create_stream_table("b", "SELECT id FROM a")
    with pytest.raises(TrickleError) as refused:
        close(trickle, "a", "SELECT id FROM src UNION SELECT id FROM b")
    assert refused.value.code == "CYCLE"
    assert "→" in refused.value.message
    assert "allow_circular" in (refused.value.hint or "")


def test_a_view_cannot_close_a_circle_behind_our_backs(own: Trickle) -> None:
    own.sql("CREATE TABLE src (id INT) USING delta")
    own.sql("CREATE TABLE other (id INT) USING delta")
    own.sql("INSERT INTO src VALUES (1)")
    own.sql("CREATE VIEW v AS SELECT id FROM src")
    own.create_stream_table("a", "SELECT id FROM v")
    own.create_stream_table("b", "SELECT id FROM a")
    own.sql("CREATE OR REPLACE VIEW v AS SELECT id FROM src UNION ALL SELECT id FROM b")
    with pytest.raises(TrickleError) as refused:
        own.refresh_stream_table("b")
    assert refused.value.code == "CYCLE"
    assert own.cycle_status().empty
    own.sql("CREATE OR REPLACE VIEW v AS SELECT id FROM src UNION ALL SELECT id FROM other")
    own.sql("INSERT INTO other VALUES (7)")
    own.refresh_stream_table("b")
    assert rows(own, "b") == {(1,), (7,)}


def test_a_member_of_another_type_is_refused(pair: Trickle) -> None:
    with pytest.raises(TrickleError) as refused:
        close(pair, "a", "SELECT CAST(id AS BIGINT) AS id FROM src UNION SELECT CAST(id AS BIGINT) FROM b")
    assert refused.value.code == "CYCLE"
    assert "bigint" in refused.value.message
    assert rows(pair, "a") == {(1,), (2,)}


def test_an_empty_cycle_is_filled_all_the_same(circles: Trickle) -> None:
    circles.sql("CREATE TABLE src (id INT) USING delta")
    circles.create_stream_table("a", "SELECT id FROM src", initialize=False)
    circles.create_stream_table("b", "SELECT id FROM a", initialize=False)
    circles.create_stream_table("a", "SELECT id FROM src UNION SELECT id FROM b", or_replace=True)
    assert circles.refresh_stream_table("b").action is Action.NO_DATA
    circles.create_stream_table("reader", "SELECT COUNT(*) AS n FROM b")
    assert rows(circles, "reader") == {(0,)}


def test_a_member_that_must_not_be_recomputed_is_not(pair: Trickle) -> None:
    pair.alter_stream_table("b", refresh_mode="DIFFERENTIAL")
    pair.sql("INSERT INTO src VALUES (3)")
    assert pair.refresh_stream_table("b").action is Action.DIFFERENTIAL
    pair.sql("DELETE FROM src WHERE id = 2")
    with pytest.raises(TrickleError) as refused:
        pair.refresh_stream_table("b")
    assert refused.value.code == "NOT_DIFFERENTIAL"
    assert rows(pair, "a") == rows(pair, "b") == {(1,), (2,), (3,)}
    pair.alter_stream_table("b", refresh_mode="FULL")
    pair.sql("INSERT INTO src VALUES (4)")
    assert pair.refresh_stream_table("b").action is Action.FULL
    assert rows(pair, "a") == rows(pair, "b") == {(1,), (3,), (4,)}
