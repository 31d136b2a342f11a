"""Nodes: what they refuse, what their columns are, how they are walked."""

from dataclasses import replace

import pytest

from spark_trickle.algebra.relations import (
    NEW,
    At,
    Changes,
    KeysOf,
    Matching,
    Net,
    Node,
    Partners,
    Signed,
    Sum,
)
from spark_trickle.algebra.restrict import restrict
from spark_trickle.algebra.traverse import children_of, sources_of, walk
from tests.pure.examples import ID, count, customers, join, left_join, orders, scalar, totals, where

ROWS, CHANGE = At(orders(), NEW), Changes(orders())
KEYS = KeysOf(((CHANGE, (ID.id,)),))


@pytest.mark.parametrize(
    "node",
    [
        ROWS,
        CHANGE,
        Matching(ROWS, ((0, ID.id),), KEYS),
        Partners(ROWS, Changes(customers()), left_join(orders(), customers())),
        Signed(ROWS, -1),
        Sum((CHANGE, Signed(ROWS, +1))),
        Net(CHANGE),
    ],
    ids=lambda node: type(node).__name__,
)
def test_a_change_has_the_columns_of_the_rows_it_is_made_of(node: Node) -> None:
    assert node.columns == orders().columns


def test_a_per_key_needs_the_same_keys_for_each_input() -> None:
    grouped = totals(orders())
    with pytest.raises(ValueError, match="equally many key columns"):
        replace(grouped, keys=((1,), (2,)))
    with pytest.raises(ValueError, match="without key columns is a Whole"):
        replace(grouped, keys=((),))


def test_the_sources_of_a_query_are_those_it_scans() -> None:
    query = join(where(orders(), ID), scalar(customers(), count()))
    assert sources_of(query) == {"orders", "customers"}
    assert next(walk(query)) is query


@pytest.mark.parametrize(
    "function", [children_of, sources_of, lambda node: restrict(node, NEW, {0: ID.id}, KEYS)]
)
def test_a_change_is_no_part_of_a_query(function) -> None:
    with pytest.raises(TypeError, match="Changes is part of a change, not of a query"):
        function(CHANGE)
