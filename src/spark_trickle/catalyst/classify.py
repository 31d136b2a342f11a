"""Plan → relation: which of the nine kinds each operator is, and what the calculus may know of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from spark_trickle.algebra.relations import (
    Column,
    Concat,
    InnerJoin,
    LookupJoin,
    Loop,
    Operator,
    PerKey,
    Recursion,
    Relation,
    RowWise,
    Scan,
    Top,
    Whole,
)
from spark_trickle.algebra.traverse import children_of, scans_of
from spark_trickle.catalyst.expressions import (
    equalities,
    expressions_in,
    is_collated,
    references,
    unrepeatable,
)
from spark_trickle.catalyst.growth import grows_with
from spark_trickle.catalyst.plan import (
    Attribute,
    Plan,
    Planner,
    children,
    column_id,
    distinct_keys,
    items,
    kind_of,
    output,
    walk,
)
from spark_trickle.catalyst.pushed import comparisons
from spark_trickle.catalyst.recursion import counts_levels, most_levels
from spark_trickle.catalyst.time import CLOCK, clock_column
from spark_trickle.catalyst.volatile import is_volatile

INNER = frozenset({"Inner", "Cross"})
LOOKUPS = frozenset({"LeftOuter", "LeftSemi", "LeftAnti", "LeftSingle", "ExistenceJoin"})

REASONS = {
    "Aggregate": "an aggregate without grouping keys needs all rows",
    "GlobalLimit": "LIMIT needs all rows",
    "LocalLimit": "LIMIT needs all rows",
    "Offset": "OFFSET needs all rows",
    "Window": "a window without PARTITION BY needs all rows",
}


@dataclass
class Classifier:
    """Classifies the plans of one definition; `source_of` tells which leaves are sources."""

    planner: Planner
    source_of: Callable[[Plan], str | None]
    used: frozenset[int] | None = None
    volatile: bool = False
    """The query has functions that give another value each time, in computed columns."""
    _comparable: dict[str, bool] = field(default_factory=dict)
    _loop: int | None = None
    """The recursive query whose step is being classified: its self-reference is then a source."""

    def relation(self, plan: Plan) -> Relation:
        if self._loop == _loop_of(plan):
            return Scan(self.columns(output(plan)), _loop_name(plan.loopId()), Operator(plan, "itself"))
        source = self._source(plan)
        if source is not None:
            return Scan(self._used_columns(plan), source, Operator(plan, f"Scan {source}"))
        now = clock_column(plan)
        if now is not None:
            return self._with_time(plan, now)
        handler = _HANDLERS.get(kind_of(plan))
        return handler(self, plan) if handler else self.whole(plan)

    def _source(self, plan: Plan) -> str | None:
        """A source, or one of which some columns are dropped at once."""
        return self.source_of(children(plan)[0]) if only_drops_columns(plan) else self.source_of(plan)

    def whole(self, plan: Plan, reason: str = "") -> Whole:
        inputs = tuple(self.relation(child) for child in children(plan))
        kind = kind_of(plan)
        why = reason or REASONS.get(kind, f"{kind} has no cheaper rule")
        decides = frozenset(c.id for child in inputs for c in child.columns)
        operator = self._operator(plan, decides=decides, doubtful=self._unrepeatable(plan))
        return Whole(self.columns(output(plan)), inputs, operator, why)

    def columns(self, attributes: Sequence[Attribute]) -> tuple[Column, ...]:
        return tuple(self._column(a) for a in attributes)

    # One row per operator

    def _row_wise(self, plan: Plan) -> Relation:
        (child,) = children(plan)
        kind = kind_of(plan)
        if kind == "Generate" and "Python" in kind_of(plan.generator()):
            return self.whole(plan, "a Python table function may keep state from row to row")
        passes: dict[int, int] = {column_id(a): column_id(a) for a in output(child)}
        reads: dict[int, frozenset[int]] = {}
        decides: frozenset[int] = frozenset()
        doubtful: frozenset[int] = frozenset()
        if kind == "Project":
            passes, reads = _computed(items(plan.projectList()))
            if self.volatile:
                doubtful = frozenset(column_id(e) for e in items(plan.projectList()) if is_volatile(e))
        elif kind == "Filter":
            decides = references(plan.condition())
        elif kind == "Generate":
            decides = references(plan.generator())
            reads = {column_id(a): decides for a in items(plan.generatorOutput())}
        elif kind == "Expand":
            passes, reads = _expanded(plan)
        operator = self._operator(
            plan,
            passes,
            reads,
            decides,
            doubtful,
            keeps_rows=kind in {"Project", "Sort"},
            drops_rows=kind == "Filter",
        )
        inner = self.relation(child)
        if kind == "Filter" and isinstance(inner, Scan) and self._source(child) is not None:
            inner = replace(inner, only=comparisons(self.planner, plan.condition(), child))
        return RowWise(self.columns(output(plan)), inner, operator)

    def _with_time(self, plan: Plan, now: Attribute) -> Relation:
        """A projection that adds the time is a join with the clock."""
        (child,) = children(plan)
        passes = {column_id(a): column_id(a) for a in output(plan)}
        clock = Scan(self.columns([now]), CLOCK, Operator(plan, "the time of the refresh"))
        return InnerJoin(
            self.columns(output(plan)), self.relation(child), clock, (), self._operator(plan, passes)
        )

    def _union(self, plan: Plan) -> Relation:
        inputs = tuple(self.relation(child) for child in children(plan))
        return Concat(self.columns(output(plan)), inputs, self._operator(plan))

    def _join(self, plan: Plan) -> Relation:
        join_type = kind_of(plan.joinType())
        if join_type not in INNER | LOOKUPS:
            return self.whole(plan, f"{join_type} has no cheaper rule")
        left, right = (self.relation(child) for child in children(plan))
        condition = plan.condition().get() if plan.condition().isDefined() else None
        pairs = equalities(condition, {c.id for c in left.columns}, {c.id for c in right.columns})
        named = {c.id: c for c in (*left.columns, *right.columns)}
        keys = tuple(p for p in pairs if all(named[i].comparable for i in p))
        decides = references(condition) if condition is not None else frozenset[int]()
        passes = {i: i for i in named}
        reads = {column_id(a): decides for a in output(plan) if column_id(a) not in named}
        operator = self._operator(plan, passes, reads, decides, keeps_rows=join_type == "LeftSingle")
        form = InnerJoin if join_type in INNER else LookupJoin
        return form(self.columns(output(plan)), left, right, keys, operator)

    def _aggregate(self, plan: Plan) -> Relation:
        grouping = items(plan.groupingExpressions())
        keys = [g for g in grouping if kind_of(g) == "AttributeReference"]
        if not keys or any(not g.foldable() for g in grouping if g not in keys):
            return self.whole(plan)
        computed = items(plan.aggregateExpressions())
        passes, reads = _computed(computed)
        ids = tuple(column_id(k) for k in keys)
        doubtful = {column_id(e.toAttribute()) for e in computed if unrepeatable(e)}
        doubtful |= {out for out, inner in passes.items() if inner in ids and self._collated(keys, inner)}
        return self._per_key(plan, [ids], passes, reads, doubtful)

    def _distinct(self, plan: Plan) -> Relation:
        inputs = [output(child) for child in children(plan)]
        own = [column_id(a) for a in output(plan)]
        passes = dict(zip(own, (column_id(a) for a in inputs[0]), strict=True))
        doubtful = {column_id(a) for a in output(plan) if is_collated(a.dataType())}
        return self._per_key(
            plan, [tuple(map(column_id, columns)) for columns in inputs], passes, {}, doubtful
        )

    def _deduplicate(self, plan: Plan) -> Relation:
        keys = tuple(column_id(a) for a in items(plan.keys()))
        own = [column_id(a) for a in output(plan)]
        collated = {column_id(a) for a in output(plan) if is_collated(a.dataType())}
        doubtful = {c for c in own if c not in keys} | collated
        return self._per_key(plan, [keys], {c: c for c in own}, {}, doubtful) if keys else self.whole(plan)

    def _window(self, plan: Plan) -> Relation:
        partition = items(plan.partitionSpec())
        keys = tuple(column_id(p) for p in partition if kind_of(p) == "AttributeReference")
        if not keys or len(keys) != len(partition):
            return self.whole(plan)
        passes = {column_id(a): column_id(a) for a in output(children(plan)[0])}
        order = frozenset[int]().union(*(references(o) for o in items(plan.orderSpec())))
        around = order | frozenset(keys)
        windows = items(plan.windowExpressions())
        reads = {column_id(w.toAttribute()): references(w) | around for w in windows}
        return self._per_key(plan, [keys], passes, reads, self._unrepeatable(plan))

    def _top(self, plan: Plan) -> Relation:
        """LIMIT and OFFSET over a Sort that decides all ties."""
        limit, offset, node = None, 0, plan
        if kind_of(node) == "GlobalLimit" and kind_of(node.child()) == "LocalLimit":
            limit = int(node.limitExpr().eval(None))
            node = node.child().child()
        if kind_of(node) == "Offset":
            offset = int(node.offsetExpr().eval(None))
            node = node.child()
        if kind_of(node) != "Sort" or node is plan:
            return self.whole(plan)
        decides = frozenset[int]().union(*(references(o) for o in items(node.order())))
        passes = {column_id(a): column_id(a) for a in output(plan)}
        operator = self._operator(plan, passes, decides=decides)
        return Top(self.columns(output(plan)), self.relation(node.child()), limit, offset, operator)

    def _recursive(self, plan: Plan) -> Relation:
        whole = self.whole(plan)
        recursion, reason = self._recursion(plan)
        return Loop(whole.columns, whole.children, whole.operator, recursion, reason)

    def _recursion(self, plan: Plan) -> tuple[Recursion | None, str]:
        """Base and step of a recursive query that is linear in itself, or why it cannot be taken so."""
        if plan.limit().isDefined():
            return None, "a LIMIT decides where the recursion ends"
        outer, self._loop = self._loop, int(plan.id())
        try:
            base, step = (self.relation(child) for child in children(plan))
        finally:
            self._loop = outer
        name = _loop_name(plan.id())
        if any(kind_of(node) == "UnionLoopRef" and node.accumulated() for node in walk(plan)):
            return None, "the recursion compares with everything found so far"
        why = _not_linear(step, name)
        if not why and not counts_levels(plan):
            why = "the levels of the recursion cannot be counted"
        return (None, why) if why else (Recursion(base, step, name, most_levels(self.planner, plan)), "")

    def _skip(self, plan: Plan) -> Relation:
        return self.relation(children(plan)[0])

    # Parts

    def _per_key(
        self,
        plan: Plan,
        keys: Sequence[tuple[int, ...]],
        passes: Mapping[int, int],
        reads: Mapping[int, frozenset[int]],
        doubtful: set[int] | frozenset[int],
    ) -> Relation:
        inputs = tuple(self.relation(child) for child in children(plan))
        named = {c.id: c for child in inputs for c in child.columns}
        if any(not named[k].comparable for own in keys for k in own):
            return self.whole(plan, "a key has a type that cannot be compared")
        decides = frozenset(k for own in keys for k in own)
        operator = self._operator(plan, passes, reads, decides, frozenset(doubtful))
        return PerKey(self.columns(output(plan)), inputs, tuple(keys), operator)

    def _operator(
        self,
        plan: Plan,
        passes: Mapping[int, int] | None = None,
        reads: Mapping[int, frozenset[int]] | None = None,
        decides: frozenset[int] = frozenset(),
        doubtful: frozenset[int] = frozenset(),
        keeps_rows: bool = False,
        drops_rows: bool = False,
    ) -> Operator:
        label = str(plan.simpleString(1000))
        return Operator(
            plan,
            label,
            passes or {},
            reads or {},
            decides,
            doubtful,
            keeps_rows,
            drops_rows,
            position_of(plan),
            grows_with(plan),
        )

    def _unrepeatable(self, plan: Plan) -> frozenset[int]:
        kind = kind_of(plan)
        if kind == "Aggregate":
            return frozenset(
                column_id(e.toAttribute()) for e in items(plan.aggregateExpressions()) if unrepeatable(e)
            )
        if kind != "Window":
            return frozenset()
        order = [o.child() for o in items(plan.orderSpec())]
        decided = frozenset[int]().union(*(references(e) for e in [*order, *items(plan.partitionSpec())]))
        direct = all(kind_of(e) == "AttributeReference" and not is_collated(e.dataType()) for e in order)
        covered = direct and any(key <= decided for key in distinct_keys(children(plan)[0]))
        windows = items(plan.windowExpressions())
        return frozenset(column_id(w.toAttribute()) for w in windows if unrepeatable(w, covered))

    def _used_columns(self, plan: Plan) -> tuple[Column, ...]:
        attributes = output(plan)
        if self.used is not None:
            attributes = [a for a in attributes if column_id(a) in self.used]
        return self.columns(attributes)

    def _column(self, attribute: Attribute) -> Column:
        data_type = attribute.dataType()
        text = str(data_type.catalogString())
        if text not in self._comparable:
            ordering = self.planner.expressions.RowOrdering
            self._comparable[text] = bool(ordering.isOrderable(data_type))
        return Column(column_id(attribute), str(attribute.name()), text, self._comparable[text])

    def _collated(self, keys: Sequence[Attribute], key: int) -> bool:
        return any(column_id(k) == key and is_collated(k.dataType()) for k in keys)


def used_columns(plan: Plan) -> frozenset[int]:
    """The columns that some operator above reads; set operations read all of their input."""
    used = {column_id(a) for a in output(plan)}

    def visit(node: Plan) -> None:
        used.update(column_id(a) for a in items(node.references().toSeq()))
        below = children(node)
        if kind_of(node) in {"Distinct", "Union", "Intersect", "Except", "UnionLoop"}:
            used.update(column_id(a) for child in below for a in output(child))
        for child in below:
            visit(child)

    visit(plan)
    return frozenset(used)


def only_drops_columns(plan: Plan) -> bool:
    """A projection of a leaf to some of its columns as they are."""
    if kind_of(plan) != "Project" or children(children(plan)[0]):
        return False
    columns = items(plan.projectList())
    if any(kind_of(e) != "AttributeReference" for e in columns):
        return False
    return len({column_id(e) for e in columns}) == len(columns)


def position_of(plan: Plan) -> tuple[int, int] | None:
    """Line and column in the query's text.

    Windows and aggregates have the place of the whole SELECT, so their first function tells more.
    """
    if kind_of(plan) in {"Window", "Aggregate"}:
        parts = (part for e in items(plan.expressions()) for part in expressions_in(e))
        functions = (p for p in parts if kind_of(p) in {"WindowExpression", "AggregateExpression"})
        found = next((place for place in map(_origin_of, functions) if place), None)
        return found or _origin_of(plan)
    return _origin_of(plan)


def _origin_of(node: Any) -> tuple[int, int] | None:
    origin = node.origin()
    if origin.line().isDefined() and origin.startPosition().isDefined():
        return int(origin.line().get()), int(origin.startPosition().get())
    return None


def _loop_of(plan: Plan) -> int | None:
    """The recursive query that a leaf refers to; -1 for any other plan."""
    return int(plan.loopId()) if kind_of(plan) == "UnionLoopRef" else -1


def _loop_name(number: int) -> str:
    return f"recursion {int(number)}"


def _not_linear(step: Relation, itself: str) -> str:
    """Why a step is not linear in the rows it reads of `itself`; empty when it is."""
    found = [scan for scan in scans_of(step) if scan.source == itself]
    if len(found) != 1:
        return "the recursion reads itself more than once"
    node: Relation = step
    while not isinstance(node, Scan):
        if isinstance(node, PerKey | Whole | Top | Loop):
            return f"{node.operator.label} in the recursion needs all of its rows"
        below = [c for c in children_of(node) if any(s is found[0] for s in scans_of(c))]
        if isinstance(node, LookupJoin) and below[0] is node.right:
            return f"{node.operator.label} looks the recursion up"
        node = below[0]  # type: ignore[assignment]
    return ""


def _computed(expressions: Sequence[Any]) -> tuple[dict[int, int], dict[int, frozenset[int]]]:
    """For named expressions: what is passed on unchanged, and what each is computed from."""
    passes: dict[int, int] = {}
    reads: dict[int, frozenset[int]] = {}
    for expression in expressions:
        kind = kind_of(expression)
        own = column_id(expression)
        if kind == "AttributeReference":
            passes[own] = own
        elif kind == "Alias" and kind_of(expression.child()) == "AttributeReference":
            passes[own] = column_id(expression.child())
        reads[own] = references(expression)
    return passes, reads


def _expanded(plan: Plan) -> tuple[dict[int, int], dict[int, frozenset[int]]]:
    passes: dict[int, int] = {}
    reads: dict[int, frozenset[int]] = {}
    projections = [items(p) for p in items(plan.projections())]
    for attribute, choices in zip(output(plan), zip(*projections, strict=True), strict=True):
        own = column_id(attribute)
        reads[own] = frozenset[int]().union(*(references(c) for c in choices))
        inner = {column_id(c) if kind_of(c) == "AttributeReference" else None for c in choices}
        only = inner.pop() if len(inner) == 1 else None
        if only is not None:
            passes[own] = only
    return passes, reads


_HANDLERS: dict[str, Callable[[Classifier, Plan], Relation]] = {
    "Project": Classifier._row_wise,
    "Filter": Classifier._row_wise,
    "Generate": Classifier._row_wise,
    "Expand": Classifier._row_wise,
    "Sort": Classifier._row_wise,  # for aggregates that depend on the order of their input
    "Union": Classifier._union,
    "Join": Classifier._join,
    "Aggregate": Classifier._aggregate,
    "Distinct": Classifier._distinct,
    "Intersect": Classifier._distinct,
    "Except": Classifier._distinct,
    "Deduplicate": Classifier._deduplicate,
    "Window": Classifier._window,
    "UnionLoop": Classifier._recursive,
    "GlobalLimit": Classifier._top,
    "Offset": Classifier._top,
    "RebalancePartitions": Classifier._skip,
    "Repartition": Classifier._skip,
    "RepartitionByExpression": Classifier._skip,
}
"""Everything not named here is evaluated as a whole: correct, not cheap."""
