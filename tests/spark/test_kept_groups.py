"""Groups inside a query are kept from one refresh to the next, and continued from their totals."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from spark_trickle import Action, Trickle
from spark_trickle.catalyst.inner import Inner
from spark_trickle.errors import QueryError
from spark_trickle.refresh import kept_groups
from spark_trickle.refresh.kept_groups import Continuing, KeptGroups
from spark_trickle.refresh.ready import get_ready
from tests.spark.oracle import Checked

TABLES = (
    "CREATE TABLE c (k INT, name STRING) USING delta",
    "CREATE TABLE o (id INT, k INT, day DATE, amount DECIMAL(10,2), note STRING) USING delta",
)
ROWS = (
    "INSERT INTO c VALUES (1, 'a'), (2, 'b'), (3, NULL), (4, 'd'), (NULL, 'x')",
    "INSERT INTO o VALUES (1, 1, DATE'2024-01-01', 5, 'n'), (2, 1, DATE'2024-02-01', 7, NULL), (3, 2, NULL, NULL, 'n'),"
    " (4, NULL, DATE'2024-03-01', 2, 'n'), (5, 2, DATE'2024-03-01', 4, 'm'), (6, 3, DATE'2024-03-02', 9, 'n'),"
    " (6, 3, DATE'2024-03-02', 9, 'n')",
)
EDITS = (
    ("INSERT INTO o VALUES (7, 1, DATE'2024-04-01', 1, 'n'), (8, 9, DATE'2024-04-01', 3, 'n')",),
    ("DELETE FROM o WHERE k = 2", "UPDATE c SET name = 'B' WHERE k = 2"),
    (
        "UPDATE o SET k = 4 WHERE id = 6",
        "INSERT INTO o VALUES (9, 2, NULL, 20, 'n'), (10, NULL, NULL, NULL, NULL)",
    ),
    ("DELETE FROM o WHERE amount = 20", "DELETE FROM c WHERE k IS NULL"),
    ("DELETE FROM o",),
    ("INSERT INTO o VALUES (1, 1, DATE'2024-01-01', 5, 'n'), (2, NULL, NULL, NULL, NULL)",),
)
QUERIES = {
    "groups of groups": "SELECT n, count(*) AS many FROM (SELECT c.k, count(o.id) AS n FROM c LEFT JOIN o"
    " ON c.k = o.k AND o.note = 'n' GROUP BY c.k) GROUP BY n",
    "the greatest group": "WITH t AS (SELECT k, sum(amount) AS total FROM o GROUP BY k)"
    " SELECT c.name, t.total FROM c JOIN t ON c.k <=> t.k WHERE t.total = (SELECT max(total) FROM t)",
    "more than the average": "SELECT name FROM c WHERE k > (SELECT avg(amount) FROM o WHERE amount > 1)",
    "less than a share of its group": "SELECT o.id, o.amount FROM o JOIN c ON c.k = o.k"
    " WHERE o.amount < (SELECT 0.9 * avg(x.amount) FROM o x WHERE x.k = o.k)",
    "the first of the groups": "SELECT k, n FROM (SELECT k, count(*) AS n FROM o GROUP BY k)"
    " ORDER BY n DESC, k LIMIT 2",
    "extremes inside": "SELECT c.name, t.least, t.latest FROM c LEFT JOIN (SELECT k, min(amount) AS least,"
    " max(day) AS latest FROM o GROUP BY k) t ON t.k = c.k",
    "having inside": "SELECT count(*) AS n, sum(total) AS all_of_them FROM (SELECT k, sum(amount) AS total FROM o"
    " GROUP BY k HAVING count(*) > 1)",
    "distinct values inside": "SELECT c.name FROM c JOIN (SELECT DISTINCT k, note FROM o) d ON d.k = c.k",
    "how many groups": "SELECT count(*) AS n FROM (SELECT k, sum(amount) AS total FROM o GROUP BY k)",
    "two keys": "SELECT note, max(total) AS most FROM (SELECT k, note, sum(amount) AS total FROM o GROUP BY k, note)"
    " GROUP BY note",
    "filtered functions": "SELECT sum(a) AS a, max(b) AS b FROM (SELECT k, count(*) FILTER (WHERE note = 'n') AS a,"
    " avg(amount) AS b FROM o GROUP BY k)",
}


@pytest.fixture
def kept(trickle: Trickle, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Groups are kept however few rows they have; what is evaluated from scratch is noted."""
    monkeypatch.setattr(kept_groups, "_WORTH", 0)
    monkeypatch.setattr(trickle._runtime, "groups", KeptGroups(1000, 10**8))
    evaluated: list[str] = []
    right = Continuing._evaluated

    def noted(self, inner):
        evaluated.append(inner.scan.source)
        return right(self, inner)

    monkeypatch.setattr(Continuing, "_evaluated", noted)
    yield evaluated


