"""The table against its query: exactly the versions its frontier names, now or at any past refresh."""

from __future__ import annotations

import math
from collections import defaultdict
from typing import Any

from pyspark.sql import DataFrame, Row

from spark_trickle.algebra.repeatable import repeatability
from spark_trickle.catalog import StreamTable
from spark_trickle.catalyst.definition import Definition
from spark_trickle.errors import StateError
from spark_trickle.frontier import Frontier, SourceVersion
from spark_trickle.incremental.maintain import ByKey
from spark_trickle.names import WEIGHT, shown
from spark_trickle.refresh.compute import Computation
from spark_trickle.refresh.definitions import Prepared
from spark_trickle.refresh.ends import Moment
from spark_trickle.refresh.results import VerifyResult
from spark_trickle.refresh.runtime import Runtime
from spark_trickle.storage.tables import VersionUnavailable

_SHOWN = 20
_PAIRED = 10_000
_TOLERANCE = 1e-9
_NOISE = 1e-12
"""What is left of sums that cancel out, such as the variance of equal values."""


def verify_table(
    table: StreamTable, version: int, frontier: Frontier, prepared: Prepared, runtime: Runtime
) -> VerifyResult:
    """Evaluate the query on the frontier's versions and compare multisets of rows."""
    try:
        stored = runtime.tables.snapshot(table.location, SourceVersion(table.table_id, version))
        sources = prepared.definition.sources
        read = {n: runtime.tables.snapshot(sources[n].location, v) for n, v in frontier.inputs.items()}
    except (VersionUnavailable, KeyError) as error:
        raise StateError(
            f"`{shown(table.name)}` cannot be verified at that refresh: {error}.",
            hint="Only versions that the sources still retain can be verified.",
            code="VERSION_UNAVAILABLE",
        ) from None
    now = Moment(read, frontier.data_timestamp)
    with Computation(prepared, runtime.tables, Moment(), now, runtime.settings) as computation:
        difference = computation.difference(stored)
        return _judge(shown(table.name), version, prepared, None if difference is None else difference.rows)


def _decided_by_ties(definition: Definition) -> frozenset[int]:
    """Where an open tie decides which rows there are, two right answers agree in their keys alone."""
    keyed = definition.maintenance
    if not isinstance(keyed, ByKey) or not repeatability(definition.relation).rows:
        return frozenset()
    return frozenset(c.id for c in definition.relation.columns) - frozenset(keyed.columns)


def _judge(name: str, version: int, prepared: Prepared, difference: DataFrame | None) -> VerifyResult:
    relation = prepared.definition.relation
    doubtful, open_ones = repeatability(relation).columns, _decided_by_ties(prepared.definition)
    excluded = tuple(c.name for c in relation.columns if c.id in doubtful | open_ones)
    if difference is None:
        return VerifyResult(name, version, True, 0, 0, (), excluded)
    places = {i: c.id in doubtful for i, c in enumerate(relation.columns) if c.id in doubtful | open_ones}
    rows = difference.limit(_PAIRED).collect() if places else difference.limit(_SHOWN).collect()
    if places and len(rows) < _PAIRED:
        rows = _unpaired(rows, places)
        missing = sum(r[WEIGHT] for r in rows if r[WEIGHT] > 0)
        unexpected = -sum(r[WEIGHT] for r in rows if r[WEIGHT] < 0)
    else:
        weights = difference.select(WEIGHT).collect()
        missing = sum(w[0] for w in weights if w[0] > 0)
        unexpected = -sum(w[0] for w in weights if w[0] < 0)
    examples = tuple(_shown(row) for row in rows[:_SHOWN])
    return VerifyResult(name, version, not rows, missing, unexpected, examples, excluded)


def _unpaired(rows: list[Row], places: dict[int, bool]) -> list[Row]:
    """Rows left after pairing those that agree but for values that may be computed differently.

    `places` says of each such column whether its value still has to come close: floating-point values must then
    agree up to re-association of their sum; of others only the presence counts.
    """
    groups: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        groups[repr([v for i, v in enumerate(row[:-1]) if i not in places])].append(row)
    left: list[Row] = []
    for members in groups.values():
        added = [r for r in members for _ in range(max(r[WEIGHT], 0))]
        removed = [r for r in members for _ in range(max(-r[WEIGHT], 0))]
        for row in added:
            partner = next(
                (o for o in removed if all(_close(row[i], o[i]) for i, near in places.items() if near)), None
            )
            if partner is None:
                left.append(row)
            else:
                removed.remove(partner)
        left += removed
    return left


def _close(one: Any, two: Any) -> bool:
    if isinstance(one, float) and isinstance(two, float):
        return math.isclose(one, two, rel_tol=_TOLERANCE, abs_tol=_NOISE) or (
            math.isnan(one) and math.isnan(two)
        )
    return (one is None) == (two is None)


def _shown(row: Row) -> str:
    sign = "missing" if row[WEIGHT] > 0 else "unexpected"
    return f"{sign}: {tuple(row)[:-1]}" + (f" × {abs(row[WEIGHT])}" if abs(row[WEIGHT]) > 1 else "")
