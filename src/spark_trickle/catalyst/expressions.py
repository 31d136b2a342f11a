"""What we ask of a Catalyst expression: its inputs, its equalities, whether it repeats itself."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from spark_trickle.catalyst.plan import Expression, column_id, items, kind_of

REPEATABLE_AGGREGATES = frozenset(
    {
        "BitAndAgg",
        "BitOrAgg",
        "BitXorAgg",
        "BoolAnd",
        "BoolOr",
        "Count",
        "CountIf",
        "HyperLogLogPlusPlus",
        "Max",
        "Median",
        "Min",
        "Percentile",
        "PercentileCont",
        "PercentileDisc",
        "RegrCount",
    }
)
"""Aggregates that give the same for the same bag, whatever the order of its rows."""

EXACT_SUMS = frozenset({"Sum", "Average", "TrySum", "TryAverage"})
"""Repeatable while the type adds exactly."""

RANKS = frozenset({"Rank", "DenseRank", "PercentRank", "CumeDist"})
"""Window functions that treat ties alike."""


def expressions_in(expression: Expression) -> Iterator[Expression]:
    """The expression and everything inside it, parents first; subquery plans not included."""
    yield expression
    for child in items(expression.children()):
        yield from expressions_in(child)


def references(expression: Expression) -> frozenset[int]:
    """The ids of the columns an expression reads."""
    return frozenset(column_id(a) for a in items(expression.references().toSeq()))


def conjuncts(condition: Expression) -> Iterator[Expression]:
    if kind_of(condition) == "And":
        yield from conjuncts(condition.left())
        yield from conjuncts(condition.right())
    else:
        yield condition


def equalities(condition: Expression | None, left: set[int], right: set[int]) -> tuple[tuple[int, int], ...]:
    """Pairs of columns, left and right, that the condition requires to be equal."""
    pairs: list[tuple[int, int]] = []
    for part in conjuncts(condition) if condition is not None else ():
        if kind_of(part) not in {"EqualTo", "EqualNullSafe"}:
            continue
        if any(kind_of(side) != "AttributeReference" for side in (part.left(), part.right())):
            continue
        one, two = column_id(part.left()), column_id(part.right())
        if one in left and two in right:
            pairs.append((one, two))
        elif two in left and one in right:
            pairs.append((two, one))
    return tuple(pairs)


def unrepeatable(expression: Expression, covered: bool = False) -> bool:
    """True if two evaluations over the same rows may give another value.

    `covered`: the order of a window decides between any two different rows.
    """
    kind = kind_of(expression)
    if kind == "WindowExpression":
        return _unrepeatable_window(expression, covered)
    if kind == "AggregateExpression":
        return _unrepeatable_aggregate(expression.aggregateFunction())
    if kind in {"SortArray", "ArraySort"} and _collects_exact(expression):
        return False
    return any(unrepeatable(child, covered) for child in items(expression.children()))


def _unrepeatable_window(window: Expression, covered: bool) -> bool:
    function, spec = window.windowFunction(), window.windowSpec()
    kind = kind_of(function)
    if kind in RANKS or covered:
        return kind == "AggregateExpression" and _unrepeatable_aggregate(
            function.aggregateFunction(), covered
        )
    if kind != "AggregateExpression":
        return True
    if _by_rows(spec.frameSpecification()):
        return True
    return _unrepeatable_aggregate(function.aggregateFunction())


def _by_rows(frame: Any) -> bool:
    """A ROWS frame cuts between ties, unless it takes the whole partition anyway."""
    if kind_of(frame) != "SpecifiedWindowFrame" or kind_of(frame.frameType()) != "RowFrame":
        return False
    bounds = {kind_of(frame.lower()), kind_of(frame.upper())}
    return bounds != {"UnboundedPreceding", "UnboundedFollowing"}


def _unrepeatable_aggregate(function: Expression, ordered: bool = False) -> bool:
    kind = kind_of(function)
    if kind in EXACT_SUMS:
        return not all(_adds_exactly(child.dataType(), kind) for child in items(function.children()))
    if kind in REPEATABLE_AGGREGATES:
        return any(is_collated(child.dataType()) for child in items(function.children()))
    return not (ordered and kind in {"First", "Last", "AnyValue", "CollectList", "NthValue"})


def _adds_exactly(data_type: Any, kind: str) -> bool:
    name = str(data_type.typeName())
    if name in {"float", "double"}:
        return False
    # AVG of integers adds in DOUBLE: exact below 2^53, which 32-bit values cannot leave in practice.
    return not ("Average" in kind and name in {"long", "bigint"})


def _collects_exact(expression: Expression) -> bool:
    """sort_array(collect_list(x)): sorting takes the order of rows out again."""
    child = items(expression.children())[0]
    if kind_of(child) != "AggregateExpression":
        return False
    if kind_of(expression) == "ArraySort" and kind_of(items(expression.children())[1]) != "LambdaFunction":
        return False
    function = child.aggregateFunction()
    if kind_of(function) not in {"CollectList", "CollectSet"}:
        return False
    if kind_of(expression) == "ArraySort" and not _default_order(items(expression.children())[1]):
        return False
    return not is_collated(function.dataType()) and not _has_floats(function.dataType())


def _default_order(comparator: Expression) -> bool:
    return kind_of(comparator.function()) == "If" and "null" in str(comparator.toString()).lower()


def is_collated(data_type: Any) -> bool:
    return "collate" in str(data_type.catalogString()).lower()


def _has_floats(data_type: Any) -> bool:
    text = str(data_type.catalogString())
    return "double" in text or "float" in text
