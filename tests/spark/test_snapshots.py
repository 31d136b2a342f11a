"""Several stream tables read as of one instant."""

from __future__ import annotations

import pytest

from spark_trickle import Trickle, TrickleError
from tests.spark.oracle import rows_of

SUMS = "SELECT region, SUM(amount) AS s FROM orders GROUP BY region"
COUNTS = "SELECT region, COUNT(*) AS n FROM orders GROUP BY region"
BOTH = "SELECT b.region, b.s, c.n FROM sums b JOIN counts c ON b.region = c.region"


@pytest.fixture
def diamond(trickle: Trickle, database: str) -> Trickle:
    trickle.sql("CREATE TABLE orders (id INT, region STRING, amount INT) USING delta")
    trickle.sql("INSERT INTO orders VALUES (1, 'n', 10), (2, 'n', 30), (3, 's', 5)")
    for name, query in (("sums", SUMS), ("counts", COUNTS), ("both", BOTH)):
        trickle.create_stream_table(name, query)
    return trickle


def test_tables_refreshed_at_different_times_are_read_as_of_one_instant(diamond: Trickle) -> None:
    expected = rows_of(diamond.spark.table("both"))
    diamond.sql("INSERT INTO orders VALUES (4, 'n', 20)")
    diamond.refresh_stream_table("sums")
    diamond.sql("INSERT INTO orders VALUES (5, 's', 20)")
    diamond.refresh_stream_table("sums")
    found = diamond.snapshot(["sums", "counts"], views=True)
    joined = diamond.sql(
        "SELECT b.region, b.s, c.n FROM snapshot_sums b JOIN snapshot_counts c ON b.region = c.region"
    )
    assert rows_of(joined) == expected
    assert set(found.tables) == set(found.versions)
    (orders,) = found.sources.values()
    diamond.refresh_stream_table("both")
    newer = diamond.snapshot(["sums", "counts", "both"])
    assert rows_of(newer.tables[next(n for n in newer.tables if n.endswith("both"))]) != expected
    assert next(iter(newer.sources.values())) == orders + 2


def test_what_does_not_go_together_is_named(diamond: Trickle) -> None:
    diamond.create_stream_table("empty", "SELECT id FROM orders", initialize=False)
    with pytest.raises(TrickleError, match="never filled") as failed:
        diamond.snapshot(["sums", "empty"])
    assert failed.value.code == "NO_COMMON_VERSION"
    with pytest.raises(TrickleError) as unknown:
        diamond.snapshot(["sums", "nowhere"])
    assert unknown.value.code == "UNKNOWN_STREAM_TABLE"
    with pytest.raises(TrickleError):
        diamond.snapshot([])


def test_the_diamond_is_found(diamond: Trickle, database: str) -> None:
    (row,) = [r for r in diamond.diamond_groups().to_dict("records") if f"{database}." in r["ends"]]
    assert [name.rpartition(".")[2] for name in row["ends"].split(", ")] == ["both"]
    assert len(row["members"].split(", ")) == 3
