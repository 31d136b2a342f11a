"""How the stored table is brought up to date, decided from the shape of the query alone.

by weight    the change of the query is added to the table
by key       the table's rows of the touched keys are replaced: no old version is read, and values that
             two evaluations may compute differently are compared with what is stored
recompute    the query is evaluated and its difference to the table applied
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from spark_trickle.algebra.relations import NEW, At, KeysOf, Loop, Node, PerKey, Relation, RowWise, Whole
from spark_trickle.algebra.repeatable import repeatability
from spark_trickle.algebra.restrict import matching
from spark_trickle.algebra.traverse import sources_of, walk
from spark_trickle.incremental.differentiate import differentiate
from spark_trickle.incremental.rules import per_key


@dataclass(frozen=True, slots=True)
class ByWeight:
    """Add `change` to the table."""

    change: Node


@dataclass(frozen=True, slots=True)
class ByKey:
    """Replace the table's rows whose `columns` are in `keys` by `new`."""

    keys: KeysOf
    columns: tuple[int, ...]
    new: Node


@dataclass(frozen=True, slots=True)
class Recompute:
    """Evaluate the query at the new version; `reason` names the operator in the way."""

    query: Node
    reason: str


Maintenance = ByWeight | ByKey | Recompute


def maintain(root: Relation) -> Maintenance:
    """The cheapest way that is exact for this query."""
    top = _below_row_wise(root)
    if isinstance(top, Whole | Loop) and sources_of(top):
        return Recompute(At(root, NEW), _needs_everything(top))
    doubtful = repeatability(root)
    if doubtful.rows:
        reason = f"{doubtful.rows}, which two evaluations may compute differently"
        return Recompute(At(root, NEW), reason)
    if isinstance(top, PerKey):
        columns = visible_keys(root, top)
        if columns is not None:
            return _by_key(root, top, columns)
    if not doubtful.columns:
        return ByWeight(differentiate(root))
    stable = tuple(c.id for c in root.columns if c.id not in doubtful.columns and c.comparable)
    if not stable:
        names = ", ".join(f"`{c.name}`" for c in root.columns)
        return Recompute(At(root, NEW), f"two evaluations may compute {names} differently")
    keys = KeysOf(((differentiate(root), stable),))
    return ByKey(keys, stable, matching(root, NEW, stable, keys))


def hidden_keys(root: Relation) -> tuple[int, ...]:
    """Key columns worth storing beside the query's own: without them the touched rows cannot be found."""
    top = _below_row_wise(root)
    doubtful = repeatability(root)
    if not isinstance(top, PerKey) or not doubtful.columns or doubtful.rows or len(top.children) > 1:
        return ()
    visible = _visible(root, top)
    return tuple(key for key in top.keys[0] if key not in visible)


def recomputed_parts(root: Relation) -> list[Whole | Loop]:
    """The relations that are evaluated in full whenever something below them changes."""
    return [node for node in walk(root) if isinstance(node, Whole | Loop) and sources_of(node)]


def visible_keys(root: Relation, top: PerKey) -> tuple[int, ...] | None:
    """The output columns that carry the keys, in order; None when one is not part of the output."""
    visible = _visible(root, top)
    if any(key not in visible for key in top.keys[0]):
        return None
    return tuple(visible[key] for key in top.keys[0])


def _by_key(root: Relation, top: PerKey, columns: tuple[int, ...]) -> ByKey:
    memo: dict[int, Node] = {}

    def change_of(node: Node) -> Node:
        if id(node) not in memo:
            memo[id(node)] = differentiate(node)  # type: ignore[arg-type]
        return memo[id(node)]

    keys = per_key.touched_keys(top, change_of)
    restricted = per_key.restricted(top, NEW, keys)
    return ByKey(keys, columns, _rebuild(root, top, lambda: restricted))


def _rebuild(node: Node, top: PerKey, new_top: Callable[[], Node]) -> Node:
    if node is top:
        return new_top()
    assert isinstance(node, RowWise)  # noqa: S101 - `top` was found through nothing else
    return replace(node, child=_rebuild(node.child, top, new_top))


def _visible(root: Relation, top: PerKey) -> dict[int, int]:
    """Key column of `top` → output column of `root` that carries it unchanged."""
    found = {c.id: c.id for c in root.columns}
    node: Node = root
    while isinstance(node, RowWise):
        passes = node.operator.passes
        found = {out: passes[inner] for out, inner in found.items() if inner in passes}
        node = node.child
    passes = top.operator.passes
    return {passes[inner]: out for out, inner in reversed(found.items()) if inner in passes}


def _below_row_wise(node: Node) -> Node:
    while isinstance(node, RowWise):
        node = node.child
    return node


def _needs_everything(node: Whole | Loop) -> str:
    return node.reason if isinstance(node, Whole) else f"{node.operator.label} is a recursive query"
