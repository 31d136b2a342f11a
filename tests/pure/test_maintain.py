"""How a stored table is brought up to date, decided from the shape of its query."""

from collections import Counter
from dataclasses import replace

import pytest

from spark_trickle.algebra.relations import (
    NEW,
    OLD,
    At,
    Changes,
    Column,
    LookupJoin,
    Matching,
    Operator,
    PerKey,
    Relation,
    RowWise,
    Scan,
    Whole,
)
from spark_trickle.incremental.differentiate import differentiate
from spark_trickle.incremental.maintain import (
    ByKey,
    ByWeight,
    Iterate,
    Recompute,
    TopRows,
    Totals,
    aggregate_to_continue,
    hidden_columns,
    keys_to_carry,
    maintain,
    recomputed_parts,
    visible_keys,
)
from tests.pure.cases import Case
from tests.pure.examples import (
    AMOUNT,
    BUYER,
    COUNT,
    CUSTOMER,
    ID,
    KEY,
    TOTAL,
    count,
    customers,
    descent,
    except_all,
    join,
    left_join,
    orders,
    recursion,
    scalar,
    select,
    top,
    totals,
    union_all,
    where,
)
from tests.pure.interpreter import Interpreter, Join
from tests.pure.law import apply


@pytest.mark.parametrize(
    "query",
    [
        orders(),
        where(orders(), AMOUNT),
        left_join(orders(), customers()),
        scalar(orders(), count(customers())),
    ],
    ids=["scan", "filter", "lookup", "scalar subquery"],
)
def test_a_bag_of_rows_is_maintained_by_weight(query: Relation) -> None:
    assert isinstance(maintain(query), ByWeight)


def test_a_constant_is_maintained_by_weight_for_it_never_changes() -> None:
    assert isinstance(maintain(count()), ByWeight)


def test_an_aggregate_that_shows_its_keys_is_maintained_by_key_without_reading_the_old_version() -> None:
    plan = maintain(where(select(totals(orders(), CUSTOMER), BUYER, TOTAL), BUYER))
    assert isinstance(plan, ByKey)
    assert plan.columns == (BUYER.id,)
    assert isinstance(plan.new, RowWise)
    assert versions_read(plan.new) == {NEW}
    (change, on), *_ = plan.keys.parts
    assert isinstance(change, Changes)
    assert on == (CUSTOMER.id,)


def test_a_set_operation_is_maintained_by_key() -> None:
    plan = maintain(except_all(select(orders(), CUSTOMER), select(customers(), KEY)))
    assert isinstance(plan, ByKey)
    assert plan.columns == (CUSTOMER.id,)
    assert [on for _, on in plan.keys.parts] == [(CUSTOMER.id,), (KEY.id,)]


def test_an_aggregate_that_hides_its_keys_is_maintained_by_weight() -> None:
    assert isinstance(maintain(totals(orders())), ByWeight)
    assert isinstance(maintain(select(totals(orders(), CUSTOMER), TOTAL)), ByWeight)


def test_a_join_with_unrepeatable_sums_is_maintained_by_its_other_columns() -> None:
    plan = maintain(join(totals(orders(), CUSTOMER, repeatable=False), customers()))
    assert isinstance(plan, ByKey)
    assert plan.columns == (CUSTOMER.id, KEY.id, 12)
    assert isinstance(plan.new, Matching)


def test_a_filter_on_an_unrepeatable_value_is_replaced_key_by_key() -> None:
    """HAVING on a float sum, or `row_number() = 1` with ties: all rows of a key come from one evaluation."""
    query = where(totals(orders(), CUSTOMER, repeatable=False), TOTAL)
    plan = maintain(query)
    assert isinstance(plan, ByKey)
    assert plan.columns == (CUSTOMER.id,)
    assert hidden_columns(select(query, TOTAL)) == (CUSTOMER.id,)


