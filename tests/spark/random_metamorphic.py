"""Rewrites that must not change an answer: of queries, and of edits."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, cast

from tests.spark.random_ast import Column, Derived, Item, Join, Node, Query, Table, With, free, rebuild, sql

MIRRORED = {"INNER": "INNER", "CROSS": "CROSS", "LEFT": "RIGHT", "RIGHT": "LEFT"}
UPDATE = re.compile(r"UPDATE (\w+) SET (\w+) = (.+) WHERE (.+)")
Read = Callable[[str], Sequence[Any]]


def variants(query: Query) -> dict[str, Query]:
    """The rewrites that apply to a query, by name."""
    found = {"inlined": inline_ctes(query), "swapped": swap_joins(query), "renamed": rename(query)}
    return {name: variant for name, variant in found.items() if sql(variant) != sql(query)}


def inline_ctes(query: Query) -> Query:
    """Every reference to a CTE becomes a copy of its query."""

    def inlined(node: Node) -> Node:
        if not isinstance(node, With):
            return node
        return rebuild(node.body, lambda n: _copy(n, node))

    return cast(Query, rebuild(query, inlined))


def _copy(node: Node, cte: With) -> Node:
    if isinstance(node, Table) and node.is_cte and node.table == cte.name:
        return Derived(cte.query, node.alias, node.columns)
    return node


def swap_joins(query: Query) -> Query:
    """Inner joins the other way round; LEFT becomes RIGHT. USING is left alone: it takes one side's type."""

    def swapped(node: Node) -> Node:
        if not isinstance(node, Join) or node.kind not in MIRRORED or node.using or free(node.right):
            return node
        return replace(node, kind=MIRRORED[node.kind], left=node.right, right=node.left)

    return cast(Query, rebuild(query, swapped))


def rename(query: Query) -> Query:
    """Other names, in another alphabetical order; answers are compared by position."""

    def other(name: str) -> str:
        return f"r{1000 - int(name[1:])}"

    def renamed(node: Node) -> Node:
        match node:
            case Column() | Item():
                return replace(node, name=other(node.name))
            case Join():
                return replace(node, using=tuple(map(other, node.using)))
            case _:
                return node

    return cast(Query, rebuild(query, renamed))


def delete_and_insert(statement: str, read: Read) -> list[str]:
    """UPDATE as DELETE + INSERT of the rows that `read` finds; other statements as they are."""
    update = UPDATE.fullmatch(statement)
    if update is None:
        return [statement]
    table, column, value, condition = update.groups()
    rows = [
        ", ".join(value if name == column else literal(row[name]) for name in row)
        for row in (r.asDict() for r in read(f"SELECT * FROM {table} WHERE {condition}"))
    ]
    insert = [f"INSERT INTO {table} VALUES ({'), ('.join(rows)})"] if rows else []
    return [f"DELETE FROM {table} WHERE {condition}", *insert]


def literal(value: Any) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, float):
        return f"double('{value}')"
    return f"'{value}'" if isinstance(value, str) else str(value)


def merged(batches: Sequence[list[str]]) -> list[list[str]]:
    """The first two batches as one: one refresh in place of two."""
    return [[*batches[0], *batches[1]], *batches[2:]] if len(batches) > 1 else list(batches)
