"""Stream tables that read each other in a circle: allowed only where a fixpoint exists."""

from __future__ import annotations

from spark_trickle.catalyst.definition import Definition
from spark_trickle.errors import DefinitionError
from spark_trickle.incremental.monotone import shrinks_with
from spark_trickle.names import shown
from spark_trickle.refresh.definitions import CIRCULAR
from spark_trickle.refresh.graph import Graph, read_graph
from spark_trickle.refresh.runtime import Runtime

_SHOWN = 100


def check_cycle(name: str, definition: Definition, graph: Graph, runtime: Runtime) -> None:
    """Refuse a definition that would close a circle, unless circles are allowed and every member only ever grows."""
    if name in definition.sources:
        raise DefinitionError(
            f"`{shown(name)}` cannot read itself.",
            hint="Use another name, or a recursive CTE.",
            code="CYCLE",
        )
    reading = graph.dependencies.reading(name, definition.sources)
    members = next((cycle for cycle in reading.cycles() if name in cycle), frozenset[str]())
    if not members:
        return
    if not runtime.settings.allow_circular:
        path = " → ".join(shown(table) for table in reading.path_of_cycle())
        raise DefinitionError(
            f"The stream tables would read each other in a circle: {path}.",
            hint="Remove one of these references, or allow circles with the setting `allow_circular`.",
            code="CYCLE",
        )
    for member in sorted(members):
        one = definition if member == name else runtime.definitions.of(graph.tables[member]).definition
        _check_member(member, one, members)


def _check_member(name: str, definition: Definition, members: frozenset[str]) -> None:
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
