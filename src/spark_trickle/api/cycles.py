"""Stream tables that read each other in a circle: allowed only where a fixpoint exists."""

from __future__ import annotations

from spark_trickle.catalyst.definition import Definition
from spark_trickle.errors import DefinitionError
from spark_trickle.names import shown
from spark_trickle.refresh.circular import check_member, circle
from spark_trickle.refresh.graph import Graph
from spark_trickle.refresh.runtime import Runtime


def check_cycle(name: str, definition: Definition, graph: Graph, runtime: Runtime) -> frozenset[str]:
    """The members of the circle that a definition closes, if any.

    Refused unless circles are allowed and every member only ever grows.
    """
    if name in definition.sources:
        raise DefinitionError(
            f"`{shown(name)}` cannot read itself.",
            hint="Use another name, or a recursive CTE.",
            code="CYCLE",
        )
    reading = graph.dependencies.reading(name, definition.sources)
    members = next((cycle for cycle in reading.cycles() if name in cycle), frozenset[str]())
    if not members:
        return members
    if not runtime.settings.allow_circular:
        raise circle(reading)
    for member in sorted(members):
        one = definition if member == name else runtime.definitions.of(graph.tables[member]).definition
        check_member(member, one, members)
    return members
