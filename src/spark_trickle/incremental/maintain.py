"""How the stored table is brought up to date, decided from the shape of the query alone.

by weight    the change of the query is added to the table
by key       the table's rows of the touched keys are replaced: no old version is read, and values that
             two evaluations may compute differently are compared with what is stored
totals       the totals of an aggregate's change are added to the stored ones: no row of the input is read again
top rows     the change is merged into the stored first rows; more is read only when they do not suffice
iterate      a recursive query: what the change derives from the stored rows, and what that derives, and so on
recompute    the query is evaluated and its difference to the table applied
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

from spark_trickle.algebra.relations import (
    NEW,
    At,
    Changes,
    KeysOf,
    Loop,
    Node,
    PerKey,
    Relation,
    RowWise,
    Scan,
    Top,
    Whole,
)
from spark_trickle.algebra.repeatable import repeatability
from spark_trickle.algebra.restrict import matching
from spark_trickle.algebra.traverse import below_row_wise, sources_of, walk
from spark_trickle.incremental.differentiate import differentiate
from spark_trickle.incremental.rules import per_key
from spark_trickle.incremental.rules.touched import Touched, at_least, coarsely, exactly


@dataclass(frozen=True, slots=True)
class ByWeight:
    """Add `change` to the table."""

    change: Node


@dataclass(frozen=True, slots=True)
class ByKey:
    """Replace the table's rows whose `columns` are in `keys` by `new`.

    `coarsely` is the same by fewer columns, whose keys are found by reading less: the better way, unless each of these
    keys has many rows.
    """

    keys: KeysOf
    columns: tuple[int, ...]
    new: Node
    coarsely: ByKey | None = None


@dataclass(frozen=True, slots=True)
class Totals:
    """Add the totals of `change`, of the rows that `top` aggregates, to those stored in `places`.

    `columns` are the output columns that carry the groups. Groups whose totals do not tell are evaluated again as
    `new`; a refresh provides them as the key set `again`, which only serves as a name for it here. With
    `hides`, a group that the table does not hold may exist all the same.
    """

    top: PerKey | Whole
    change: Node
    columns: tuple[int, ...]
    places: tuple[int, ...]
    again: KeysOf
    new: Node
    hides: bool


@dataclass(frozen=True, slots=True)
class TopRows:
    """Merge what changes among the rows that compete into those stored; output columns that carry them in `places`.

    By key, the stored rows of the touched keys compete no longer; others of these keys lay beyond the stored ones.
    """

    top: Top
    competing: ByWeight | ByKey
    places: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Iterate:
    """R = base + step(R): ΔR = Δbase + (step_new − step_old)(R_old) + step_new(ΔR), summed until nothing is added.

    `step` is differentiated in its sources and in `itself`; `result` is the change of the table from
    that of R, given as changes of `itself`; `places` are the output columns that carry R.
    `most_levels` is the query's own limit.
    """

    base: Node
    step: Node
    itself: str
    result: Node
    places: tuple[int, ...]
    most_levels: int


@dataclass(frozen=True, slots=True)
class Recompute:
    """Evaluate the query at the new version; `reason` names the operator in the way."""

    query: Node
    reason: str
    position: tuple[int, int] | None = None


Maintenance = ByWeight | ByKey | Totals | TopRows | Iterate | Recompute
_Replacing = Callable[[Relation, PerKey, tuple[int, ...], Callable[[Node], Node]], ByKey]


def maintain(root: Relation, totals: tuple[int, ...] = (), only_real_pairs: bool = False) -> Maintenance:
    """The cheapest way that is exact for this query; with `only_real_pairs` see `differentiate`.

    `totals` are the columns of the root's aggregate that hold running totals.
    """
    change_of = partial(differentiate, only_real_pairs=only_real_pairs)
    replaced = _by_exact_key if only_real_pairs else _by_key
    top = below_row_wise(root)
    if totals and isinstance(top, PerKey | Whole):
        return _continued(root, top, totals, change_of)
    if isinstance(top, Whole | Top | Loop) and sources_of(top):
        return _from_stored(root, top, change_of, replaced) or Recompute(
            At(root, NEW), reason_of(top), top.operator.position
        )
    if isinstance(top, PerKey) and _replaceable(top):
        columns = visible_keys(root, top)
        if columns is not None:
            return replaced(root, top, columns, _remembered(change_of))
    doubtful = repeatability(root)
    if doubtful.rows:
        reason = f"{doubtful.rows}, which two evaluations may compute differently"
        return Recompute(At(root, NEW), reason, doubtful.position)
    if not doubtful.columns:
        return ByWeight(change_of(root))
    stable = tuple(c.id for c in root.columns if c.id not in doubtful.columns and c.comparable)
    if not stable:
        names = ", ".join(f"`{c.name}`" for c in root.columns)
        return Recompute(At(root, NEW), f"two evaluations may compute {names} differently")
    keys = KeysOf(((change_of(root), stable),))
    return ByKey(keys, stable, matching(root, NEW, stable, keys))


def hidden_columns(root: Relation) -> tuple[int, ...]:
    """Columns worth storing beside the query's own: without them the stored rows could not be continued from."""
    top = below_row_wise(root)
    if isinstance(top, Top | Loop):
        shown = _visible(root, top)
        return tuple(c.id for c in top.columns if c.id not in shown) if _continues(root, top) else ()
    doubtful = repeatability(root)
    if not isinstance(top, PerKey) or len(top.children) > 1 or not _replaceable(top):
        return ()
    if not doubtful.columns and not doubtful.rows:
        return ()
    visible = _visible(root, top)
    return tuple(key for key in top.keys[0] if key not in visible)


