"""What did not change is dropped, and nothing else."""

import pytest

from spark_trickle.algebra.relations import (
    NEW,
    At,
    Changes,
    Column,
    Concat,
    Held,
    KeysOf,
    Matching,
    Net,
    Node,
    Operator,
    Scan,
    Sum,
)
from spark_trickle.algebra.render import render
from spark_trickle.algebra.restrict import restrict
from spark_trickle.algebra.shared import Sharing
from spark_trickle.incremental.differentiate import differentiate
from spark_trickle.incremental.prune import Pruner
from tests.pure.examples import (
    CUSTOMER,
    ID,
    NAME,
    count,
    customers,
    except_all,
    join,
    left_join,
    orders,
    scalar,
    select,
    totals,
    union_all,
    where,
)

QUERIES = [
    orders(),
    where(orders(), ID),
    join(orders(), customers()),
    left_join(orders(), customers()),
    scalar(orders(), count(customers())),
    totals(join(orders(), customers()), CUSTOMER),
    union_all(select(orders(), ID), select(orders(), ID)),
    count(orders()),
    count(),
]


@pytest.mark.parametrize("query", QUERIES, ids=lambda query: render(query).splitlines()[0])
def test_nothing_is_left_when_nothing_changed(query: Node) -> None:
    assert Pruner(set()).node(differentiate(query)) is None


def test_a_join_keeps_the_term_of_the_side_that_changed() -> None:
    pruned = Pruner({"customers"}).node(differentiate(join(orders(), customers())))
    assert isinstance(pruned, Sum)
    (term,) = pruned.changes
    assert isinstance(term.right, Held)
    assert isinstance(term.right.child, Changes)


def test_a_lookup_does_not_look_again_when_only_its_left_side_changed() -> None:
    for query in (left_join(orders(), customers()), scalar(orders(), count(customers()))):
        pruned = Pruner({"orders"}).node(differentiate(query))
        assert isinstance(pruned, Sum)
        (term,) = pruned.changes
        assert isinstance(term.left.child, Changes)


def test_a_lookup_without_keys_keeps_its_netted_change() -> None:
    pruned = Pruner({"customers"}).node(differentiate(scalar(orders(), count(customers()))))
    assert isinstance(pruned, Sum)
    added, removed = pruned.changes
    assert added.child.left is removed.child.left
    assert isinstance(added.child.left.change, Net)


def test_a_union_keeps_the_inputs_that_changed() -> None:
    query = union_all(select(orders(), ID), select(customers(), customers().columns[0]))
    pruned = Pruner({"customers"}).node(differentiate(query))
    assert isinstance(pruned, Concat)
    assert [child.child.scan.source for child in pruned.children] == ["customers"]


def test_keys_come_from_the_inputs_that_changed() -> None:
    query = except_all(select(orders(), CUSTOMER), select(customers(), customers().columns[0]))
    change = differentiate(query)
    assert isinstance(change, Sum)
    keys = change.changes[0].child.children[0].keys
    pruner = Pruner({"orders"})
    assert len(keys.parts) == 2
    assert len(pruner.keys(keys).parts) == 1
    assert pruner.keys(keys) is pruner.keys(keys)
    assert Pruner({"elsewhere"}).keys(keys) is None


def test_shared_nodes_stay_shared() -> None:
    pruned = Pruner({"orders"}).node(differentiate(totals(where(orders(), ID), CUSTOMER)))
    assert isinstance(pruned, Sum)
    added, removed = pruned.changes
    assert added.child.children[0].keys is removed.child.children[0].keys


def test_a_version_is_never_pruned_by_itself() -> None:
    old = At(orders(), NEW)
    assert Pruner(set()).node(old) is old


def test_a_union_restricted_to_no_keys_at_all_is_empty() -> None:
    keys = KeysOf(((Changes(orders()), (ID.id,)),))
    both = restrict(union_all(orders(), orders()), NEW, {0: ID.id}, keys)
    assert Pruner(set()).node(both) is None
    assert Pruner(set()).node(Matching(both, ((0, ID.id),), keys)) is None


def test_a_source_that_is_read_whole_needs_no_keys() -> None:
    change = differentiate(join(orders(), customers()))
    (by_key,) = Pruner({"orders"}).node(change).changes
    (whole,) = Pruner({"orders"}, {"customers"}).node(change).changes
    assert isinstance(by_key.right, Matching)
    assert isinstance(whole.right, At)


def test_rows_are_held_where_somebody_asks_for_their_keys() -> None:
    change = differentiate(join(orders(), customers()))
    for small, several in ((set(), True), ({"customers"}, False)):
        pruned, sharing = Pruner({"orders"}, small).node(change), Sharing()
        sharing.add(pruned)
        sharing.add(pruned)
        (term,) = pruned.changes
        assert sharing.is_shared(term.left) is several


def test_a_small_source_that_decides_what_else_is_read_is_read_by_keys() -> None:
    """A changed segment leads to its customers, and those to their orders: not all customers to all orders."""
    label = Column(31, "label", "string")
    segments = Scan((label,), "segments", Operator(None, "segments"))
    query = join(join(orders(), customers()), segments, (NAME, label))
    (term,) = Pruner({"segments"}, {"customers"}).node(differentiate(query)).changes
    assert isinstance(term.left.right.child, Matching)
    ((rows, _),) = term.left.left.keys.parts
    assert rows is term.left.right
    (both_small,) = Pruner({"segments"}, {"customers", "orders"}).node(differentiate(query)).changes
    assert isinstance(both_small.left.right.child, At)