def created(trickle: Trickle, query: str) -> Checked:
    for statement in (*TABLES, *ROWS):
        trickle.sql(statement)
    trickle.create_stream_table("st", query)
    checked = Checked(trickle, "st", query)
    checked.created()
    return checked


@pytest.mark.parametrize("query", QUERIES.values(), ids=QUERIES)
def test_groups_are_evaluated_once_and_then_continued(
    trickle: Trickle, database: str, kept: list[str], query: str
) -> None:
    checked = created(trickle, query)
    inner = trickle._runtime.definitions.of(trickle._table("st")).inner
    assert inner or query in (QUERIES["distinct values inside"], QUERIES["how many groups"])
    assert len(kept) == len(inner)
    for batch in EDITS:
        for statement in batch:
            trickle.sql(statement)
        checked.refresh({Action.DIFFERENTIAL, Action.NO_DATA})
    assert len(kept) == len(inner)


def test_what_will_not_be_refreshed_soon_is_not_got_ready(
    trickle: Trickle, database: str, kept: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither in a process that ends, nor for a table that is recomputed; a refresh then evaluates groups itself."""
    monkeypatch.setattr(trickle, "_lasting", False)
    checked = created(trickle, QUERIES["groups of groups"])
    assert not kept
    trickle.sql(EDITS[0][0])
    checked.refresh(Action.DIFFERENTIAL)
    assert len(kept) == 1
    monkeypatch.setattr(trickle, "_lasting", True)
    trickle.create_stream_table("whole", QUERIES["the first of the groups"], "manual", "FULL")
    assert len(kept) == 1
    get_ready(trickle._table("st"), trickle._runtime)
    assert len(kept) == 1  # what the refresh has left is as new


def test_getting_ready_spoils_nothing(
    trickle: Trickle, database: str, kept: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(_self: Continuing, _inner: Inner) -> None:
        raise QueryError("not now", code="QUERY")

    with monkeypatch.context() as patch:
        patch.setattr(Continuing, "_evaluated", broken)
        checked = created(trickle, QUERIES["groups of groups"])
    trickle.sql(EDITS[0][0])
    checked.refresh(Action.DIFFERENTIAL)
    assert len(kept) == 1


def test_what_is_kept_of_other_versions_is_not_used(
    trickle: Trickle, database: str, kept: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    checked = created(trickle, QUERIES["groups of groups"])
    trickle.sql(EDITS[0][0])
    checked.refresh(Action.DIFFERENTIAL)
    with monkeypatch.context() as patch:
        patch.setattr(trickle._runtime, "groups", KeptGroups(0, 0))
        trickle.sql("INSERT INTO o VALUES (70, 1, NULL, 1, 'n')")
        checked.refresh(Action.DIFFERENTIAL)
    trickle.sql("INSERT INTO o VALUES (71, 1, NULL, 1, 'n')")
    checked.refresh(Action.DIFFERENTIAL)
    assert len(kept) == 2


def test_more_groups_than_allowed_are_evaluated_as_before(
    trickle: Trickle, database: str, kept: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    checked = created(trickle, QUERIES["groups of groups"])
    kept.clear()
    groups = KeptGroups(1, 10**8)
    monkeypatch.setattr(trickle._runtime, "groups", groups)
    monkeypatch.setattr(groups, "is_worth_keeping", lambda inner, _snapshots: inner not in groups._too_many)
    for statement in (EDITS[0][0], "INSERT INTO o VALUES (71, 1, NULL, 1, 'n')"):
        trickle.sql(statement)
        checked.refresh(Action.DIFFERENTIAL)
    assert len(kept) == 1


def test_few_rows_for_each_group_are_not_worth_keeping(
    trickle: Trickle, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    groups = KeptGroups(1000, 10**8)  # of its own: the process may keep those of other tests
    monkeypatch.setattr(trickle._runtime, "groups", groups)
    checked = created(trickle, QUERIES["groups of groups"])
    trickle.sql(EDITS[0][0])
    checked.refresh(Action.DIFFERENTIAL)
    assert not groups._kept


def test_a_broken_merge_is_noticed(
    trickle: Trickle, database: str, kept: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The negative control: groups that are not replaced by what they are now."""
    right = Continuing._after

    def forgetful(self, inner, before, delta):
        return right(self, inner, before.slice(0, 0), delta)

    checked = created(trickle, QUERIES["the first of the groups"])
    monkeypatch.setattr(Continuing, "_after", forgetful)
    trickle.sql(EDITS[0][0])
    with pytest.raises(AssertionError):
        checked.refresh(Action.DIFFERENTIAL)
