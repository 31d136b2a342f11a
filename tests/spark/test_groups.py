"""Atomic diamonds: the members show the old answer or the new one, all of them."""

from __future__ import annotations

import pytest

from spark_trickle import Trickle, TrickleError
from tests.spark.oracle import answer, rows_of, stored
from tests.spark.test_daemon import Watched

SIDES = {
    "b": "SELECT region, SUM(amount) AS s FROM orders GROUP BY region",
    "c": "SELECT region, SUM(100 DIV amount) AS q FROM orders GROUP BY region",
}
END = "SELECT b.region, b.s, c.q FROM b JOIN c ON b.region = c.region"


@pytest.fixture
def watched(own: Trickle) -> Watched:
    return Watched(own)


@pytest.fixture
def diamond(watched: Watched) -> Trickle:
    trickle = watched.trickle
    trickle.sql("CREATE TABLE orders (id INT, region STRING, amount INT) USING delta")
    trickle.sql("INSERT INTO orders VALUES (1, 'n', 10), (2, 'n', 30), (3, 's', 5), (4, NULL, 1)")
    for name, query in SIDES.items():
        trickle.create_stream_table(name, query, "2m")
    trickle.create_stream_table("d", END, "1m", diamond_consistency="atomic")
    return trickle


def contents(trickle: Trickle) -> dict[str, object]:
    return {name: stored(trickle, name) for name in ("b", "c", "d")}


def expected(trickle: Trickle) -> dict[str, object]:
    queries = {**SIDES, "d": END}
    return {name: answer(trickle, name, query) for name, query in queries.items()}


def test_a_failure_takes_the_others_back_and_the_next_refresh_goes_on(diamond: Trickle) -> None:
    before = contents(diamond)
    diamond.sql("INSERT INTO orders VALUES (5, 's', 0), (6, 'e', 7)")
    diamond.sql("DELETE FROM orders WHERE id = 1")
    with pytest.raises(TrickleError) as failed:
        diamond.refresh_stream_table("d")
    assert "`" in failed.value.message and "failed" in failed.value.message
    assert contents(diamond) == before
    last = diamond.refresh_history("b").iloc[0]
    assert (last["action"], last["status"]) == ("RESTORE", "COMPLETED")
    assert all(diamond.verify(name).equal for name in before)
    diamond.sql("UPDATE orders SET amount = 20 WHERE id = 5")
    diamond.refresh_stream_table("d")
    assert contents(diamond) == expected(diamond) != before
    assert all(diamond.verify(name).equal for name in before)


def test_any_member_takes_the_whole_group_along(diamond: Trickle) -> None:
    diamond.sql("INSERT INTO orders VALUES (5, 's', 4)")
    diamond.refresh_stream_table("b")
    assert contents(diamond) == expected(diamond)
    groups = diamond.diamond_groups()
    assert "atomic" in set(groups["consistency"])


def test_the_change_feed_of_a_restored_member_adds_up_to_nothing(diamond: Trickle) -> None:
    version = diamond._table("b").table_version
    diamond.create_stream_table("reader", "SELECT region FROM b WHERE s > 10")
    diamond.sql("INSERT INTO orders VALUES (5, 's', 0), (6, 'e', 70)")
    with pytest.raises(TrickleError):
        diamond.refresh_stream_table("b")
    assert diamond._table("b").table_version == version + 2  # type: ignore[operator]
    diamond.sql("DELETE FROM orders WHERE id = 5")
    diamond.refresh_stream_table("reader")
    assert rows_of(diamond.spark.table("reader")) == {("n",): 1, ("e",): 1}


def test_a_suspended_member_stops_the_group(diamond: Trickle, watched: Watched) -> None:
    diamond.suspend("c")
    before = contents(diamond)
    diamond.sql("INSERT INTO orders VALUES (5, 's', 4)")
    with pytest.raises(TrickleError) as refused:
        diamond.refresh_stream_table("b")
    assert refused.value.code == "SUSPENDED"
    assert watched.after(3600) == []
    assert contents(diamond) == before
    diamond.resume("c")
    diamond.refresh_stream_table("b")
    assert contents(diamond) == expected(diamond)


