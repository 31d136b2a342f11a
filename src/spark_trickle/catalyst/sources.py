"""Which leaves of a plan are sources: current versions of Delta tables."""

from __future__ import annotations

from dataclasses import dataclass

from spark_trickle.catalyst.analyze import all_plans
from spark_trickle.catalyst.plan import Plan, children, kind_of
from spark_trickle.errors import SourceError
from spark_trickle.names import TableName, quote

_CONSTANTS = frozenset({"LocalRelation", "OneRowRelation", "Range", "CTERelationRef", "UnionLoopRef"})


@dataclass(frozen=True, slots=True)
class SourceTable:
    """A Delta table a query reads, and where it lies."""

    name: str
    location: str


def source_of(leaf: Plan) -> SourceTable | None:
    """The table behind a leaf; None for constants, and for a table pinned to a version by the query itself."""
    if kind_of(leaf) != "LogicalRelation":
        return None
    relation = leaf.relation()
    if kind_of(relation) != "HadoopFsRelation" and not hasattr(relation, "location"):
        return None
    try:
        index = relation.location()
        location = str(index.deltaLog().dataPath().toString())
        pinned = bool(index.isTimeTravelQuery())
    except Exception:
        return None
    if pinned:
        return None
    return SourceTable(_name_of(leaf, location), location)


def sources_in(plan: Plan) -> dict[str, SourceTable]:
    """Every source of a query by name, views expanded and subqueries included; other leaves are refused."""
    found: dict[str, SourceTable] = {}
    for node in all_plans(plan):
        if children(node):
            continue
        source = source_of(node)
        if source is not None:
            found[source.name] = source
        elif kind_of(node) not in _CONSTANTS and not _is_pinned_delta(node):
            raise SourceError(
                f"The query reads `{_described(node)}`, which is not a Delta table.",
                hint="Copy it into a Delta table first: CREATE TABLE … USING delta AS SELECT ….",
                code="NOT_A_DELTA_TABLE",
            )
    return found


def _is_pinned_delta(leaf: Plan) -> bool:
    if kind_of(leaf) != "LogicalRelation":
        return False
    try:
        return bool(leaf.relation().location().isTimeTravelQuery())
    except Exception:
        return False


def _name_of(leaf: Plan, location: str) -> str:
    table = leaf.catalogTable()
    if not table.isDefined():
        return f"delta.{quote(location)}"
    name = table.get().identifier()
    catalog = name.catalog().get() if name.catalog().isDefined() else "spark_catalog"
    database = name.database().get() if name.database().isDefined() else "default"
    return str(TableName(str(catalog).lower(), str(database).lower(), str(name.table()).lower()))


def _described(leaf: Plan) -> str:
    if kind_of(leaf) == "LogicalRelation" and leaf.catalogTable().isDefined():
        return str(leaf.catalogTable().get().identifier().table())
    return str(leaf.simpleString(5)).split("[")[0].strip()
