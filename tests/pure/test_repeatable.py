"""Which columns, and which rows, may come out differently when the same version is evaluated again."""

import pytest

from spark_trickle.algebra.relations import NEW, At, Column, InnerJoin, Operator, PerKey, Scan
from spark_trickle.algebra.repeatable import Repeatability, repeatability
from tests.pure.examples import (
    AMOUNT,
    COUNT,
    CUSTOMER,
    ID,
    KEY,
    TOTAL,
    count,
    customers,
    except_all,
    existence,
    join,
    orders,
    scalar,
    select,
    totals,
    union_all,
    where,
    window,
)

CERTAIN = Repeatability(frozenset())


def sums() -> PerKey:
    """Sums of floats by customer."""
    return totals(orders(), CUSTOMER, repeatable=False)


def test_a_query_of_exact_values_is_repeatable() -> None:
    assert repeatability(join(where(orders(), AMOUNT), customers())) == CERTAIN


def test_a_source_may_itself_have_unrepeatable_columns() -> None:
    scan = Scan((ID, AMOUNT), "orders", Operator(None, "orders", unrepeatable=frozenset([AMOUNT.id])))
    assert repeatability(scan) == Repeatability(frozenset([AMOUNT.id]))


def test_an_unrepeatable_aggregate_is_an_unrepeatable_column() -> None:
    assert repeatability(sums()) == Repeatability(frozenset([TOTAL.id]))


def test_a_column_that_is_dropped_does_not_matter() -> None:
    assert repeatability(select(sums(), CUSTOMER)) == CERTAIN


def test_a_column_computed_from_an_unrepeatable_one_is_unrepeatable() -> None:
    assert repeatability(select(sums(), TOTAL)) == Repeatability(frozenset([TOTAL.id]))
    assert repeatability(totals(select(sums(), CUSTOMER, TOTAL), CUSTOMER)).columns == {TOTAL.id}


def test_a_union_is_unrepeatable_where_one_of_its_inputs_is() -> None:
    plain = select(orders(), CUSTOMER, AMOUNT)
    assert repeatability(union_all(plain, sums())) == Repeatability(frozenset([AMOUNT.id]))
    assert repeatability(union_all(plain, plain)) == CERTAIN


def test_a_scalar_value_is_carried_as_it_is() -> None:
    assert repeatability(scalar(customers(), count(orders(), repeatable=False))).columns == {COUNT.id}


def test_a_filter_on_an_unrepeatable_column_makes_the_rows_differ() -> None:
    found = repeatability(select(where(sums(), TOTAL), CUSTOMER))
    assert found == Repeatability(frozenset(), "WHERE total > 0 depends on `total`")


def test_the_first_reason_from_below_is_kept() -> None:
    found = repeatability(join(where(sums(), TOTAL), where(customers(), KEY)))
    assert found.rows == "WHERE total > 0 depends on `total`"


@pytest.mark.parametrize(
    ("relation", "reason"),
    [
        (window(sums(), TOTAL), "row_number() depends on `total`"),
        (except_all(sums(), select(orders(), CUSTOMER, AMOUNT)), "EXCEPT ALL depends on `total`"),
        (join(sums(), customers(), (TOTAL, KEY)), "customer = key depends on `total`"),
        (
            existence(Scan((CUSTOMER,), "c", Operator(None, "c", unrepeatable=frozenset([2]))), customers()),
            "EXISTS customer = key depends on `customer`",
        ),
    ],
    ids=["partition", "set operation", "join key", "lookup key"],
)
def test_an_unrepeatable_key_makes_the_rows_differ(relation: PerKey | InnerJoin, reason: str) -> None:
    assert repeatability(relation).rows == reason


def test_a_change_has_no_repeatability() -> None:
    scan = Scan((Column(1, "a", "int"),), "t", Operator(None, "t"))
    with pytest.raises(TypeError, match="At is part of a change"):
        repeatability(At(scan, NEW))