def test_the_daemon_refreshes_a_group_as_one(diamond: Trickle, watched: Watched) -> None:
    before = contents(diamond)
    diamond.sql("INSERT INTO orders VALUES (5, 's', 0), (6, 'e', 7)")
    assert watched.after(3600) == ["failed c"]
    assert contents(diamond) == before
    diamond.sql("UPDATE orders SET amount = 20 WHERE id = 5")
    assert watched.after(60) == ["refreshed b", "refreshed c", "refreshed d"]
    assert contents(diamond) == expected(diamond)


def test_without_atomicity_the_end_reads_older_versions_that_go_together(diamond: Trickle) -> None:
    """c is suspended, b moves on: d reads b as of the version that belongs to c."""
    diamond.alter_stream_table("d", diamond_consistency="none")
    diamond.sql("INSERT INTO orders VALUES (5, 's', 4)")
    diamond.refresh_stream_table("c")
    diamond.suspend("c")
    new_c = stored(diamond, "c")
    diamond.refresh_stream_table("b")
    diamond.sql("INSERT INTO orders VALUES (6, 's', 9)")
    diamond.refresh_stream_table("b")
    diamond.refresh_stream_table("d")
    assert stored(diamond, "c") == new_c
    assert diamond.verify("d").equal
    sums = {row[0]: row[1] for row in stored(diamond, "d")}
    assert sums["s"] == 9, "b with order 5, as c has it, and without order 6"


LEVELS = {
    "sums": ("SELECT region, SUM(amount) AS s FROM orders GROUP BY region", "1m"),
    "shares": ("SELECT region, SUM(100 DIV amount) AS q FROM orders GROUP BY region", "2m"),
    "middle": ("SELECT a.region, a.s, b.q FROM sums a JOIN shares b ON a.region <=> b.region", "DOWNSTREAM"),
    "left_side": ("SELECT region, s FROM middle WHERE q > 1", "1m"),
    "right_side": (
        "SELECT m.region, m.q + a.s AS x FROM middle m JOIN sums a ON m.region <=> a.region",
        "4m",
    ),
    "end": ("SELECT l.region, l.s, r.x FROM left_side l JOIN right_side r ON l.region <=> r.region", "1m"),
}


@pytest.mark.parametrize("consistency", ["none", "atomic"])
def test_two_diamonds_that_share_a_table_never_mix(watched: Watched, consistency: str) -> None:
    """Four levels; one side at the bottom fails for a while, and is then suspended."""
    trickle = watched.trickle
    trickle.sql("CREATE TABLE orders (id INT, region STRING, amount INT) USING delta")
    trickle.sql("INSERT INTO orders VALUES (1, 'n', 10), (2, 'n', 30), (3, 's', 5), (4, NULL, 1)")
    for name, (query, schedule) in LEVELS.items():
        trickle.create_stream_table(name, query, schedule, diamond_consistency=consistency)
    before = stored(trickle, "end")
    trickle.sql("INSERT INTO orders VALUES (5, 's', 0), (6, 'n', 7)")
    for seconds in (60, 2, 4, 3600):
        watched.after(seconds)
        assert stored(trickle, "end") == before
        assert all(trickle.verify(name).equal for name in LEVELS)
    assert trickle._table("shares").status == "SUSPENDED"
    moved = stored(trickle, "sums") == answer(trickle, "sums", LEVELS["sums"][0])
    assert moved == (consistency == "none")
    trickle.sql("UPDATE orders SET amount = 20 WHERE id = 5")
    trickle.resume("shares")
    watched.after(3600)
    for name, (query, _) in LEVELS.items():
        assert stored(trickle, name) == answer(trickle, name, query), name


def test_what_was_to_be_rebuilt_still_is_after_it_was_taken_back(diamond: Trickle) -> None:
    table = diamond._table("b")
    with diamond._catalog.begin() as catalog:
        catalog.stream_tables.update(table.id, needs_reinit=True, reinit_reason="a doubt")
    diamond.sql("INSERT INTO orders VALUES (5, 's', 0)")
    with pytest.raises(TrickleError):
        diamond.refresh_stream_table("d")
    assert diamond._table("b").needs_reinit
    diamond.sql("UPDATE orders SET amount = 2 WHERE id = 5")
    diamond.refresh_stream_table("d")
    assert diamond.refresh_history("b").iloc[0]["action"] == "REINITIALIZE"
    assert contents(diamond) == expected(diamond)
