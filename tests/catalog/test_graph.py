"""What the graph of all stream tables and that of one of them have in common."""

from __future__ import annotations

from dataclasses import replace

import pytest

from spark_trickle.catalog import Catalog
from spark_trickle.graph.units import in_order
from spark_trickle.refresh.graph import read_graph, read_order
from tests.catalog.samples import dependency, stream_table

_READS = {
    "b": ["base"],
    "c": ["base"],
    "d": ["b", "c"],
    "e": ["d"],
    "alone": ["other"],
    "x": ["y"],
    "y": ["x"],
}


@pytest.fixture(params=["none", "atomic"])
def filled(catalog: Catalog, request: pytest.FixtureRequest) -> Catalog:
    """A diamond, a reader of it, a circle, and a table that has to do with neither."""
    with catalog.begin() as now:
        for name, sources in _READS.items():
            table = replace(stream_table(name), diamond_consistency=request.param if name == "d" else "none")
            now.stream_tables.add(table)
            now.dependencies.replace(table.id, [dependency(table, source) for source in sources])
    return catalog


@pytest.mark.parametrize("name", sorted(_READS))
def test_the_order_of_one_is_that_of_the_whole_graph(filled: Catalog, name: str) -> None:
    whole = read_graph(filled)
    part, order = read_order(filled, name)
    assert order == in_order(whole.dependencies, [name], whole.units)
    assert part.units == whole.units
    members = {member for unit in order for member in unit.members}
    assert part.tables == {member: whole.tables[member] for member in members}
    own = {whole.tables[member].id for member in members}
    assert list(part.rows) == [row for row in whole.rows if row.stream_table_id in own]
