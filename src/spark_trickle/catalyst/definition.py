"""From a query to all that a refresh needs of it. Built without running anything."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from pyspark.sql.types import CalendarIntervalType, NullType, StructField, StructType

from spark_trickle.algebra.relations import Column, Operator, PerKey, Relation, RowWise, Scan, Whole
from spark_trickle.algebra.traverse import scans_of, walk
from spark_trickle.catalyst.analyze import all_plans
from spark_trickle.catalyst.classify import Classifier, only_drops_columns, used_columns
from spark_trickle.catalyst.hidden import without_hidden
from spark_trickle.catalyst.normalize import NotNormalizable, normalize
from spark_trickle.catalyst.plan import Plan, Planner, children, column_id, kind_of, output
from spark_trickle.catalyst.rewrite import carry_columns
from spark_trickle.catalyst.sources import SourceTable, source_of, sources_in
from spark_trickle.catalyst.time import CLOCK, asks_for_time
from spark_trickle.catalyst.totals import RunningTotals, running_totals
from spark_trickle.catalyst.volatile import Policy, Volatile, volatile_parts
from spark_trickle.errors import DefinitionError, UnsupportedQueryError
from spark_trickle.incremental.maintain import (
    Maintenance,
    Recompute,
    aggregate_to_continue,
    hidden_columns,
    keys_to_carry,
    maintain,
)
from spark_trickle.names import PREFIX

_NUMBERED = re.compile(r"(?<=[^\s(,])#\d+L?|\bCommonExpressionId\(\d+|\bUnionLoop(?:Ref)? \d+")
"""Ids of columns and subqueries after their names, of an expression used twice, as by BETWEEN, of a recursion."""


@dataclass(frozen=True)
class Definition:
    """A defining query, understood: what it reads, what it gives, how it is kept up to date."""

    relation: Relation
    maintenance: Maintenance
    sources: Mapping[str, SourceTable]
    schema: StructType
    hidden: StructType
    """Columns stored beside the query's own, in `__st`: keys, totals, or what a LIMIT is ordered by."""
    fingerprint: str
    volatile: tuple[str, ...] = ()
    """Parts whose answer the sources do not decide, accepted by the policy."""
    totals: RunningTotals | None = None
    """How the root's aggregate is continued from its stored totals, where it can be."""

    def columns_of(self, source: str) -> tuple[Column, ...]:
        """The columns the query uses of a source, each once."""
        found = {c.name: c for scan in scans_of(self.relation) if scan.source == source for c in scan.columns}
        return tuple(found[name] for name in sorted(found))

    @property
    def uses_time(self) -> bool:
        """The answer changes with the time of the refresh, although no source does."""
        return any(scan.source == CLOCK for scan in scans_of(self.relation))

    @cached_property
    def careful(self) -> Maintenance:
        """Like `maintenance`, evaluating no pair of rows that the query itself would not."""
        return maintain(self.relation, _columns_of(self.totals), only_real_pairs=True)

    @property
    def recomputed(self) -> str:
        """Why every refresh evaluates the whole query; empty when it does not."""
        return self.maintenance.reason if isinstance(self.maintenance, Recompute) else ""


def define(planner: Planner, analyzed: Plan, policy: Policy = "reject") -> Definition:
    """Understand an analyzed query, or say in one sentence why it cannot be a stream table."""
    analyzed = without_hidden(planner, analyzed)
    volatile = volatile_parts(analyzed)
    if volatile and policy == "reject":
        raise volatile[0].refusal()
    sources = sources_in(analyzed)
    schema = planner.frame(analyzed).schema
    _check_columns(schema)
    relation = _relation(planner, analyzed, volatile, policy)
    visible = len(relation.columns)
    totals, plan = (None, None) if volatile else _with_totals(planner, relation)
    if totals is None:
        carried = hidden_columns(relation)
        plan = carry_columns(planner, relation.operator.payload, list(carried)) if carried else None
    if plan is not None:
        relation = _classified(planner, plan, bool(volatile))
    types = planner.frame(relation.operator.payload).schema.fields if plan is not None else []
    hidden = StructType([StructField(f"k{i}", f.dataType) for i, f in enumerate(types[visible:])])
    noted = tuple(f"`{part.what}` {part.why}" for part in volatile)
    maintenance = maintain(relation, _columns_of(totals))
    return Definition(relation, maintenance, sources, schema, hidden, _fingerprint(relation), noted, totals)


def _with_totals(planner: Planner, relation: Relation) -> tuple[RunningTotals | None, Plan | None]:
    """Running totals for the root's aggregate, and the query with their columns, where there can be any."""
    top = aggregate_to_continue(relation)
    if top is None or kind_of(top.operator.payload) != "Aggregate":
        return None, None
    totals = running_totals(planner, top.operator.payload)
    if totals is None or (totals.keys and not isinstance(top, PerKey)):
        return None, None  # no function of totals, or groups that cannot be told apart
    plan = planner.replace_nodes(relation.operator.payload, [(top.operator.payload, totals.plan)])
    return totals, carry_columns(planner, plan, [*keys_to_carry(relation, top), *totals.columns])


