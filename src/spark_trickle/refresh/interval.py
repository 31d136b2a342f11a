"""Measure: what lies between the old frontier and the newest one. No Spark job, no reading of rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from spark_trickle.catalog import StreamTable
from spark_trickle.catalyst.definition import Definition
from spark_trickle.errors import RefreshError
from spark_trickle.frontier import Frontier
from spark_trickle.names import shown
from spark_trickle.refresh.choose import Facts, SourceChange
from spark_trickle.refresh.cost import GIVEN_UP, WINDOW, Past, Prediction, predict
from spark_trickle.refresh.pins import Pins
from spark_trickle.refresh.runtime import Runtime
from spark_trickle.refresh.vector import choose_inputs
from spark_trickle.storage.changes import changed_rows, changed_share
from spark_trickle.storage.commits import commits_after
from spark_trickle.storage.tables import Snapshot, VersionUnavailable

_COMMITS_LOOKED_AT = 100


@dataclass(frozen=True)
class Interval:
    """The versions and times to go from and to, and what is in the way."""

    new: Frontier
    old: Frontier | None
    changed: tuple[str, ...]
    disagreement: str = ""
    problem: str = ""
    """Why the old versions cannot be continued from."""
    old_snapshots: Mapping[str, Snapshot] = field(default_factory=dict)
    new_snapshots: Mapping[str, Snapshot] = field(default_factory=dict)

    changed_rows: Mapping[str, int | None] = field(default_factory=dict)
    """How many rows of each may have changed; None where nobody knows without reading."""

    @property
    def estimated_rows(self) -> int | None:
        """The same of all sources."""
        known = [count for count in self.changed_rows.values() if count is not None]
        return sum(known) if len(known) == len(self.changed_rows) else None


def measure_interval(
    table: StreamTable,
    definition: Definition,
    pins: Pins,
    upstream: Mapping[str, StreamTable],
    runtime: Runtime,
) -> Interval:
    """From the table's frontier to the pinned versions."""
    new, mixed = choose_inputs(table, definition, pins, upstream, runtime)
    old = table.frontier
    if definition.uses_time:
        last = old.data_timestamp if old else None
        new = replace(new, data_timestamp=max(last, pins.at) if last else pins.at)
    if old is None:
        return Interval(new, None, tuple(sorted(new.inputs)), mixed)
    replaced = [n for n, v in new.inputs.items() if n in old.inputs and old.inputs[n].table_id != v.table_id]
    if replaced or set(old.inputs) != set(new.inputs):
        names = ", ".join(f"`{shown(n)}`" for n in sorted(replaced)) or "the set of sources"
        return Interval(
            new, old, (), mixed, f"{names} was replaced by another table" if replaced else f"{names} changed"
        )
    moved = [n for n, v in new.inputs.items() if old.inputs[n].version != v.version]
    changed = tuple(sorted(n for n in moved if _has_data(n, old, new, definition, runtime)))
    try:
        before = {n: runtime.tables.snapshot(definition.sources[n].location, old.inputs[n]) for n in changed}
    except VersionUnavailable as gone:
        return Interval(new, old, changed, mixed, f"the version read last cannot be read any more: {gone}")
    after = {n: runtime.tables.snapshot(definition.sources[n].location, new.inputs[n]) for n in changed}
    rows = {n: changed_rows(runtime.tables, before[n], after[n]) for n in changed}
    return Interval(new, old, changed, mixed, "", before, after, rows)


def facts_of(
    table: StreamTable, definition: Definition, interval: Interval, foreign: str, runtime: Runtime
) -> Facts:
    """What the decision depends on, gathered."""
    rebuild = (
        (table.reinit_reason or "asked for")
        if table.needs_reinit
        else "the definition means something else than before"
        if definition.fingerprint != table.fingerprint
        else interval.problem or foreign
    )
    automatic = table.refresh_mode == "AUTO"
    changed = tuple(
        SourceChange(
            shown(n),
            changed_share(interval.old_snapshots[n], interval.new_snapshots[n], interval.changed_rows.get(n)),
            _size(interval, n),
        )
        for n in interval.changed
        if n in interval.new_snapshots
    )
    sources = _sources(definition, interval, runtime) if changed and automatic else []
    return Facts(
        refresh_mode=table.refresh_mode,
        changed=changed,
        first_fill=table.frontier is None,
        rebuild_reason=rebuild,
        recomputed_reason=definition.recomputed,
        time_passed=interval.old is not None and interval.old.data_timestamp != interval.new.data_timestamp,
        full_refresh_threshold=runtime.settings.full_refresh_threshold,
        full_refresh_min_bytes=runtime.settings.full_refresh_min_bytes,
        full_refresh_min_rows=runtime.settings.full_refresh_min_rows,
        source_bytes=sum(s.size_in_bytes for s in sources),
        source_rows=sum(s.row_count for s in sources),
        changed_rows=interval.estimated_rows if changed else None,
        prediction=predict(_past(table, runtime), interval.estimated_rows) if changed else Prediction(),
    )


def _past(table: StreamTable, runtime: Runtime) -> list[Past]:
    """What the table's refreshes took, newest first; one that was given up counts as differential, too."""
    with runtime.catalog.begin(write=False) as catalog:
        rows = catalog.refreshes.measured(table.id, WINDOW)
    past = []
    for row in rows:
        spent = row.durations.get("compute", 0.0) + row.durations.get("write", 0.0)
        past.append(Past(row.action != "DIFFERENTIAL", spent, row.rows_estimated, first=row.sequence == 1))
        if GIVEN_UP in row.durations:
            past.append(Past(False, row.durations[GIVEN_UP], row.rows_estimated, given_up=True))
    return past


def _sources(definition: Definition, interval: Interval, runtime: Runtime) -> list[Snapshot]:
    """All sources at the new versions. Those that have not changed are looked at only where their size may decide."""
    changed = list(interval.new_snapshots.values())
    rows, settings = interval.estimated_rows, runtime.settings
    most = rows is None or rows > settings.full_refresh_threshold * sum(s.row_count for s in changed)
    if not most and sum(s.size_in_bytes for s in changed) >= settings.full_refresh_min_bytes:
        return changed
    rest = [n for n in interval.new.inputs if n not in interval.new_snapshots]
    return changed + [
        runtime.tables.snapshot(definition.sources[n].location, interval.new.inputs[n]) for n in rest
    ]


def check_agreement(table: StreamTable, interval: Interval) -> None:
    """Every path to a base table must have read the same version of it."""
    if interval.disagreement:
        raise RefreshError(
            f"`{shown(table.name)}` would mix {interval.disagreement}.",
            hint="A stream table above it is suspended or failed; resume and refresh it first.",
            code="VERSIONS_DISAGREE",
        )


def _has_data(name: str, old: Frontier, new: Frontier, definition: Definition, runtime: Runtime) -> bool:
    """False when the commits between only moved files or changed properties."""
    before, after = old.inputs[name].version, new.inputs[name].version
    if not 0 < after - before <= _COMMITS_LOOKED_AT:
        return True
    commits = commits_after(
        runtime.tables, definition.sources[name].location, before, after, new.inputs[name].table_id
    )
    return any(commit.changes_data for commit in commits)


def _size(interval: Interval, name: str) -> int:
    return max(interval.old_snapshots[name].size_in_bytes, interval.new_snapshots[name].size_in_bytes)
