"""Whether stream tables may read each other in a circle, at creation and ever after."""

from __future__ import annotations

from collections.abc import Mapping

from spark_trickle.catalog import StreamTable
from spark_trickle.catalyst.definition import Definition
from spark_trickle.errors import DefinitionError
from spark_trickle.graph.dependencies import Dependencies
from spark_trickle.incremental.monotone import shrinks_with
from spark_trickle.names import shown
from spark_trickle.refresh.definitions import CIRCULAR, Prepared
from spark_trickle.refresh.graph import read_graph
from spark_trickle.refresh.runtime import Runtime

_SHOWN = 100


def circle(reading: Dependencies) -> DefinitionError:
    """The refusal of a circle, with its path."""
    path = " → ".join(shown(table) for table in reading.path_of_cycle())
    return DefinitionError(
        f"The stream tables would read each other in a circle: {path}.",
        hint="Remove one of these references, or allow circles with the setting `allow_circular`.",
        code="CYCLE",
    )


def check_still_straight(table: StreamTable, definition: Definition, runtime: Runtime) -> None:
    """A view that a query reads may lead back to it by now; only a definition can close a circle."""
    with runtime.catalog.begin(write=False) as catalog:
        known = {row.source_name for row in catalog.dependencies.of(table.id)}
    if known == set(definition.sources):
        return
    graph = read_graph(runtime.catalog)
    reading = graph.dependencies.reading(table.name, definition.sources)
    if any(table.name in cycle for cycle in reading.cycles()) or table.name in definition.sources:
        raise circle(reading)


def check_member(name: str, definition: Definition, members: frozenset[str]) -> None:
    """Every path from a member to this one must be such that more rows never mean fewer."""
    operator = shrinks_with(definition.relation, members)
    if operator is not None:
        where = f" (line {operator.position[0]}, column {operator.position[1]})" if operator.position else ""
        label = operator.label if len(operator.label) <= _SHOWN else f"{operator.label[:_SHOWN]}…"
        raise DefinitionError(
            f"`{shown(name)}` cannot be part of a circle: `{label}`{where} may drop a row because there are more.",
            hint="Between its members a circle may have filters, projections, inner joins, unions, DISTINCT and EXISTS only.",
            code="NOT_MONOTONE",
        )
    if definition.uses_time:
        raise DefinitionError(
            f"`{shown(name)}` cannot be part of a circle: it asks for the time.",
            hint="Compare with a column instead.",
            code="NOT_MONOTONE",
        )
    collated = [c.name for c in definition.relation.columns if "collate" in c.type.lower()]
    if collated:
        raise DefinitionError(
            f"`{shown(name)}` cannot be part of a circle: of equal values of `{collated[0]}` any may be kept.",
            hint="Cast it to STRING without a collation.",
            code="NOT_MONOTONE",
        )


def check_types(prepared: Mapping[str, Prepared]) -> None:
    """Each member was analyzed over the stored columns of the others: they must be what is found now."""
    for name, one in prepared.items():
        for source in one.definition.sources.keys() & prepared.keys():
            now = {f.name: f.dataType.simpleString() for f in prepared[source].definition.schema.fields}
            for column in one.definition.columns_of(source):
                if now.get(column.name) != column.type:
                    raise DefinitionError(
                        f"`{shown(name)}` reads `{column.name}` of `{shown(source)}` as {column.type}; "
                        f"it would be {now.get(column.name, 'gone')} now.",
                        hint=f"Cast it in the query of `{shown(source)}`, or define the members anew, one by one.",
                        code="CYCLE",
                    )


def mark_cycles(runtime: Runtime) -> None:
    """Note at every definition whether it is part of a circle, for as long as it is."""
    graph = read_graph(runtime.catalog)
    circular = frozenset[str]().union(*graph.dependencies.cycles())
    with runtime.catalog.begin() as catalog:
        for name, table in graph.tables.items():
            if (name in circular) == (CIRCULAR in table.session_settings):
                continue
            others = {key: value for key, value in table.session_settings.items() if key != CIRCULAR}
            settings = {**others, CIRCULAR: "true"} if name in circular else others
            catalog.stream_tables.update(table.id, session_settings=settings)
