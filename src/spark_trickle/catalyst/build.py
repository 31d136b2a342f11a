"""Relation → plan: the query's own operators over any version, change or restriction of the inputs.

Every built plan has the column ids of the operator it stands for, so the query's expressions work on it
unchanged. A change has one more column, the weight, at the end.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol, assert_never

from pyspark.sql import DataFrame

from spark_trickle.algebra.relations import (
    NEW,
    OLD,
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
    Relation,
    RowWise,
    Scan,
    Signed,
    Sum,
    Top,
    Version,
    Whole,
)
from spark_trickle.algebra.traverse import scans_of
from spark_trickle.catalyst import held
from spark_trickle.catalyst.holder import Holder
from spark_trickle.catalyst.plan import (
    WEIGHT,
    Attribute,
    Expression,
    Plan,
    Planner,
    column_id,
    items,
    kind_of,
    output,
)
from spark_trickle.catalyst.time import CLOCK, at_instant, clock_column


class Reader(Protocol):
    """Where the rows of a source come from."""

    def rows(self, source: str, version: Version, columns: Sequence[str]) -> DataFrame:
        """The source's columns at one version."""
        ...

    def changes(self, source: str, columns: Sequence[str]) -> DataFrame | None:
        """The netted change of these columns, weight last; None when there is none."""
        ...

    def table(self, source: str, version: Version) -> Plan | None:
        """The source with all its columns as one leaf of a plan, where it is a table."""
        ...

    def instant(self, version: Version) -> datetime:
        """The time that the clock shows at one version."""
        ...


@dataclass(frozen=True)
class Built:
    """A plan, and whether its last column is a weight."""

    plan: Plan
    weighted: bool


