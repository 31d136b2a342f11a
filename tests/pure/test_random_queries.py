"""The generator of random queries: the same from each seed, rich in constructs, closed. No JVM."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache

import pytest

from tests.spark.random_ast import (
    Call,
    Combined,
    Constants,
    Derived,
    Exploded,
    Group,
    Join,
    Node,
    Query,
    Select,
    Subquery,
    Table,
    Top,
    With,
    children,
    columns_of,
    depth,
    free,
    leaves,
    sql,
    walk,
)
from tests.spark.random_metamorphic import delete_and_insert, merged, variants
from tests.spark.random_queries import generate
from tests.spark.random_regressions import Case
from tests.spark.random_shrink import candidates, shrink

SEEDS = range(300)
CONSTRUCTS = """
INNER JOIN | CROSS JOIN | LEFT JOIN | RIGHT JOIN | FULL JOIN | LEFT SEMI JOIN | LEFT ANTI JOIN | USING | theta
self join | four tables | nested join | LATERAL | LATERAL VIEW | VALUES | derived table
logic | not | is null | in list | case | coalesce | division | cast to STRING | cast to BIGINT | cast to DECIMAL
EXISTS | NOT EXISTS | IN | NOT IN | EXISTS correlated | NOT EXISTS correlated | IN correlated | NOT IN correlated
scalar | scalar correlated | scalar in SELECT | scalar in WHERE | scalar in HAVING | scalar in CASE | subquery under OR
GROUP BY | count | count distinct | sum | min | max | avg | filter | HAVING | ROLLUP | CUBE | GROUPING SETS | grouping
aggregate without GROUP BY | aggregate of aggregates | sum of double
rank | dense_rank | row_number | lag | lead | rows frame | range frame | aggregate over | unpartitioned window | QUALIFY
DISTINCT | UNION | UNION ALL | INTERSECT | INTERSECT ALL | EXCEPT | EXCEPT ALL | mixed set operations
CTE once | CTE twice | LIMIT | OFFSET
"""


@cache
def queries() -> tuple[Query, ...]:
    return tuple(generate(seed) for seed in SEEDS)


@cache
def constructs() -> frozenset[str]:
    return frozenset(name for query in queries() for node in walk(query) for name in _constructs(node))


def _constructs(node: Node) -> Iterator[str]:
    match node:
        case Join(kind=kind, left=left, right=right, using=using):
            yield f"{kind} JOIN"
            yield from ["USING"] * bool(using) + ["nested join"] * isinstance(right, Join)
            tables = [n.table for n in walk(node) if isinstance(n, Table)]
            yield from ["self join"] * (len(set(tables)) < len(tables)) + ["four tables"] * (len(tables) == 4)
        case Derived(lateral=lateral):
            yield "LATERAL" if lateral else "derived table"
        case Exploded():
            yield "LATERAL VIEW"
        case Constants():
            yield "VALUES"
        case Call(template=template, args=args, what=what):
            yield what
            if what.endswith(" filter"):
                yield from ("filter", what.removesuffix(" filter"))
            if " OR " in template and any(isinstance(a, Subquery) for a in args):
                yield "subquery under OR"
            if what == "case" and any(_scalar(a) for a in args):
                yield "scalar in CASE"
        case Subquery(kind=kind, query=query):
            name = "scalar" if kind == "SCALAR" else kind
            yield from (name, f"{name} correlated") if free(query) else (name,)
        case Group(kind=kind):
            yield kind or "GROUP BY"
        case Combined(kind=kind, left=left, right=right):
            yield kind
            yield from (
                "mixed set operations" for s in (left, right) if isinstance(s, Combined) and s.kind != kind
            )
        case With(name=name, body=body):
            uses = sum(isinstance(n, Table) and n.table == name for n in walk(body))
            yield "CTE once" if uses == 1 else "CTE twice"
        case Top(offset=offset):
            yield from ("LIMIT", "OFFSET") if offset else ("LIMIT",)
        case Select():
            yield from _clauses(node)


def _clauses(select: Select) -> Iterator[str]:
    if select.group is None and any(
        isinstance(i.expression, Call) and _aggregates(i.expression) for i in select.items
    ):
        yield "aggregate without GROUP BY"
    if (
        select.group is not None
        and isinstance(select.source, Derived)
        and isinstance(select.source.query, Select)
    ):
        yield from ["aggregate of aggregates"] * (select.source.query.group is not None)
    yield from ["DISTINCT"] * select.distinct
    clauses = {"HAVING": select.having, "QUALIFY": select.qualify, "WHERE": select.where}
    for word, clause in clauses.items():
        yield from [word] * (clause is not None)
        yield from [f"scalar in {word}"] * (clause is not None and _scalar(clause))
    yield from ["scalar in SELECT"] * any(_scalar(item) for item in select.items)


def _scalar(node: Node) -> bool:
    """Whether a scalar subquery stands in an expression, but not inside another subquery."""
    if isinstance(node, Subquery):
        return node.kind == "SCALAR"
    return any(_scalar(child) for child in children(node))


def _aggregates(call: Call) -> bool:
    return call.what.split(" ")[0] in {"count", "sum", "min", "max", "avg"} and "OVER" not in call.template


def test_a_seed_always_gives_the_same_query() -> None:
    assert [sql(generate(seed)) for seed in SEEDS] == [sql(query) for query in queries()]
    assert len({sql(query) for query in queries()}) == len(SEEDS)


@pytest.mark.parametrize(
    "construct", [c.strip() for line in CONSTRUCTS.strip().splitlines() for c in line.split("|")]
)
def test_constructs_occur(construct: str) -> None:
    assert construct in constructs()


def test_queries_nest_four_deep_and_read_at_most_four_tables() -> None:
    assert max(map(depth, queries())) == 4
    assert {leaves(query) for query in queries()} == {1, 2, 3, 4}


@pytest.mark.parametrize("seed", SEEDS)
def test_queries_are_closed_and_name_columns_once(seed: int) -> None:
    query = generate(seed)
    assert not free(query)
    names = [column.name for column in columns_of(query)]
    assert len(set(names)) == len(names)


def test_rewrites_are_closed_and_read_differently() -> None:
    found = dict.fromkeys(("inlined", "swapped", "renamed"), 0)
    for query in queries():
        for name, variant in variants(query).items():
            found[name] += 1
            assert not free(variant)
            assert sql(variant) != sql(query)
            assert [c.type for c in columns_of(variant)] == [c.type for c in columns_of(query)]
            assert name != "inlined" or not any(isinstance(n, With) for n in walk(variant))
    assert min(found.values()) > 10


def test_smaller_queries_are_closed_and_shorter() -> None:
    for query in queries()[:15]:
        for candidate in candidates(query):
            assert not free(candidate)
            assert len(sql(candidate)) < len(sql(query))


def test_shrinking_keeps_what_fails_and_little_else() -> None:
    """Here a query fails when it has a FULL JOIN and an edit of `b` is left."""

    def fails(case: Case, tried: Sequence[str]) -> list[bool]:
        edited = any(" b " in statement for batch in case.batches for statement in batch)
        return [edited and "FULL JOIN" in text for text in tried]

    inserts = [f"INSERT INTO {table} VALUES (1, double('NaN')), (2, 0.0D), (3, NULL)" for table in "abc"]
    failing = [query for query in queries() if "FULL JOIN" in sql(query)][:5]
    for query in failing:
        shrunk = shrink(query, Case("name", "", inserts, [inserts, inserts]), fails, tries=500)
        assert fails(shrunk, [shrunk.query]) == [True]
        assert len(shrunk.query) < 250
        assert (shrunk.initial, shrunk.batches) == ([], [["INSERT INTO b VALUES (1, double('NaN'))"]])


class Row:
    def asDict(self) -> dict[str, object]:  # noqa: N802
        return {"k": None, "s": "x", "f": float("nan")}


def test_edits_are_rewritten() -> None:
    rewritten = delete_and_insert("UPDATE c SET k = 5 WHERE id > 3", lambda _: [Row()])
    assert rewritten == ["DELETE FROM c WHERE id > 3", "INSERT INTO c VALUES (5, 'x', double('nan'))"]
    assert delete_and_insert("UPDATE c SET k = 5 WHERE id > 3", lambda _: []) == rewritten[:1]
    assert delete_and_insert(rewritten[0], lambda _: []) == rewritten[:1]
    assert merged([["p"], ["q"], ["r"]]) == [["p", "q"], ["r"]]
