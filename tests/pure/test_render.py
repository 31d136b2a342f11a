"""Plans as people read them in EXPLAIN."""

from textwrap import dedent

import pytest

from spark_trickle.algebra.relations import (
    NEW,
    At,
    Changes,
    KeysOf,
    Loop,
    Matching,
    Node,
    Operator,
    PerKey,
    Top,
)
from spark_trickle.algebra.render import describe, render
from spark_trickle.incremental.differentiate import differentiate
from tests.pure.examples import (
    AMOUNT,
    CUSTOMER,
    ID,
    count,
    customers,
    existence,
    join,
    left_join,
    orders,
    recursion,
    scalar,
    totals,
    union_all,
    where,
)

GOLDEN: dict[str, tuple[Node, str]] = {
    "a query shows its operators and their keys": (
        totals(left_join(where(orders(), AMOUNT), customers()), CUSTOMER),
        """
        PerKey [customer]: GROUP BY customer
          LookupJoin: LEFT OUTER customer = key
            RowWise: WHERE amount > 0
              Scan orders (id, customer, amount)
            Scan customers (key, name)
        """,
    ),
    "a recursive query below a union": (
        union_all(recursion(orders()), orders()),
        """
        Concat: UNION ALL
          Loop: `reachable`
            Scan orders (id, customer, amount)
          Scan orders (id, customer, amount)
        """,
    ),
    "a constant needs no reason": (
        scalar(orders(), count()),
        """
        LookupJoin: SCALAR SUBQUERY
          Scan orders (id, customer, amount)
          Whole: count(*)
        """,
    ),
    "an inner join reads one side old and one side new": (
        differentiate(join(where(orders(), AMOUNT), customers())),
        """
        sum of changes
          InnerJoin: customer = key
            RowWise: WHERE amount > 0
              changes of orders (id, customer, amount)
            only where [key] can matter
              at new: Scan customers (key, name)
          InnerJoin: customer = key
            RowWise: WHERE amount > 0
              only where [customer] can matter
                at old: Scan orders (id, customer, amount)
            changes of customers (key, name)
        """,
    ),
    "a lookup by key refers to its keys again": (
        differentiate(existence(orders(), customers())),
        """
        sum of changes
          LookupJoin: EXISTS customer = key
            changes of orders (id, customer, amount)
            only where [key] can matter
              at new: Scan customers (key, name)
          added (+1)
            LookupJoin: EXISTS customer = key
              only where [customer] in
                keys #1 = keys touched by
                  changes of customers (key, name)
                at old: Scan orders (id, customer, amount)
              only where [key] in
                keys #1, as above
                at new: Scan customers (key, name)
          removed (−1)
            LookupJoin: EXISTS customer = key
              only where [customer] in
                keys #1, as above
                at old: Scan orders (id, customer, amount)
              only where [key] in
                keys #1, as above
                at old: Scan customers (key, name)
        """,
    ),
    "a lookup without keys meets a netted change": (
        differentiate(scalar(customers(), count(orders()))),
        """
        sum of changes
          LookupJoin: SCALAR SUBQUERY
            changes of customers (key, name)
            at new: Whole: count(*)  -- an aggregate without keys reads everything
              Scan orders (id, customer, amount)
          added (+1)
            LookupJoin: SCALAR SUBQUERY
              only rows that meet a changed row
                at old: Scan customers (key, name)
                netted
                  sum of changes
                    added (+1)
                      at new: Whole: count(*)  -- an aggregate without keys reads everything
                        Scan orders (id, customer, amount)
                    removed (−1)
                      at old: Whole: count(*)  -- an aggregate without keys reads everything
                        Scan orders (id, customer, amount)
              at new: Whole: count(*)  -- an aggregate without keys reads everything
                Scan orders (id, customer, amount)
          removed (−1)
            LookupJoin: SCALAR SUBQUERY
              only rows that meet a changed row
                at old: Scan customers (key, name)
                netted
                  sum of changes
                    added (+1)
                      at new: Whole: count(*)  -- an aggregate without keys reads everything
                        Scan orders (id, customer, amount)
                    removed (−1)
                      at old: Whole: count(*)  -- an aggregate without keys reads everything
                        Scan orders (id, customer, amount)
              at old: Whole: count(*)  -- an aggregate without keys reads everything
                Scan orders (id, customer, amount)
        """,
    ),
    "an aggregate is restricted to the keys touched": (
        differentiate(totals(union_all(orders(), orders()), CUSTOMER)),
        """
        sum of changes
          added (+1)
            PerKey [customer]: GROUP BY customer
              only where [customer] in
                keys #1 = keys touched by
                  Concat: UNION ALL
                    changes of orders (id, customer, amount)
                    changes of orders (id, customer, amount)
                Concat: UNION ALL
                  only where [customer] can matter
                    at new: Scan orders (id, customer, amount)
                  only where [customer] can matter
                    at new: Scan orders (id, customer, amount)
          removed (−1)
            PerKey [customer]: GROUP BY customer
              only where [customer] in
                keys #1, as above
                Concat: UNION ALL
                  only where [customer] can matter
                    at old: Scan orders (id, customer, amount)
                  only where [customer] can matter
                    at old: Scan orders (id, customer, amount)
        """,
    ),
}


@pytest.mark.parametrize("name", GOLDEN)
def test_the_text_of_a_plan(name: str) -> None:
    plan, expected = GOLDEN[name]
    assert render(plan) == dedent(expected).strip()


def test_every_node_can_be_described_in_one_line() -> None:
    order = Operator(None, "ORDER BY id")
    assert describe(Top((ID,), orders(), 3, 0, order)) == "Top 3 rows: ORDER BY id"
    assert describe(Top((ID,), orders(), None, 2, order)) == "Top all rows after 2: ORDER BY id"
    assert describe(Loop((ID,), (orders(),), order, None, "why")) == "Loop: ORDER BY id  -- why"
    keys = KeysOf(((Changes(orders()), (CUSTOMER.id,)),))
    assert describe(keys) == "keys touched by"
    assert (
        describe(Matching(At(orders(), NEW), ((0, CUSTOMER.id), (1, 99)), keys))
        == "only where [customer, ?] in"
    )


def test_a_key_that_is_no_column_of_the_input_is_shown_as_unknown() -> None:
    query = totals(orders(), CUSTOMER)
    strange = PerKey(query.columns, query.children, ((99,),), query.operator)
    assert describe(strange) == "PerKey [?]: GROUP BY customer"