def test_columns_that_cannot_be_compared_are_no_keys() -> None:
    tags = Column(13, "tags", "map<string,string>", comparable=False)
    people = Scan((KEY, tags), "customers", Operator(None, "customers"))
    plan = maintain(join(totals(orders(), CUSTOMER, repeatable=False), people))
    assert isinstance(plan, ByKey)
    assert plan.columns == (CUSTOMER.id, KEY.id)


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        (select(count(orders()), COUNT), "an aggregate without keys reads everything"),
        (recursion(orders()), "a recursive query is run again"),
        (
            join(where(totals(orders(), CUSTOMER, repeatable=False), TOTAL), customers()),
            "WHERE total > 0 depends on `total`, which two evaluations may compute differently",
        ),
        (totals(orders(), repeatable=False), "two evaluations may compute `total` differently"),
    ],
    ids=["whole", "loop", "unrepeatable rows", "nothing but unrepeatable columns"],
)
def test_everything_else_is_recomputed_and_says_why(query: Relation, reason: str) -> None:
    plan = maintain(query)
    assert isinstance(plan, Recompute)
    assert plan.reason == reason
    assert isinstance(plan.query, At)
    assert (plan.query.relation, plan.query.version) == (query, NEW)


def test_a_limit_is_merged_into_the_stored_rows() -> None:
    plan = maintain(select(top(orders()), CUSTOMER, ID, AMOUNT))
    assert isinstance(plan, TopRows)
    assert plan.places == (ID.id, CUSTOMER.id, AMOUNT.id)
    assert isinstance(plan.competing, ByWeight)
    assert isinstance(plan.competing.change, Changes)


def test_groups_below_a_limit_are_replaced_by_key() -> None:
    plan = maintain(top(totals(orders(), CUSTOMER)))
    assert isinstance(plan, TopRows)
    assert isinstance(plan.competing, ByKey)
    assert plan.competing.columns == (CUSTOMER.id,)


def test_groups_before_an_offset_are_not_stored() -> None:
    plan = maintain(replace(top(totals(orders(), CUSTOMER)), offset=1))
    assert isinstance(plan, TopRows)
    assert isinstance(plan.competing, ByWeight)


def test_a_linear_recursion_is_derived_from_the_stored_rows() -> None:
    plan = maintain(select(descent(), ID, CUSTOMER, AMOUNT))
    assert isinstance(plan, Iterate)
    assert plan.itself == "itself"
    assert recomputed_parts(descent(), maintain(descent())) == []


@pytest.mark.parametrize(
    "query",
    [
        where(top(orders()), AMOUNT),
        top(orders(), limit=None),
        top(totals(orders(), CUSTOMER, repeatable=False)),
        select(top(orders()), ID),
        where(descent(), AMOUNT),
        descent(limit=True),
    ],
    ids=["filter", "no limit", "unrepeatable", "columns missing", "filter above recursion", "not linear"],
)
def test_what_the_table_does_not_hold_cannot_be_continued_from(query: Relation) -> None:
    assert isinstance(maintain(query), Recompute)


def test_columns_of_limited_and_recursive_rows_are_hidden_beside_the_query_s_own() -> None:
    assert hidden_columns(select(top(orders()), ID)) == (CUSTOMER.id, AMOUNT.id)
    assert hidden_columns(select(descent(), AMOUNT)) == (ID.id, CUSTOMER.id)
    assert hidden_columns(where(top(orders()), AMOUNT)) == ()


def test_visible_keys_are_the_output_columns_that_carry_them() -> None:
    top = totals(orders(), CUSTOMER)
    assert visible_keys(top, top) == (CUSTOMER.id,)
    assert visible_keys(select(top, TOTAL, BUYER), top) == (BUYER.id,)
    assert visible_keys(select(top, BUYER, CUSTOMER), top) == (BUYER.id,)
    assert visible_keys(select(top, TOTAL), top) is None


def test_keys_are_hidden_beside_unrepeatable_values_that_could_not_be_found_otherwise() -> None:
    assert hidden_columns(totals(orders(), repeatable=False)) == (CUSTOMER.id,)
    two = replace(totals(orders(), CUSTOMER, repeatable=False), keys=((CUSTOMER.id, ID.id),))
    assert hidden_columns(two) == (ID.id,)