def _columns_of(totals: RunningTotals | None) -> tuple[int, ...]:
    return tuple(totals.columns) if totals else ()


def _relation(planner: Planner, analyzed: Plan, volatile: Sequence[Volatile], policy: Policy) -> Relation:
    try:
        for part in volatile:
            if policy == "warn" or not part.in_a_column:
                raise NotNormalizable(f"`{part.what}` {part.why}")
        return _classified(planner, normalize(planner, analyzed), bool(volatile))
    except NotNormalizable as reason:
        if asks_for_time(planner, analyzed):
            raise UnsupportedQueryError(
                f"The query asks for the time, and {reason}.",
                hint="Compare with a column instead, or write the subquery as a join.",
                code="VOLATILE_FUNCTION",
            ) from None
        return _as_a_whole(planner, analyzed, str(reason))


def _classified(planner: Planner, plan: Plan, volatile: bool) -> Relation:
    used = used_columns(plan)
    return Classifier(planner, _source_name, used, volatile).relation(_narrowed(planner, plan, used))


def _narrowed(planner: Planner, plan: Plan, used: frozenset[int]) -> Plan:
    """The query over its sources without the columns that nobody uses: what is read by key is handed over whole."""
    replaced = []

    def visit(node: Plan) -> None:
        if only_drops_columns(node):
            return
        below = children(node)
        for child in below:
            visit(child)
        if not below and _source_name(node) is not None:
            columns = output(node)
            # Rows without any column could not be counted.
            kept = [a for a in columns if column_id(a) in used] or columns[:1]
            if len(kept) < len(columns):
                replaced.append((node, planner.project(kept, node)))

    visit(plan)
    return planner.replace_nodes(plan, replaced) if replaced else plan


def _as_a_whole(planner: Planner, analyzed: Plan, reason: str) -> Whole:
    """The query as Spark analyzed it, subqueries and all, with its sources as inputs."""
    classifier = Classifier(planner, _source_name)
    leaves = {
        column_id(output(node)[0]): node
        for node in all_plans(analyzed)
        if not children(node) and _source_name(node) is not None
    }
    scans = tuple(classifier.relation(leaf) for leaf in leaves.values())
    operator = Operator(analyzed, str(analyzed.simpleString(1000)))
    return Whole(classifier.columns(output(analyzed)), scans, operator, reason)


def _source_name(leaf: Plan) -> str | None:
    source = source_of(leaf)
    return source.name if source else None


def _check_columns(schema: StructType) -> None:
    seen: set[str] = set()
    for field in schema.fields:
        name = field.name.lower()
        if name in seen:
            raise DefinitionError(
                f"The query gives two columns named `{field.name}`.",
                hint="Name them apart with AS.",
                code="DUPLICATE_COLUMN",
            )
        seen.add(name)
        if name.startswith(PREFIX) or name == "_metadata":
            why = (
                f"starts with `{PREFIX}`, which"
                if name.startswith(PREFIX)
                else "is Spark's own for files, and"
            )
            raise DefinitionError(
                f"The column name `{field.name}` {why} is reserved.",
                hint="Rename it with AS.",
                code="RESERVED_COLUMN",
            )
        if "interval" in field.dataType.typeName() or isinstance(field.dataType, CalendarIntervalType):
            raise DefinitionError(
                f"The column `{field.name}` is an interval, which Delta cannot store.",
                hint=f"Store it as text or as a number: CAST({field.name} AS STRING).",
                code="UNSUPPORTED_TYPE",
            )
        if isinstance(field.dataType, NullType):
            raise DefinitionError(
                f"The column `{field.name}` has no type: it is always NULL.",
                hint=f"Give it one: CAST(NULL AS INT) AS {field.name}.",
                code="UNTYPED_COLUMN",
            )


def _fingerprint(relation: Relation) -> str:
    """A digest of what the query computes; what Spark numbers anew each time is numbered by first appearance."""
    lines: list[str] = []
    for node in walk(relation):
        if isinstance(node, Scan):
            columns = ", ".join(f"{c.name} {c.type}" for c in node.columns)
            lines.append(f"{node.source}({columns})")
        elif not _only_drops_columns(node):
            lines.append(f"{type(node).__name__} {_constant_data(node)}{node.operator.label}")
    lines += [f"{c.name} {c.type}" for c in relation.columns]
    numbers: dict[str, str] = {}
    text = _NUMBERED.sub(lambda m: numbers.setdefault(m[0], f"#{len(numbers)}"), "\n".join(lines))
    return hashlib.sha256(text.encode()).hexdigest()


def _only_drops_columns(node: Relation) -> bool:
    """Such a projection comes and goes with columns of a source that the query does not use."""
    passes = node.operator.passes
    plain = isinstance(node, RowWise) and kind_of(node.operator.payload) == "Project"
    return plain and all(passes.get(c.id) == c.id for c in node.columns)


def _constant_data(node: Relation) -> str:
    """VALUES are not part of an operator's label."""
    payload = node.operator.payload
    if isinstance(node, Whole) and not node.children and kind_of(payload) == "LocalRelation":
        return str(payload.data().toString())  # type: ignore[attr-defined]
    return ""
