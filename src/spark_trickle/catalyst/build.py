"""Relation → plan: the query's own operators over any version, change or restriction of the inputs.

Every built plan has the column ids of the operator it stands for, so the query's expressions work on it
unchanged. A change has one more column, the weight, at the end.
"""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass
from functools import partial
from typing import assert_never

from pyspark.sql import DataFrame

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
from spark_trickle.algebra.shared import Sharing, parts_of
from spark_trickle.catalyst import held
from spark_trickle.catalyst.holder import Holder
from spark_trickle.catalyst.later import later
from spark_trickle.catalyst.leaves import Leaves, Reader
from spark_trickle.catalyst.plan import (
    Attribute,
    Expression,
    Plan,
    Planner,
    column_ids,
    items,
    kind_of,
    output,
)
from spark_trickle.catalyst.time import clock_column
from spark_trickle.names import WEIGHT


@dataclass(frozen=True)
class Built:
    """A plan, and whether its last column is a weight."""

    plan: Plan
    weighted: bool


class Builder:
    """Builds the plans of one refresh. Shared nodes are built once; key sets are evaluated once."""

    def __init__(self, planner: Planner, reader: Reader, holder: Holder) -> None:
        self._planner = planner
        self._holder = holder
        self._leaves = Leaves(planner, reader, holder)
        self._built: dict[int, Built | None] = {}
        self._attributes: dict[int, Attribute] = {}
        self._keys: dict[int, Plan | None] = {}
        self._at_hand_already: dict[int, bool] = {}
        self._sharing = Sharing()
        self._alive: list[Node | KeysOf | Plan] = []

    @property
    def changed_rows(self) -> int:
        """Netted change rows read from the sources so far."""
        return self._leaves.changed_rows

    @property
    def repeats(self) -> bool:
        """Changes that the driver holds count as more rows than it would hold one by one."""
        return self._leaves.copies > self._holder.local_rows

    def plan(self, node: Node) -> Plan | None:
        """The plan of a relation or a change, under the query's own ids; None when it is empty without looking.

        A frame of it may have other ids: Spark renews those of relations that occur twice.
        """
        self._sharing.add(node)
        built = self._build(node)
        return None if built is None else built.plan

    def change(self, node: Node) -> DataFrame | None:
        """A change as a frame, weight last; None when it is empty without looking."""
        plan = self.plan(node)
        return None if plan is None else self._planner.frame(plan)

    def rows(self, node: Node) -> DataFrame | None:
        """A relation as a frame."""
        return self.change(node)

    def _build(self, node: Node) -> Built | None:
        if id(node) not in self._built:
            self._alive.append(node)  # ids are only unique among living objects
            self._built[id(node)] = self._visit(node)
        return self._built[id(node)]

    def _visit(self, node: Node) -> Built | None:
        match node:
            case Changes(scan=scan):
                change = self._leaves.change(scan)
                return None if change is None else Built(change, True)
            case At(relation=relation, version=version):
                return Built(self._leaves.at(relation, version), False)
            case RowWise(child=child):
                return self._row_wise(node, self._build(child))
            case Concat(children=children):
                return self._concat(node, [self._build(child) for child in children])
            case InnerJoin(left=left, right=right) | LookupJoin(left=left, right=right):
                return self._join(node, self._build(left), self._build(right))
            case PerKey(children=children):
                parts = [self._build(child) for child in children]
                if any(part is None for part in parts):
                    return None
                plans = [part.plan for part in parts if part is not None]
                return Built(self._planner.with_children(node.operator.payload, plans), False)
            case Held(child=child, keys=keys):
                rows = self._build(child)
                return self._at_hand(rows, keys) if self._sharing.is_shared(node) else rows
            case Matching(child=child, keys=keys, on=on, needed=needed):
                if not needed and not self._are_few(keys):
                    return self._build(child)
                found = self._looked_up(node)
                if found is not None:
                    return found
                rows, by_page = self._reachable(child, keys, on), self._by_page(child, keys, on)
                narrow = self._matching if needed else self._narrowed
                return narrow(rows, keys, on, by_page)
            case Partners(left=left, change=change):
                return self._partners(self._build(left), self._build(change), node)
            case Signed(child=child, sign=sign):
                return self._signed(self._build(child), sign)
            case Sum(changes=changes):
                plans = [b.plan for b in map(self._build, changes) if b is not None]
                return Built(self._planner.union(plans), True) if plans else None
            case Net(change=change):
                return self._net(self._build(change))
            case Part(change=change, sign=sign):
                return self._part(self._build(change), sign)
            case Kept(rows=rows, removed=removed):
                return self._kept(self._build(rows), self._build(removed))
            case Scan() | Whole() | Top() | Loop():
                raise TypeError(f"{type(node).__name__} needs a version: wrap it in At")
        assert_never(node)

    # Operators

    def _row_wise(self, node: RowWise, child: Built | None) -> Built | None:
        if child is None:
            return None
        payload = node.operator.payload
        if not child.weighted:
            return Built(self._planner.with_children(payload, [child.plan]), False)
        weight = later(child.plan).output().last()
        kind = kind_of(payload)
        if kind == "Project":
            columns = later(payload).projectList().appended(weight)
            return Built(self._planner.logical.Project(columns, child.plan), True)
        if kind == "Expand":
            return Built(self._expand(payload, child.plan, weight), True)
        applied = self._planner.with_children(payload, [child.plan])
        if kind in {"Filter", "Sort"}:
            return Built(applied, True)
        return Built(self._planner.project([*output(payload), weight], applied), True)

    def _expand(self, payload: Plan, child: Plan, weight: Attribute) -> Plan:
        planner = self._planner
        projections = [planner.seq([*items(p), weight]) for p in items(payload.projections())]
        outer = planner.alias(weight, WEIGHT).toAttribute()
        columns = planner.seq([*output(payload), outer])
        return planner.logical.Expand(planner.seq(projections), columns, child)

    def _concat(self, node: Concat, children: list[Built | None]) -> Built | None:
        present = [child for child in children if child is not None]
        if not present:
            return None
        targets = output(node.operator.payload)
        weighted = present[0].weighted
        plans = [self._planner.readdress(child.plan, targets, weighted) for child in present]
        return Built(self._planner.union(plans), weighted)

    def _join(self, node: InnerJoin | LookupJoin, left: Built | None, right: Built | None) -> Built | None:
        if left is None or right is None:
            return None
        payload = node.operator.payload
        if clock_column(payload) is not None:
            return self._with_time(node, left, right)
        joined = self._planner.with_children(payload, [left.plan, right.plan])
        if isinstance(node, InnerJoin) and self._are_at_hand(node):
            # Spark forgets that both sides lie in one partition where their keys are not among the columns that go on.
            joined = self._planner.in_one(joined)
        if not left.weighted:
            return Built(joined, right.weighted)
        place = later(left.plan).output().size() - 1
        if right.weighted:
            weight = self._product(later(left.plan).output().last(), later(right.plan).output().last())
            return Built(self._planner.project([*output(payload), weight], joined), True)
        last = later(joined).output().size() - 1 == place
        return Built(joined if last else self._planner.last_to_end(joined, place), True)

    def _are_at_hand(self, node: Node | KeysOf) -> bool:
        """All rows of it come from relations that the driver holds."""
        if id(node) not in self._at_hand_already:
            self._at_hand_already[id(node)] = self._look_at_hand(node)
        return self._at_hand_already[id(node)]

    def _look_at_hand(self, node: Node | KeysOf) -> bool:
        if isinstance(node, KeysOf):
            return id(node) in self._keys and held.is_held(self._keys[id(node)])
        # A source that is read by keys was never built as a whole, and is not at hand.
        if isinstance(node, Changes | At | Matching | Held) and id(node) in self._built:
            built = self._built[id(node)]
            if built is None or held.is_held(built.plan):
                return True
        parts = list(parts_of(node))
        return bool(parts) and all(map(self._are_at_hand, parts))

    def _product(self, one: Expression, other: Expression) -> Expression:
        return self._planner.alias(self._planner.times(one, other), WEIGHT)

    def _with_time(self, node: InnerJoin | LookupJoin, left: Built, right: Built) -> Built:
        """A join with the clock; with a clock that stands still, its time is a literal that filters can use."""
        planner, wanted = self._planner, output(node.operator.payload)
        weight = [output(b.plan)[-1] for b in (left, right) if b.weighted]
        if not right.weighted and kind_of(right.plan) == "Project":
            now = items(right.plan.projectList())
            plan = planner.project([*output(left.plan), *now], left.plan)
        else:
            plan = planner.join(left.plan, right.plan, "Inner", None)
        return Built(planner.project([*wanted, *weight], plan), bool(weight))

    def _looked_up(self, node: Matching) -> Built | None:
        """Rows of a source that are found by their keys without a Spark job, held by the driver; None: otherwise."""
        rows, key_set = node.child, self.key_set(node.keys)
        if not isinstance(rows, At) or not isinstance(rows.relation, Scan) or key_set is None:
            return None
        own = {c.id for c in rows.relation.columns}
        values = {c: self._holder.values(key_set, i) for i, c in node.on if c in own}
        known = {column: found for column, found in values.items() if found is not None}
        plan = self._leaves.looked_up(rows.relation, rows.version, known) if known else None
        if plan is None:
            return None
        if node.needed and (len(known) < len(node.on) or len(node.on) > 1):
            return self._matching(Built(plan, False), node.keys, node.on, frozenset())
        return Built(plan, False)

    def _reachable(self, rows: Node, keys: KeysOf, on: tuple[tuple[int, int], ...]) -> Built | None:
        """The rows; of a source only those in files that the keys can reach."""
        key_set = self.key_set(keys)
        if not isinstance(rows, At) or not isinstance(rows.relation, Scan) or key_set is None:
            return self._build(rows)
        scan, names = rows.relation, {c.id: c.name for c in rows.columns}
        within = {names[c]: self._holder.ranges(key_set, i) for i, c in on if c in names}
        if not any(within.values()):
            return self._build(rows)
        return Built(self._leaves.scan(scan, rows.version, within), False)

    def _by_page(self, rows: Node, keys: KeysOf, on: tuple[tuple[int, int], ...]) -> Set[int]:
        """The places of the keys by which pages of a source's files are worth choosing."""
        key_set = self.key_set(keys)
        if not isinstance(rows, At) or not isinstance(rows.relation, Scan) or key_set is None:
            return frozenset()
        names = {c.id: c.name for c in rows.columns}
        prunes = partial(self._leaves.prunes_pages, rows.relation, rows.version)
        return self._holder.by_page(key_set, {i: names[c] for i, c in on if c in names}, prunes)

    def _matching(
        self, child: Built | None, keys: KeysOf, on: tuple[tuple[int, int], ...], by_page: Set[int]
    ) -> Built | None:
        if child is None:
            return None
        key_set = self.key_set(keys)
        if key_set is None:
            return None
        columns = [(i, self._attribute(child.plan, c)) for i, c in on]
        return Built(self._holder.semi_join(child.plan, columns, key_set, by_page), child.weighted)

    def _narrowed(
        self, rows: Built | None, keys: KeysOf, on: tuple[tuple[int, int], ...], by_page: Set[int]
    ) -> Built | None:
        """The same, for a side of a join: without keys it has no rows, which is not the same as no such side."""
        found = self._matching(rows, keys, on, by_page)
        if found is None and rows is not None:
            return Built(self._planner.empty(rows.plan.output()), rows.weighted)
        return found

    def _are_few(self, keys: KeysOf) -> bool:
        """The key set is held by the driver, or empty."""
        return held.is_held(self.key_set(keys))

    def _at_hand(self, rows: Built | None, keys: KeysOf | None) -> Built | None:
        """Few rows as a relation of the driver. Many stay a plan: trying costs as much as evaluating it."""
        if rows is None or self._leaves.many or (keys is not None and not self._are_few(keys)):
            return rows
        few = self._holder.on_driver(rows.plan)
        if few is None:
            return rows
        if rows.weighted and not held.count(few):
            return None
        return Built(self._planner.under_ids(few, rows.plan.output()), rows.weighted)

    def _attribute(self, plan: Plan, column: int) -> Attribute:
        """A column of a plan by its id, which means the same in every plan of a definition."""
        if column not in self._attributes:
            columns = output(plan)
            self._attributes.update(zip(column_ids(columns), columns, strict=True))
        return self._attributes[column]

    def _partners(self, left: Built | None, change: Built | None, node: Partners) -> Built | None:
        if left is None or change is None:
            return None
        if node.swayed is not None:
            return self._swayed(left, node.swayed, node.sides)
        condition = node.join.operator.payload.condition()  # type: ignore[attr-defined]
        met = condition.get() if condition.isDefined() else None
        if met is None and held.is_held(change.plan) and held.count(change.plan):
            return left  # every row meets every other
        return Built(self._planner.join(left.plan, change.plan, "LeftSemi", met), left.weighted)

    def _swayed(self, left: Built, decision: RowWise, sides: tuple[Node, ...]) -> Built:
        """The rows about which a filter decides otherwise with the one value than with the other; all, if unknown."""
        planner, own = self._planner, output(left.plan)
        new, old = (self._constants(self._build(side)) for side in sides)
        if new is None or old is None:
            return left
        condition = planner.is_true(decision.operator.payload.condition())  # type: ignore[attr-defined]
        now = planner.alias(condition, "__st_now")
        plan = planner.project([*own, now], planner.project([*own, *new], left.plan))
        plan = planner.project([*own, now.toAttribute(), *old], plan)
        plan = planner.filter(planner.unequal(condition, now.toAttribute()), plan)
        return Built(planner.project(own, plan), left.weighted)

    def _constants(self, side: Built | None) -> list[Expression] | None:
        """The columns of the only row as constants; NULL where there is no row. None: nobody knows them yet."""
        if side is None or not held.is_held(side.plan) or held.count(side.plan) > 1:
            return None
        return held.constants(self._planner, side.plan)

    def _signed(self, child: Built | None, sign: int) -> Built | None:
        if child is None:
            return None
        columns, factor = output(child.plan), self._planner.literal(sign)
        weight = (
            self._product(columns.pop(), factor) if child.weighted else self._planner.alias(factor, WEIGHT)
        )
        return Built(self._planner.project([*columns, weight], child.plan), True)

    def _part(self, change: Built | None, sign: int) -> Built | None:
        if change is None:
            return None
        weight, none = output(change.plan)[-1], self._planner.literal(0)
        smaller, larger = (none, weight) if sign > 0 else (weight, none)
        return Built(self._planner.filter(self._planner.less(smaller, larger), change.plan), True)

    def _kept(self, rows: Built | None, removed: Built | None) -> Built | None:
        before = self._signed(rows, +1)
        if before is None or removed is None:
            return before
        return self._net(Built(self._planner.union([before.plan, removed.plan]), True))

    def _net(self, child: Built | None) -> Built | None:
        if child is None:
            return None
        change = self._holder.netted(self._planner.frame(child.plan))
        if change is None:
            return None
        attributes = later(child.plan).output().init().appended(later(change).output().last())
        found = self._planner.under_ids(change, attributes)
        return Built(found or self._planner.readdress(change, output(child.plan)[:-1], weight=True), True)

    def key_set(self, keys: KeysOf) -> Plan | None:
        """A key set, evaluated once; None when it is empty."""
        if id(keys) not in self._keys:
            self._alive.append(keys)
            self._sharing.add(keys)
            self._keys[id(keys)] = self._evaluate_keys(keys)
        return self._keys[id(keys)]

    def provide(self, keys: KeysOf, key_set: Plan) -> None:
        """Rows evaluated elsewhere as a key set."""
        self._alive.append(keys)
        self._keys[id(keys)] = key_set

    def _evaluate_keys(self, keys: KeysOf) -> Plan | None:
        planner = self._planner
        parts = []
        for part, on in keys.parts:
            built = self._build(part)
            if built is None:
                continue
            columns = [planner.alias(self._attribute(built.plan, c), f"k{i}") for i, c in enumerate(on)]
            parts.append(planner.project(columns, built.plan))
        return self._holder.keys(parts)
