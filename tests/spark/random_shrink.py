"""The smallest query and the fewest edits that still fail, found by dropping parts."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields, replace
from typing import Any

from tests.spark.random_ast import (
    QUERIES,
    Call,
    Combined,
    Derived,
    Exploded,
    Expression,
    Item,
    Join,
    Literal,
    Node,
    Query,
    Select,
    Subquery,
    Table,
    Top,
    With,
    columns_of,
    free,
    sql,
    walk,
)
from tests.spark.random_metamorphic import inline_ctes
from tests.spark.random_regressions import Case

AT_ONCE = 8
CONSTANTS = {"STRING": "'x'", "BOOLEAN": "TRUE", "DOUBLE": "2.0D", "DECIMAL": "1.00", "BIGINT": "1L"}
Fails = Callable[[Case, Sequence[str]], list[bool]]
"""Which of the queries fail with the data and edits of the case."""


def shrink(query: Query, case: Case, fails: Fails, tries: int = 120) -> Case:
    """Edits first, as fewer of them make every try cheaper; then the query; then edits and rows again."""
    left = tries
    case, left = _fewer_edits(replace(case, query=sql(query)), fails, left)
    smaller: Query | None = query
    while smaller is not None and left > 0:
        query = smaller
        smaller, left = _smaller_query(query, case, fails, left)
    return _fewer_edits(replace(case, query=sql(query)), fails, left)[0]


def _smaller_query(query: Query, case: Case, fails: Fails, left: int) -> tuple[Query | None, int]:
    """The shortest candidate that fails; several are tried in one database."""
    found = candidates(query)
    for start in range(0, len(found), AT_ONCE):
        if left <= 0:
            break
        chosen = found[start : start + AT_ONCE]
        left -= 1 + len(chosen) // 4
        failing = [c for c, failed in zip(chosen, fails(case, list(map(sql, chosen))), strict=True) if failed]
        if failing:
            return failing[0], left
    return None, left


def _fewer_edits(case: Case, fails: Fails, left: int) -> tuple[Case, int]:
    smaller: Case | None = case
    while smaller is not None:
        case, smaller = smaller, None
        for candidate in _edit_candidates(case):
            if left <= 0:
                break
            left -= 1
            if fails(candidate, [candidate.query])[0]:
                smaller = candidate
                break
    return case, left


def _edit_candidates(case: Case) -> Iterator[Case]:
    """Without a batch, without a statement, with half of its rows."""
    for i in range(len(case.batches)):
        if len(case.batches) > 1:
            yield replace(case, batches=case.batches[:i] + case.batches[i + 1 :])
    for i, batch in enumerate(case.batches):
        for fewer in _shorter(batch):
            yield replace(case, batches=[*case.batches[:i], fewer, *case.batches[i + 1 :]])
    for fewer in _shorter(case.initial):
        yield replace(case, initial=fewer)


def _shorter(statements: list[str]) -> Iterator[list[str]]:
    for i, statement in enumerate(statements):
        before, after = statements[:i], statements[i + 1 :]
        yield before + after
        head, _, rows = statement.partition(" VALUES ")
        listed = re.findall(r"\((?:[^()]|\([^()]*\))*\)", rows)
        if len(listed) > 1:
            half = len(listed) // 2
            for kept in (listed[:half], listed[half:]):
                yield [*before, f"{head} VALUES {', '.join(kept)}", *after]


def candidates(query: Query) -> list[Query]:
    """Shorter queries that make sense by themselves, the shortest first."""
    parts = [n for n in walk(query) if isinstance(n, QUERIES) and n is not query]
    found = [c for c in (*parts, *_trees(query)) if isinstance(c, QUERIES) and not free(c)]
    texts = {sql(c): c for c in found if all(_fits(node) for node in walk(c))}
    return [texts[text] for text in sorted(texts, key=len) if len(text) < len(sql(query))]


def _fits(node: Node) -> bool:
    """Whether a query gives as many columns as its place asks for."""
    match node:
        case Derived(query=query, columns=columns):
            return len(columns_of(query)) == len(columns)
        case Combined(left=left, right=right):
            return len(columns_of(left)) == len(columns_of(right))
        case With(name=name, query=query, body=body):
            uses = (n for n in walk(body) if isinstance(n, Table) and n.table == name)
            return all(len(use.columns) == len(columns_of(query)) for use in uses)
        case Subquery(query=query):
            return len(columns_of(query)) == 1
        case _:
            return True


def _trees(node: Node) -> Iterator[Node]:
    """The tree with one simplification somewhere."""
    yield from _simpler(node)
    for field in fields(node):
        for value in _values(getattr(node, field.name)):
            yield replace(node, **{field.name: value})


def _values(value: Any) -> Iterator[Any]:
    if isinstance(value, Node):
        yield from _trees(value)
    elif isinstance(value, tuple):
        for i, part in enumerate(value):
            yield from ((*value[:i], other, *value[i + 1 :]) for other in _values(part))


def _simpler(node: Node) -> Iterator[Node]:
    match node:
        case Select():
            yield from _simpler_select(node)
        case Combined(left=left, right=right):
            yield from (left, right)
        case With():
            yield inline_ctes(node)
        case Top(query=inner):
            yield inner
        case Join(left=left, right=right):
            yield from (left, right)
            if node.kind not in {"INNER", "CROSS"}:
                yield replace(node, kind="INNER")
        case Exploded(source=source):
            yield source
        case Derived(query=Select() as select, columns=columns) if len(columns) > 1:
            for i in range(len(columns)):
                kept = select.items[:i] + select.items[i + 1 :]
                yield replace(node, query=replace(select, items=kept), columns=columns[:i] + columns[i + 1 :])
        case Call() | Subquery():
            yield from _simpler_expression(node)


def _simpler_select(select: Select) -> Iterator[Select]:
    shorter = (
        replace(select, where=None),
        replace(select, having=None),
        replace(select, qualify=None),
        replace(select, distinct=False),
    )
    yield from (candidate for candidate in shorter if candidate != select)
    if select.group is not None and select.group.kind:
        yield replace(select, group=replace(select.group, kind="", sets=()))
    if select.group is not None and len(select.group.keys) > 1:
        for i, key in enumerate(select.group.keys):
            keys = select.group.keys[:i] + select.group.keys[i + 1 :]
            items = tuple(item for item in select.items if item.expression != key)
            if items:
                yield replace(select, group=replace(select.group, keys=keys, kind="", sets=()), items=items)
    if len(select.items) > 1:
        for i in range(len(select.items)):
            yield replace(select, items=select.items[:i] + select.items[i + 1 :])
    inner = select.source
    if isinstance(inner, Derived) and isinstance(inner.query, Select) and select.group is None:
        items = tuple(
            Item(i.expression, c.name) for i, c in zip(inner.query.items, inner.columns, strict=True)
        )
        yield replace(inner.query, items=items)


def _simpler_expression(node: Call | Subquery) -> Iterator[Expression]:
    if isinstance(node, Call):
        yield from (a for a in node.args if a.type == node.type)
    aggregated = isinstance(node, Call) and (
        "OVER" in node.template or node.what in {"sum", "count", "min", "max"}
    )
    if not aggregated:
        yield Literal(CONSTANTS.get(node.type, "1"), node.type)
