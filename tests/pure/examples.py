"""A few plans by hand: orders and customers, without payloads, for tests that look at shapes only."""

from spark_trickle.algebra.relations import (
    Column,
    Concat,
    InnerJoin,
    LookupJoin,
    Loop,
    Node,
    Operator,
    PerKey,
    Recursion,
    Relation,
    RowWise,
    Scan,
    Top,
    Whole,
)

ID, CUSTOMER, AMOUNT = (Column(i, n, "int") for i, n in ((1, "id"), (2, "customer"), (3, "amount")))
KEY, NAME = Column(11, "key", "int"), Column(12, "name", "string")
TOTAL, COUNT, FLAG = Column(21, "total", "double"), Column(22, "n", "bigint"), Column(23, "known", "boolean")
BUYER = Column(24, "buyer", "int")


def orders() -> Scan:
    return Scan((ID, CUSTOMER, AMOUNT), "orders", Operator(None, "orders"))


def customers() -> Scan:
    return Scan((KEY, NAME), "customers", Operator(None, "customers"))


def select(child: Node, *columns: Column) -> RowWise:
    """SELECT of some columns; `buyer` is another name for `customer`."""
    source = {c.id: CUSTOMER.id if c is BUYER else c.id for c in columns}
    reads = {out: frozenset([inner]) for out, inner in source.items()}
    return RowWise(columns, child, Operator(None, "SELECT", source, reads, keeps_rows=True))


def where(child: Node, column: Column) -> RowWise:
    passes = {c.id: c.id for c in child.columns}
    operator = Operator(None, f"WHERE {column.name} > 0", passes, decides=frozenset([column.id]))
    return RowWise(child.columns, child, operator)


def totals(child: Node, *shown: Column, repeatable: bool = True) -> PerKey:
    """SELECT …, sum(amount) GROUP BY customer."""
    operator = Operator(
        None,
        "GROUP BY customer",
        {c.id: c.id for c in shown},
        {TOTAL.id: frozenset([AMOUNT.id])},
        frozenset([CUSTOMER.id]),
        frozenset() if repeatable else frozenset([TOTAL.id]),
    )
    return PerKey((*shown, TOTAL), (child,), ((CUSTOMER.id,),), operator)


def window(child: Node, partition: Column) -> PerKey:
    operator = Operator(
        None, "row_number()", {c.id: c.id for c in child.columns}, {COUNT.id: frozenset([partition.id])}
    )
    return PerKey((*child.columns, COUNT), (child,), ((partition.id,),), operator)


def except_all(first: Node, second: Node) -> PerKey:
    keys = tuple(tuple(c.id for c in child.columns) for child in (first, second))
    operator = Operator(None, "EXCEPT ALL", {c.id: c.id for c in first.columns})
    return PerKey(first.columns, (first, second), keys, operator)


def join(left: Node, right: Node, on: tuple[Column, Column] | None = (CUSTOMER, KEY)) -> InnerJoin:
    operator = Operator(None, "customer = key" if on else "CROSS JOIN")
    keys = ((on[0].id, on[1].id),) if on else ()
    return InnerJoin((*left.columns, *right.columns), left, right, keys, operator)


def left_join(left: Node, right: Node) -> LookupJoin:
    keys, operator = ((CUSTOMER.id, KEY.id),), Operator(None, "LEFT OUTER customer = key")
    return LookupJoin((*left.columns, *right.columns), left, right, keys, operator)


def scalar(left: Node, right: Node) -> LookupJoin:
    return LookupJoin((*left.columns, *right.columns), left, right, (), Operator(None, "SCALAR SUBQUERY"))


def existence(left: Node, right: Node) -> LookupJoin:
    condition = frozenset([CUSTOMER.id, KEY.id])
    operator = Operator(None, "EXISTS customer = key", {}, {FLAG.id: condition})
    return LookupJoin((*left.columns, FLAG), left, right, ((CUSTOMER.id, KEY.id),), operator)


def union_all(*children: Node) -> Concat:
    return Concat(children[0].columns, children, Operator(None, "UNION ALL"))


def count(*children: Node, repeatable: bool = True) -> Whole:
    unrepeatable = frozenset() if repeatable else frozenset([COUNT.id])
    operator = Operator(None, "count(*)", unrepeatable=unrepeatable)
    return Whole((COUNT,), children, operator, "an aggregate without keys reads everything")


def top(child: Relation, limit: int | None = 3) -> Top:
    return Top(child.columns, child, limit, 0, Operator(None, "ORDER BY amount"))


def descent(limit: bool = False) -> Loop:
    """Orders of orders: R = orders + R ⋈ orders."""
    itself = Scan((ID, CUSTOMER, AMOUNT), "itself", Operator(None, "itself"))
    step = select(join(itself, customers(), (CUSTOMER, KEY)), ID, CUSTOMER, AMOUNT)
    parts = None if limit else Recursion(orders(), step, "itself")
    return Loop(
        (ID, CUSTOMER, AMOUNT), (orders(), customers()), Operator(None, "RECURSIVE"), parts, "a LIMIT"
    )


def recursion(child: Node) -> Loop:
    return Loop(child.columns, (child,), Operator(None, "`reachable`"))
