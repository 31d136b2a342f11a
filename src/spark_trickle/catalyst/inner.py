"""Groups inside a query that can be kept between refreshes, with the totals that they are continued from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from pyspark.sql.types import StructField, StructType

from spark_trickle.algebra.relations import NEW, At, Column, KeysOf, Node, Operator, PerKey, Relation, Scan
from spark_trickle.algebra.traverse import sources_of
from spark_trickle.catalyst.few import arrow_type
from spark_trickle.catalyst.plan import (
    Attribute,
    Expression,
    Plan,
    Planner,
    column_id,
    items,
    kind_of,
    output,
)
from spark_trickle.catalyst.time import CLOCK
from spark_trickle.catalyst.totals import RunningTotals, running_totals
from spark_trickle.incremental.differentiate import differentiate
from spark_trickle.incremental.inner import Groups, innermost
from spark_trickle.incremental.rules import per_key
from spark_trickle.incremental.rules.touched import Touched
from spark_trickle.names import PREFIX

_FRACTIONS = ("float", "double")


@dataclass(frozen=True, eq=False)
class Inner:
    """Groups that can be kept: to the query above them the source `scan`."""

    groups: Groups
    """As they are in the query."""
    full: Groups
    """With their totals in columns of their own, behind those that the query has."""
    running: RunningTotals
    scan: Scan
    schema: StructType
    """Of `full`, by names that are told apart."""
    keys: tuple[int, ...]
    """Where the columns of `full` are that tell the groups apart."""
    totals: tuple[int, ...]
    """Where its totals are."""
    change: Node
    """Of what is grouped."""
    again: KeysOf
    """Stands for the groups that are to be evaluated again; a refresh provides them."""
    new: Node
    """These groups."""

    @property
    def sources(self) -> frozenset[str]:
        return sources_of(self.groups)


def inner_groups(planner: Planner, root: Relation) -> tuple[Inner, ...]:
    """All groups inside the query that can be kept, whatever their number."""
    found = (_inner(planner, groups, number) for number, groups in enumerate(innermost(root)))
    return tuple(inner for inner in found if inner is not None)


def _inner(planner: Planner, groups: Groups, number: int) -> Inner | None:
    if kind_of(groups.operator.payload) != "Aggregate" or CLOCK in sources_of(groups):
        return None
    if not groups.columns:  # rows without columns could not be counted
        return None
    running = running_totals(planner, groups.operator.payload)
    if running is None or (running.keys and not isinstance(groups, PerKey)):
        return None
    plan = _with_keys(planner, running)
    columns = output(plan)
    types = planner.frame(plan).schema.fields
    names = [str(a.name()) for a in columns]
    if any(arrow_type(f.dataType) is None for f in types) or len({*names}) < len(names):
        return None
    ids = [column_id(a) for a in columns]
    keys = _places_of_keys(groups, ids)
    if any(types[place].dataType.typeName() in _FRACTIONS for place in keys):
        return None
    known = {c.id: c for c in groups.columns}
    extended = tuple(known.get(i) or Column(i, name, "") for i, name in zip(ids, names, strict=True))
    full = replace(groups, columns=extended, operator=replace(groups.operator, payload=plan))
    again = KeysOf(())
    new: Node = At(full, NEW)
    if isinstance(full, PerKey):
        new = per_key.restricted(full, NEW, Touched(again, tuple(range(len(keys)))))
    own = Operator(groups.operator.payload, groups.operator.label)
    return Inner(
        groups,
        full,
        running,
        Scan(groups.columns, f"{PREFIX}_groups{number}", own),
        StructType([StructField(f"c{i}", field.dataType) for i, field in enumerate(types)]),
        keys,
        tuple(ids.index(column) for column in running.columns),
        differentiate(groups.children[0]),  # type: ignore[arg-type]
        again,
        new,
    )


def _with_keys(planner: Planner, running: RunningTotals) -> Plan:
    """The aggregate with its totals, and with the keys that the query does not ask for."""
    aggregate = running.plan
    shown = {column_id(a) for e in items(aggregate.aggregateExpressions()) for a in _carried(e)}
    hidden = [key for key in running.keys if column_id(key) not in shown]
    if not hidden:
        return aggregate
    named = aggregate.aggregateExpressions().appendedAll(planner.seq(hidden))
    return planner.logical.Aggregate(
        aggregate.groupingExpressions(), named, aggregate.child(), aggregate.hint()
    )


def _carried(named: Expression) -> list[Attribute]:
    """The column that a column of an aggregate is, under another name or its own."""
    inner = named.child() if kind_of(named) == "Alias" else named
    return [inner] if kind_of(inner) == "AttributeReference" else []


def _places_of_keys(groups: Groups, ids: Sequence[int]) -> tuple[int, ...]:
    """Where the keys are, under their own ids or those that the query has for them."""
    if not isinstance(groups, PerKey):
        return ()
    shown = {inner: out for out, inner in groups.operator.passes.items()}
    return tuple(ids.index(shown.get(key, key)) for key in groups.keys[0])
