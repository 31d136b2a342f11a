"""Queries as small trees that render to Spark SQL.

Every column of a query has a name of its own, given by column lists (`a AS t1(c1, c2, c3, c4)`). Nothing has
to be qualified, a reference to an outer query is plain to see, and subtrees can be moved.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, replace
from typing import Any, TypeAlias, cast


@dataclass(frozen=True)
class Node:
    """Anything in a tree."""


# Expressions


@dataclass(frozen=True)
class Column(Node):
    name: str
    type: str
    """INT, BIGINT, DECIMAL, DOUBLE, STRING or BOOLEAN; the digits of a DECIMAL do not matter here"""


@dataclass(frozen=True)
class Literal(Node):
    text: str
    type: str


@dataclass(frozen=True)
class Call(Node):
    """An operator, function, aggregate or window; `what` names it where tests ask for it."""

    template: str
    args: tuple[Expression, ...]
    type: str
    what: str = ""


@dataclass(frozen=True)
class Subquery(Node):
    kind: str
    """EXISTS, NOT EXISTS, IN, NOT IN or SCALAR"""
    query: Query
    type: str = "BOOLEAN"
    operand: Expression | None = None


# What stands after FROM


@dataclass(frozen=True)
class Table(Node):
    """A table of the database or a CTE."""

    table: str
    alias: str
    columns: tuple[Column, ...]
    is_cte: bool = False


@dataclass(frozen=True)
class Derived(Node):
    query: Query
    alias: str
    columns: tuple[Column, ...]
    lateral: bool = False


@dataclass(frozen=True)
class Constants(Node):
    rows: tuple[tuple[str, ...], ...]
    alias: str
    columns: tuple[Column, ...]


@dataclass(frozen=True)
class Join(Node):
    kind: str
    """INNER, CROSS, LEFT, RIGHT, FULL, LEFT SEMI or LEFT ANTI"""
    left: Source
    right: Source
    condition: Expression | None = None
    using: tuple[str, ...] = ()


@dataclass(frozen=True)
class Exploded(Node):
    """LATERAL VIEW [OUTER] explode; it ends a FROM clause."""

    source: Source
    array: Expression
    alias: str
    column: Column
    outer: bool


# Queries


@dataclass(frozen=True)
class Item(Node):
    expression: Expression
    name: str


@dataclass(frozen=True)
class Group(Node):
    keys: tuple[Expression, ...]
    kind: str = ""
    """empty, ROLLUP, CUBE or GROUPING SETS"""
    sets: tuple[tuple[int, ...], ...] = ()


@dataclass(frozen=True)
class Select(Node):
    items: tuple[Item, ...]
    source: Source
    where: Expression | None = None
    group: Group | None = None
    having: Expression | None = None
    qualify: Expression | None = None
    distinct: bool = False


@dataclass(frozen=True)
class Combined(Node):
    kind: str
    """UNION, INTERSECT or EXCEPT, with or without ALL"""
    left: Query
    right: Query


@dataclass(frozen=True)
class With(Node):
    name: str
    query: Query
    body: Query


@dataclass(frozen=True)
class Top(Node):
    """ORDER BY every column, LIMIT, OFFSET."""

    query: Query
    limit: int
    offset: int = 0


Expression: TypeAlias = Column | Literal | Call | Subquery
Source: TypeAlias = Table | Derived | Constants | Join | Exploded
Query: TypeAlias = Select | Combined | With | Top
QUERIES = (Select, Combined, With, Top)


def columns_of(node: Query | Source) -> tuple[Column, ...]:
    """What a query gives, or what a FROM clause offers."""
    match node:
        case Select(items=items):
            return tuple(Column(i.name, i.expression.type) for i in items)
        case Combined(left=inner) | With(body=inner) | Top(query=inner):
            return columns_of(inner)
        case Join(kind="LEFT SEMI" | "LEFT ANTI", left=left):
            return columns_of(left)
        case Join(left=left, right=right, using=using):
            return columns_of(left) + tuple(c for c in columns_of(right) if c.name not in using)
        case Exploded(source=source, column=column):
            return (*columns_of(source), column)
        case _:
            return node.columns


def sql(node: Node) -> str:
    """The text of a query or of a part of it."""
    match node:
        case Column(name=name):
            return name
        case Literal(text=text):
            return text
        case Call(template=template, args=args):
            return template.format(*map(sql, args))
        case Subquery(kind="SCALAR", query=query):
            return f"({sql(query)})"
        case Subquery(kind=kind, query=query, operand=None):
            return f"{kind} ({sql(query)})"
        case Subquery(kind=kind, query=query, operand=operand):
            return f"({sql(cast(Node, operand))} {kind} ({sql(query)}))"
        case Select() | Combined() | With() | Top():
            return _query(node)
        case Table() | Derived() | Constants() | Join() | Exploded():
            return _source(node)
        case Item(expression=expression, name=name):
            return name if expression == Column(name, expression.type) else f"{sql(expression)} AS {name}"
        case Group(keys=keys, kind=kind, sets=sets):
            if kind == "GROUPING SETS":
                shown = ["(" + ", ".join(sql(keys[i]) for i in chosen) + ")" for chosen in sets]
                return f"GROUPING SETS ({', '.join(shown)})"
            listed = ", ".join(map(sql, keys))
            return f"{kind} ({listed})" if kind else listed
    raise TypeError(node)


def _query(query: Query) -> str:
    match query:
        case Combined(kind=kind, left=left, right=right):
            return f"({sql(left)}) {kind} ({sql(right)})"
        case With(name=name, query=inner, body=body):
            return f"WITH {name} AS ({sql(inner)}) {sql(body)}"
        case Top(query=inner, limit=limit, offset=offset):
            names = ", ".join(c.name for c in columns_of(inner))
            text = f"SELECT * FROM ({sql(inner)}) AS top({names}) ORDER BY {names} LIMIT {limit}"
            return f"{text} OFFSET {offset}" if offset else text
    parts = ["SELECT DISTINCT" if query.distinct else "SELECT", ", ".join(map(sql, query.items))]
    parts += ["FROM", sql(query.source)]
    clauses = {
        "WHERE": query.where,
        "GROUP BY": query.group,
        "HAVING": query.having,
        "QUALIFY": query.qualify,
    }
    for word, clause in clauses.items():
        parts += [word, sql(clause)] if clause is not None else []
    return " ".join(parts)


def _source(source: Source) -> str:
    match source:
        case Join(kind=kind, left=left, right=right, condition=condition, using=using):
            other = f"({sql(right)})" if isinstance(right, Join) else sql(right)
            text = f"{sql(left)} {kind} JOIN {other}"
            if using:
                return f"{text} USING ({', '.join(using)})"
            return f"{text} ON {sql(condition)}" if condition is not None else text
        case Exploded(source=inner, array=array, alias=alias, column=column, outer=outer):
            word = "LATERAL VIEW OUTER" if outer else "LATERAL VIEW"
            return f"{sql(inner)} {word} explode({sql(array)}) {alias} AS {column.name}"
        case Table(table=table):
            text = table
        case Derived(query=query, lateral=lateral):
            text = f"LATERAL ({sql(query)})" if lateral else f"({sql(query)})"
        case Constants(rows=rows):
            text = "(VALUES " + ", ".join(f"({', '.join(row)})" for row in rows) + ")"
    return f"{text} AS {source.alias}({', '.join(c.name for c in source.columns)})"


# Looking at trees, and changing them


def children(node: Node) -> Iterator[Node]:
    for field in fields(node):
        value = getattr(node, field.name)
        yield from (n for n in (value if isinstance(value, tuple) else (value,)) if isinstance(n, Node))


def walk(node: Node) -> Iterator[Node]:
    yield node
    for child in children(node):
        yield from walk(child)


def rebuild(node: Node, change: Callable[[Node], Node]) -> Node:
    """The tree with `change` applied to every node, from the leaves up."""

    def inside(value: Any) -> Any:
        if isinstance(value, tuple):
            return tuple(inside(v) for v in value)
        return rebuild(value, change) if isinstance(value, Node) else value

    return change(replace(node, **{f.name: inside(getattr(node, f.name)) for f in fields(node)}))


def free(node: Node) -> frozenset[str]:
    """Names of columns and CTEs that something further out must provide."""
    match node:
        case Column(name=name):
            return frozenset({name})
        case Table(table=name, is_cte=is_cte):
            return frozenset({name} if is_cte else ())
        case Derived(query=query):
            return free(query)
        case Constants():
            return frozenset()
        case With(name=name, query=query, body=body):
            return free(query) | (free(body) - {name})
        case Exploded(column=column):
            used = _free_inside(node) - {column.name}
            return used - {c.name for c in columns_of(node.source)}
        case Select(source=source, qualify=qualify):
            used = _free_inside(replace(node, qualify=None))
            if qualify is not None:  # may name what is selected
                used |= free(qualify) - {item.name for item in node.items}
            return used - {c.name for c in columns_of(source)}
        case Join(left=left, right=right):
            return _free_inside(node) - {c.name for side in (left, right) for c in columns_of(side)}
        case _:
            return _free_inside(node)


def _free_inside(node: Node) -> frozenset[str]:
    return frozenset[str]().union(*(free(child) for child in children(node)))


def depth(node: Node) -> int:
    """How many queries are nested in each other; the sides of a set operation count as one level."""
    below = max((depth(child) for child in children(node)), default=0)
    return below + isinstance(node, Select)


def leaves(node: Node) -> int:
    return sum(isinstance(n, Table) and not n.is_cte for n in walk(node))