@pytest.mark.parametrize(
    "query",
    [
        totals(orders()),
        totals(orders(), CUSTOMER, repeatable=False),
        totals(where(totals(orders(), CUSTOMER, repeatable=False), TOTAL)),
        except_all(select(orders(), ID), select(totals(orders(), repeatable=False), TOTAL)),
        orders(),
    ],
    ids=["repeatable", "visible", "rows differ", "two inputs", "no keys"],
)
def test_no_key_is_hidden_where_it_would_not_help(query: Relation) -> None:
    assert hidden_columns(query) == ()


def test_recomputed_parts_are_those_that_read_a_source() -> None:
    loop, whole = recursion(orders()), count(customers())
    query = scalar(scalar(loop, whole), count())
    assert recomputed_parts(query, maintain(query)) == [loop, whole]


def test_a_stored_value_that_is_gone_is_replaced_although_two_evaluations_agree() -> None:
    """any_value of {1, 2} was stored as 1; evaluated again it is 2, as it is when 1 has been removed."""
    picks = iter([min, max, max])
    people = Scan((KEY,), "people", Operator(None, "people"))
    prices = Scan((AMOUNT,), "prices", Operator(None, "prices"))
    operator = Operator(
        lambda bags: Counter([next(picks)(bags[0])]),
        "any_value(amount)",
        reads={COUNT.id: frozenset([AMOUNT.id])},
        unrepeatable=frozenset([COUNT.id]),
    )
    some = Whole((COUNT,), (prices,), operator, "an aggregate without keys reads everything")
    query = LookupJoin(
        (KEY, COUNT), people, some, (), Operator(Join("single", lambda _l, _r: True), "SCALAR")
    )
    ann = Counter([(7,)])
    database = {"people": (ann, ann), "prices": (Counter([(1,), (2,)]), Counter([(2,)]))}
    stored = Interpreter(database).evaluate(query, OLD)
    assert stored == Counter([(7, 1)])
    case = Case(query, database, (), maintain(query).keys)
    assert apply(maintain(query), case, stored) == Counter([(7, 2)])


def test_only_a_query_can_be_differentiated() -> None:
    with pytest.raises(TypeError, match="Changes is part of a change already"):
        differentiate(Changes(orders()))  # type: ignore[arg-type]


def versions_read(node: RowWise | PerKey | Matching | At) -> set:
    if isinstance(node, At):
        return {node.version}
    children = node.children if isinstance(node, PerKey) else (node.child,)
    return set().union(*(versions_read(child) for child in children))


def test_an_aggregate_at_the_root_is_continued_from_its_totals() -> None:
    grouped = totals(orders(), CUSTOMER)
    assert aggregate_to_continue(select(grouped, TOTAL)) is grouped
    assert keys_to_carry(select(grouped, TOTAL), grouped) == (CUSTOMER.id,)
    plan = maintain(select(grouped, BUYER, TOTAL), (TOTAL.id,))
    assert isinstance(plan, Totals)
    assert (plan.columns, plan.places, plan.hides) == ((BUYER.id,), (TOTAL.id,), False)
    having = maintain(where(grouped, TOTAL), (TOTAL.id,))
    assert isinstance(having, Totals)
    assert having.hides
    query = count(orders())
    whole = maintain(query, (COUNT.id,))
    assert isinstance(whole, Totals)
    assert whole.columns == ()
    assert recomputed_parts(query, whole) == []


def test_totals_of_values_that_come_out_differently_are_not_kept() -> None:
    unsure = replace(orders(), operator=Operator(None, "orders", unrepeatable=frozenset([AMOUNT.id])))
    assert aggregate_to_continue(totals(unsure, CUSTOMER)) is None
    assert aggregate_to_continue(orders()) is None
    assert aggregate_to_continue(union_all(orders(), orders())) is None