class Builder:
    """Builds the plans of one refresh. Shared nodes are built once; key sets are evaluated once."""

    def __init__(self, planner: Planner, reader: Reader, holder: Holder) -> None:
        self._planner = planner
        self._reader = reader
        self._holder = holder
        self._built: dict[int, Built | None] = {}
        self._versions: dict[tuple[int, Version], Plan] = {}
        self._attributes: dict[int, Attribute] = {}
        self._keys: dict[int, Plan | None] = {}
        self._changes: dict[tuple[str, tuple[str, ...]], Plan | None] = {}
        self._many = False
        """A source has changed in more rows than the driver holds."""
        self.changed_rows = 0
        """Netted change rows read from the sources so far."""
        self._alive: list[Node | KeysOf | Plan] = []

    def plan(self, node: Node) -> Plan | None:
        """The plan of a relation or a change, under the query's own ids; None when it is empty without looking.

        A frame of it may have other ids: Spark renews those of relations that occur twice.
        """
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
                return self._source_change(scan)
            case At(relation=relation, version=version):
                return Built(self._at(relation, version), False)
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
                return self._at_hand(self._build(child), keys)
            case Matching(child=child, keys=keys, on=on, needed=needed):
                rows = self._build(child)
                if needed:
                    return self._matching(rows, keys, on)
                return self._narrowed(rows, keys, on) if self._are_few(keys) else rows
            case Partners(left=left, change=change, join=join):
                return self._partners(self._build(left), self._build(change), join)
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

    # Leaves

    def _at(self, relation: Node, version: Version) -> Plan:
        if (id(relation), version) not in self._versions:
            self._alive.append(relation)
            self._versions[id(relation), version] = self._evaluated(relation, version)
        return self._versions[id(relation), version]

    def _evaluated(self, relation: Node, version: Version) -> Plan:
        assert isinstance(relation, Relation)  # noqa: S101 - a change has no version
        if isinstance(relation, Scan):
            return self._scan(relation, version)
        scans = list(scans_of(relation))
        replaced = [(s.operator.payload, self._at(s, version)) for s in scans if s.source != CLOCK]
        plan = self._planner.replace_nodes(relation.operator.payload, replaced)
        if any(s.source == CLOCK for s in scans):
            plan = at_instant(self._planner, plan, self._reader.instant(version))
        return plan

    def _scan(self, scan: Scan, version: Version) -> Plan:
        if scan.source == CLOCK:
            return self._planner.project([self._time(scan, version)], self._planner.one_row())
        table, leaf = self._reader.table(scan.source, version), scan.operator.payload
        if table is not None and table.schema().equals(leaf.schema()):  # type: ignore[attr-defined]
            found = self._planner.under_ids(table, leaf.output())  # type: ignore[attr-defined]
            if found is not None:
                return found
        frame = self._reader.rows(scan.source, version, [c.name for c in scan.columns])
        return self._adopt(scan, self._planner.analyzed(frame), weighted=False)

    def _time(self, clock: Scan, version: Version) -> Expression:
        now = clock_column(clock.operator.payload)
        assert now is not None  # noqa: S101 - that is how the clock was found
        return self._planner.alias(
            self._planner.timestamp(self._reader.instant(version)), now.name(), now.exprId()
        )

    def _clock_change(self, scan: Scan) -> Built | None:
        """One row with the old time taken away and the new one added."""
        if self._reader.instant(OLD) == self._reader.instant(NEW):
            return None
        planner = self._planner
        ends = [
            planner.project(
                [self._time(scan, version), planner.alias(planner.literal(sign), WEIGHT)], planner.one_row()
            )
            for version, sign in ((OLD, -1), (NEW, +1))
        ]
        return Built(planner.union(ends), True)

    def _source_change(self, scan: Scan) -> Built | None:
        if scan.source == CLOCK:
            return self._clock_change(scan)
        wanted = tuple(c.name for c in scan.columns)
        key = (scan.source, wanted)
        if key not in self._changes:
            frame = self._reader.changes(scan.source, wanted)
            self._changes[key] = None if frame is None else self._holder.hold(frame)
            self.changed_rows += self._count(self._changes[key])
            self._many = self._many or not held.is_held(self._changes[key])
        plan = self._changes[key]
        return None if plan is None else Built(self._adopt(scan, plan, weighted=True), True)

    def _count(self, plan: Plan | None) -> int:
        if plan is None:
            return 0
        return held.count(plan) if held.is_held(plan) else self._planner.frame(plan).count()

    def _adopt(self, scan: Scan, plan: Plan, weighted: bool) -> Plan:
        """The plan under the ids of the leaf it stands for; columns nobody reads are NULL."""
        own = output(plan)
        found = {c.id: have for c, have in zip(scan.columns, own[: len(scan.columns)], strict=True)}
        columns = [
            self._planner.alias(
                found.get(column_id(want)) or self._planner.null(want.dataType()), want.name(), want.exprId()
            )
            for want in output(scan.operator.payload)
        ]
        if weighted:
            columns.append(self._planner.alias(own[-1], WEIGHT))
        return self._planner.project(columns, plan)

    # Operators

    def _row_wise(self, node: RowWise, child: Built | None) -> Built | None:
        if child is None:
            return None
        payload = node.operator.payload
        if not child.weighted:
            return Built(self._planner.with_children(payload, [child.plan]), False)
        weight = child.plan.output().last()
        kind = kind_of(payload)
        if kind == "Project":
            columns = payload.projectList().appended(weight)  # type: ignore[attr-defined]
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
        if not left.weighted:
            return Built(joined, right.weighted)
        place = left.plan.output().size() - 1
        if right.weighted:
            weight = self._product(left.plan.output().last(), right.plan.output().last())
            return Built(self._planner.project([*output(payload), weight], joined), True)
        last = joined.output().size() - 1 == place
        return Built(joined if last else self._planner.last_to_end(joined, place), True)

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

    def _matching(self, child: Built | None, keys: KeysOf, on: tuple[tuple[int, int], ...]) -> Built | None:
        if child is None:
            return None
        key_set = self.key_set(keys)
        if key_set is None:
            return None
        columns = [(i, self._attribute(child.plan, c)) for i, c in on]
        return Built(self._holder.semi_join(child.plan, columns, key_set), child.weighted)

    def _narrowed(self, rows: Built | None, keys: KeysOf, on: tuple[tuple[int, int], ...]) -> Built | None:
        """The same, for a side of a join: without keys it has no rows, which is not the same as no such side."""
        found = self._matching(rows, keys, on)
        if found is None and rows is not None:
            return Built(self._planner.empty(rows.plan.output()), rows.weighted)
        return found

    def _are_few(self, keys: KeysOf) -> bool:
        """The key set is held by the driver, or empty."""
        return held.is_held(self.key_set(keys))

    def _at_hand(self, rows: Built | None, keys: KeysOf | None) -> Built | None:
        """Few rows as a relation of the driver. Many stay a plan: trying costs as much as evaluating it."""
        if rows is None or self._many or (keys is not None and not self._are_few(keys)):
            return rows
        few = self._holder.on_driver(self._planner.frame(rows.plan))
        if few is None:
            return rows
        if rows.weighted and not held.count(few):
            return None
        return Built(self._planner.under_ids(few, rows.plan.output()), rows.weighted)

    def _attribute(self, plan: Plan, column: int) -> Attribute:
        """A column of a plan by its id, which means the same in every plan of a definition."""
        if column not in self._attributes:
            self._attributes.update((column_id(a), a) for a in output(plan))
        return self._attributes[column]

    def _partners(self, left: Built | None, change: Built | None, join: LookupJoin) -> Built | None:
        if left is None or change is None:
            return None
        condition = join.operator.payload.condition()  # type: ignore[attr-defined]
        met = condition.get() if condition.isDefined() else None
        return Built(self._planner.join(left.plan, change.plan, "LeftSemi", met), left.weighted)

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
        attributes = child.plan.output().init().appended(change.output().last())
        found = self._planner.under_ids(change, attributes)
        return Built(found or self._planner.readdress(change, output(child.plan)[:-1], weight=True), True)

    def key_set(self, keys: KeysOf) -> Plan | None:
        """A key set, evaluated once; None when it is empty."""
        if id(keys) not in self._keys:
            self._alive.append(keys)
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
