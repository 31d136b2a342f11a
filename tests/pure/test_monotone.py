"""Whether more rows of a source can mean fewer rows of the answer."""

from __future__ import annotations

import pytest

from spark_trickle.algebra.relations import (
    Column,
    Concat,
    InnerJoin,
    LookupJoin,
    Operator,
    PerKey,
    Relation,
    RowWise,
    Scan,
    Top,
    Whole,
)
from spark_trickle.incremental.monotone import shrinks_with

COLUMNS = (Column(1, "k", "int"),)


def scan(source: str) -> Scan:
    return Scan(COLUMNS, source, Operator(None, f"Scan {source}"))


def operator(label: str, *grows_with: int) -> Operator:
    return Operator(None, label, grows_with=frozenset(grows_with))


A, B = scan("a"), scan("b")
FILTERED = RowWise(COLUMNS, A, operator("Filter", 0))
ANTI = LookupJoin(COLUMNS, A, B, (), operator("Anti", 0))
CASES: list[tuple[Relation, str, str]] = [
    # relation, source, what is in the way
    (A, "a", ""),
    (FILTERED, "a", ""),
    (Concat(COLUMNS, (FILTERED, B), operator("Union", 0, 1)), "a", ""),
    (InnerJoin(COLUMNS, A, B, (), operator("Join", 0, 1)), "b", ""),
    (ANTI, "a", ""),
    (ANTI, "b", "Anti"),
    (RowWise(COLUMNS, ANTI, operator("Project", 0)), "b", "Anti"),
    (LookupJoin(COLUMNS, A, B, (), operator("Semi", 0, 1)), "b", ""),
    (LookupJoin(COLUMNS, ANTI, scan("c"), (), operator("Semi", 0, 1)), "b", "Anti"),
    (PerKey(COLUMNS, (A,), ((1,),), operator("Distinct", 0)), "a", ""),
    (PerKey(COLUMNS, (A,), ((1,),), operator("Aggregate")), "a", "Aggregate"),
    (PerKey(COLUMNS, (A,), ((1,),), operator("Aggregate")), "b", ""),
    (Whole(COLUMNS, (A,), operator("Window", 0), "needs all rows"), "a", "Window"),
    (Top(COLUMNS, A, 3, 0, operator("Limit", 0)), "a", "Limit"),
]


@pytest.mark.parametrize(("relation", "source", "expected"), CASES)
def test_the_topmost_operator_in_the_way_is_found(relation: Relation, source: str, expected: str) -> None:
    found = shrinks_with(relation, {source})
    assert (found.label if found else "") == expected