def aggregate_to_continue(root: Relation) -> PerKey | Whole | None:
    """The root's only input below projections and filters, if totals of it can be trusted to stay what they were."""
    node: Node = root
    while isinstance(node, RowWise):
        if not (node.operator.keeps_rows or node.operator.drops_rows):
            return None
        node = node.child
    if not isinstance(node, PerKey | Whole) or len(node.children) != 1 or not sources_of(node):
        return None
    found = repeatability(node.children[0])
    read = node.operator.decides.union(*node.operator.reads.values())
    return None if found.rows or found.columns & read else node


def keys_to_carry(root: Relation, top: PerKey | Whole) -> tuple[int, ...]:
    """The keys of the root's aggregate that the output does not show."""
    keys = top.keys[0] if isinstance(top, PerKey) else ()
    visible = _visible(root, top)
    return tuple(key for key in keys if key not in visible)


def recomputed_parts(root: Relation, maintenance: Maintenance) -> list[Whole | Top | Loop]:
    """The relations that are evaluated in full whenever something below them changes."""
    parts = [node for node in walk(root) if isinstance(node, Whole | Top | Loop) and sources_of(node)]
    kept = below_row_wise(root) if isinstance(maintenance, TopRows | Iterate | Totals) else None
    return [part for part in parts if part is not kept]


def reason_of(node: Whole | Top | Loop) -> str:
    """Why the relation is evaluated in full."""
    match node:
        case Whole(reason=reason):
            return reason
        case Top(limit=limit):
            return "OFFSET without LIMIT needs all rows" if limit is None else "LIMIT needs all rows"
        case Loop(reason=reason):
            return reason or "a recursive query is run again"


def _continues(root: Relation, top: Top | Loop) -> bool:
    """Each stored row stands for one row of `top`, and comes out the same when it is derived again."""
    node: Node = root
    while node is not top:
        assert isinstance(node, RowWise)  # noqa: S101 - `top` was found through nothing else
        if not node.operator.keeps_rows:
            return False
        node = node.child
    parts: tuple[Node, ...] = (top.child,) if isinstance(top, Top) and top.limit is not None else ()
    if isinstance(top, Loop) and top.recursion:
        parts = (top.recursion.base, top.recursion.step)
    found = [repeatability(part) for part in (root, *parts)]
    return bool(parts) and not any(r.columns or r.rows for r in found)


def _from_stored(
    root: Relation, top: Whole | Top | Loop, change_of: Callable[[Relation], Node], replaced: _Replacing
) -> Maintenance | None:
    """A way that needs the stored rows instead of all input rows, if the table holds enough of them."""
    if isinstance(top, Whole) or not _continues(root, top):
        return None
    shown = _visible(root, top)
    if any(c.id not in shown for c in top.columns):
        return None
    places = tuple(shown[c.id] for c in top.columns)
    if isinstance(top, Top):
        return TopRows(top, _competing(top, change_of, replaced), places)
    assert top.recursion is not None  # noqa: S101 - _continues asks for it
    base, step = top.recursion.base, top.recursion.step
    whole = Changes(Scan(top.columns, top.recursion.itself, top.operator))
    return Iterate(
        change_of(base),
        change_of(step),
        top.recursion.itself,
        _rebuild(root, top, whole),
        places,
        top.recursion.most_levels,
    )


