"""A plan as indented text: EXPLAIN for people, golden files for tests."""

from __future__ import annotations

from typing import assert_never

from spark_trickle.algebra.relations import (
    At,
    Changes,
    Concat,
    Held,
    InnerJoin,
    Kept,
    KeysOf,
    LookupJoin,
    Loop,
    Matching,
    Net,
    Node,
    Part,
    Partners,
    PerKey,
    RowWise,
    Scan,
    Signed,
    Sum,
    Top,
    Whole,
)
from spark_trickle.names import shown


def render(node: Node | KeysOf) -> str:
    """The plan, one node a line, children indented below. A node met again is shown once and referred to."""
    lines: list[str] = []
    seen: dict[int, int] = {}

    def visit(item: Node | KeysOf, depth: int) -> None:
        indent = "  " * depth
        children = _children(item)
        if isinstance(item, KeysOf) and id(item) in seen:
            lines.append(f"{indent}keys #{seen[id(item)]}, as above")
            return
        title = describe(item)
        if isinstance(item, KeysOf):
            seen[id(item)] = len(seen) + 1
            title = f"keys #{seen[id(item)]} = {title}"
        lines.append(indent + title)
        for child in children:
            visit(child, depth + 1)

    visit(node, 0)
    return "\n".join(lines)


def describe(node: Node | KeysOf) -> str:
    """One node in one line."""
    match node:
        case Scan():
            return f"Scan {shown(node.source)} ({_names(node)})"
        case RowWise() | Concat():
            return f"{type(node).__name__}: {node.operator.label}"
        case InnerJoin() | LookupJoin():
            return f"{type(node).__name__}: {node.operator.label}"
        case PerKey():
            named = {c.id: c.name for child in node.children for c in child.columns}
            keys = ", ".join(named.get(k, "?") for k in node.keys[0])
            return f"PerKey [{keys}]: {node.operator.label}"
        case Whole(reason=reason):
            return f"Whole: {node.operator.label}" + (f"  -- {reason}" if node.children else "")
        case Top(limit=limit, offset=offset):
            most = "all rows" if limit is None else f"{limit} rows"
            return f"Top {most}{f' after {offset}' if offset else ''}: {node.operator.label}"
        case Loop(reason=reason):
            return f"Loop: {node.operator.label}" + (f"  -- {reason}" if reason else "")
        case Changes(scan=scan):
            return f"changes of {shown(scan.source)} ({_names(scan)})"
        case At(relation=relation, version=version):
            return f"at {version.value}: {describe(relation)}"
        case Matching():
            named = {c.id: c.name for c in node.columns}
            columns = ", ".join(named.get(c, "?") for _, c in node.on)
            return f"only where [{columns}] in" if node.needed else f"only where [{columns}] can matter"
        case Held(child=child):
            return describe(child)
        case Partners(swayed=decision):
            if decision is None:
                return "only rows that meet a changed row"
            return f"only rows about which {decision.operator.label} decides otherwise now"
        case Signed(sign=sign):
            return "added (+1)" if sign > 0 else "removed (−1)"
        case Sum():
            return "sum of changes"
        case Net():
            return "netted"
        case Part(sign=sign):
            return "rows that came" if sign > 0 else "rows that went"
        case Kept():
            return "rows that stayed"
        case KeysOf():
            return "keys touched by"
    assert_never(node)


def _children(node: Node | KeysOf) -> tuple[Node | KeysOf, ...]:
    match node:
        case Scan() | Changes():
            return ()
        case RowWise(child=child) | Top(child=child) | Signed(child=child):
            return (child,)
        case Held(child=child):
            return _children(child)
        case InnerJoin(left=left, right=right) | LookupJoin(left=left, right=right):
            return (left, right)
        case (
            Concat(children=children)
            | PerKey(children=children)
            | Whole(children=children)
            | Loop(children=children)
        ):
            return children
        case At(relation=relation):
            return _children(relation)
        case Matching(child=child, keys=keys, needed=needed):
            return (keys, child) if needed else (child,)
        case Partners(left=left, change=change):
            return (left, change)
        case Sum(changes=changes):
            return changes
        case Net(change=change) | Part(change=change):
            return (change,)
        case Kept(rows=rows, removed=removed):
            return (rows, removed)
        case KeysOf(parts=parts):
            return tuple(part for part, _ in parts)
    assert_never(node)


def _names(scan: Scan) -> str:
    return ", ".join(c.name for c in scan.columns)