def _competing(top: Top, change_of: Callable[[Relation], Node], replaced: _Replacing) -> ByWeight | ByKey:
    """By key where that is possible: no old version is read. With an OFFSET, rows before the stored ones count too."""
    groups = below_row_wise(top.child)
    if not top.offset and isinstance(groups, PerKey) and _replaceable(groups):
        columns = visible_keys(top.child, groups)
        if columns is not None:
            return replaced(top.child, groups, columns, _remembered(change_of))
    return ByWeight(change_of(top.child))


def _continued(
    root: Relation, top: PerKey | Whole, totals: tuple[int, ...], change_of: Callable[[Relation], Node]
) -> Totals:
    (child,) = top.children
    again = KeysOf(())
    shown = _output_of(root)
    hides, node = False, root
    while isinstance(node, RowWise):
        hides = hides or not node.operator.keeps_rows
        node = node.child  # type: ignore[assignment]
    places = tuple(shown[column] for column in totals)
    change = change_of(child)  # type: ignore[arg-type]
    if isinstance(top, Whole):
        return Totals(top, change, (), places, again, At(root, NEW), hides)
    columns = visible_keys(root, top)
    assert columns is not None  # noqa: S101 - the keys were carried
    every = tuple(range(len(columns)))
    new = _rebuild(root, top, per_key.restricted(top, NEW, Touched(again, every)))
    return Totals(top, change, columns, places, again, new, hides)


def visible_keys(root: Relation, top: PerKey) -> tuple[int, ...] | None:
    """The output columns that carry the keys, in order; None when one is not part of the output."""
    visible = _visible(root, top)
    if any(key not in visible for key in top.keys[0]):
        return None
    return tuple(visible[key] for key in top.keys[0])


def _by_key(
    root: Relation, top: PerKey, columns: tuple[int, ...], change_of: Callable[[Node], Node]
) -> ByKey:
    coarse = coarsely(top, change_of)
    found = _replacing(root, top, columns, at_least(top, change_of))
    return found if coarse is None else replace(found, coarsely=_replacing(root, top, columns, coarse))


def _by_exact_key(
    root: Relation, top: PerKey, columns: tuple[int, ...], change_of: Callable[[Node], Node]
) -> ByKey:
    return _replacing(root, top, columns, exactly(top, change_of))


def _replacing(root: Relation, top: PerKey, columns: tuple[int, ...], touched: Touched) -> ByKey:
    restricted = per_key.restricted(top, NEW, touched)
    return ByKey(touched.keys, touched.of(columns), _rebuild(root, top, restricted))


def _remembered(differentiate: Callable[[Relation], Node]) -> Callable[[Node], Node]:
    """The same change for the same relation."""
    memo: dict[int, Node] = {}

    def change_of(node: Node) -> Node:
        if id(node) not in memo:
            memo[id(node)] = differentiate(node)  # type: ignore[arg-type]
        return memo[id(node)]

    return change_of


def _replaceable(top: PerKey) -> bool:
    """The rows of one key can be replaced by those of another evaluation, whatever that computes differently.

    Only what goes in must be certain, and the keys. Above, even a filter on an unrepeatable value is fine,
    such as `row_number() = 1` where ties are left open: all rows of a key come from one evaluation.
    """
    inputs = zip(map(repeatability, top.children), top.keys, strict=True)
    return not any(found.rows or found.columns & set(keys) for found, keys in inputs)


def _rebuild(node: Node, top: Node, other: Node) -> Node:
    """The projections and filters above `top`, over another node."""
    if node is top:
        return other
    assert isinstance(node, RowWise)  # noqa: S101 - `top` was found through nothing else
    return replace(node, child=_rebuild(node.child, top, other))


def _visible(root: Relation, top: PerKey | Whole | Top | Loop) -> dict[int, int]:
    """Column of `top`, or for a PerKey of its input, → output column of `root` that carries it unchanged."""
    shown = _output_of(root)
    if not isinstance(top, PerKey):
        return shown
    passes = top.operator.passes
    return {passes[inner]: out for inner, out in shown.items() if inner in passes}


def _output_of(root: Relation) -> dict[int, int]:
    """Column of the first relation below projections and filters → output column that carries it unchanged."""
    found = {c.id: c.id for c in root.columns}
    node: Node = root
    while isinstance(node, RowWise):
        passes = node.operator.passes
        found = {out: passes[inner] for out, inner in found.items() if inner in passes}
        node = node.child
    return {inner: out for out, inner in reversed(found.items())}
