"""Stream tables that read each other in a circle, refreshed together: the least sets that satisfy all their queries.

Never one by one: facts that support only each other would stay after what they came from is gone.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import datetime

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame

from spark_trickle.catalog import StreamTable
from spark_trickle.catalyst.holder import Difference
from spark_trickle.catalyst.spark_errors import condition_of, sentence_of
from spark_trickle.errors import RefreshError
from spark_trickle.frontier import Frontier, SourceVersion
from spark_trickle.incremental.monotone import shrinks_with
from spark_trickle.names import WEIGHT, shown
from spark_trickle.refresh.attempt import Attempt, Steps
from spark_trickle.refresh.choose import Action, Decision
from spark_trickle.refresh.circular import check_member, check_types, mark_cycles
from spark_trickle.refresh.compute import Computation, layout_of
from spark_trickle.refresh.definitions import Prepared
from spark_trickle.refresh.ends import Moment, VersionReader
from spark_trickle.refresh.fixpoint import Fixpoint, NoFixpoint
from spark_trickle.refresh.interval import Interval, check_agreement
from spark_trickle.refresh.pins import Pins
from spark_trickle.refresh.recover import recovered
from spark_trickle.refresh.remember import find, remember, remember_failure
from spark_trickle.refresh.results import RefreshResult
from spark_trickle.refresh.runtime import Runtime, lease_on, owner_name, refreshing
from spark_trickle.refresh.skip import reached_meanwhile, skipped
from spark_trickle.refresh.vector import Agreement, filled, pinned
from spark_trickle.refresh.write import GONE, refuse_silent_full, stamp_of
from spark_trickle.storage.apply import Written, add_change, overwrite
from spark_trickle.storage.changes import changes_between
from spark_trickle.storage.locks import write_lock
from spark_trickle.storage.tables import Snapshot, VersionUnavailable


def refresh_cycle(
    names: Sequence[str],
    pins: Pins,
    upstream: Mapping[str, StreamTable],
    runtime: Runtime,
    unless_reached: datetime | None = None,
) -> list[RefreshResult]:
    """Bring all members to the pinned versions, alone; see `refresh_table`."""
    start = time.monotonic()
    mark_cycles(runtime)
    with ExitStack() as leases:
        for name in sorted(names):
            table = find(name, runtime)
            holder = leases.enter_context(lease_on(runtime, refreshing(table.id)))
            if holder is not None:
                return [skipped(table, holder, start, runtime)]
        tables = [find(name, runtime) for name in names]
        if unless_reached and all(t.data_timestamp and t.data_timestamp >= unless_reached for t in tables):
            return [reached_meanwhile(table, start) for table in tables]
        return _Round(names, pins, upstream, runtime).refresh()


@dataclass(frozen=True)
class _Measured:
    """What lies between the old and the new versions of all that the members read from outside."""

    new: Mapping[str, SourceVersion]
    bases: Mapping[str, SourceVersion]
    through: Mapping[str, SourceVersion]
    changed: frozenset[str]
    rebuild: str
    """Why the stored rows cannot be continued from, if so."""


class _Round:
    """One refresh of one cycle."""

    def __init__(
        self, names: Sequence[str], pins: Pins, upstream: Mapping[str, StreamTable], runtime: Runtime
    ) -> None:
        self._runtime = runtime
        self._pins = pins
        self._upstream = upstream
        states = {name: recovered(find(name, runtime), runtime) for name in names}
        self._tables = {name: state.table for name, state in states.items()}
        self._foreign = next((s.foreign_write for s in states.values() if s.foreign_write), "")
        self._steps = Steps(runtime)

    def refresh(self) -> list[RefreshResult]:
        with self._runtime.catalog.begin() as catalog:
            rows = {
                name: catalog.refreshes.start(table.id, table.sequence + 1, owner_name()).id
                for name, table in self._tables.items()
            }
        try:
            with self._steps.step("measure"):
                prepared = {n: self._runtime.definitions.of(t) for n, t in self._tables.items()}
                for name, one in prepared.items():
                    check_member(name, one.definition, frozenset(prepared))
                check_types(prepared)
                measured = self._measure(prepared)
            decision, written, iterations = self._carry_out(prepared, measured)
        except BaseException as error:
            translated = error
            for name, table in self._tables.items():
                translated = remember_failure(table, rows[name], error, self._steps, self._runtime)
            raise translated from (None if translated is error else error)
        self._runtime.on_step("remember")
        frontiers = self._frontiers(prepared, measured, written)
        results = []
        for name, one in prepared.items():
            attempt = self._attempt(name, one, frontiers[name])
            results.append(remember(attempt, decision, written[name], rows[name], self._pins.at, iterations))
        self._runtime.on_step("done")
        return results

    def _attempt(self, name: str, one: Prepared, frontier: Frontier) -> Attempt:
        interval = Interval(frontier, self._tables[name].frontier, ())
        return Attempt(self._tables[name], one, interval, self._steps, self._runtime)

    # Measure

    def _measure(self, prepared: Mapping[str, Prepared]) -> _Measured:
        new: dict[str, SourceVersion] = {}
        agreement = Agreement()
        for name, one in prepared.items():
            pins = pinned(self._pins, one.definition, self._upstream, self._runtime)
            for source in one.definition.sources.keys() - self._tables.keys():
                new[source], below = self._outside(source, name, pins)
                agreement.read(source, new[source], below)
            check_agreement(self._tables[name], Interval(Frontier(), None, (), agreement.problem))
        changed, rebuild = self._changed(prepared, new, agreement.bases)
        return _Measured(new, agreement.bases, agreement.through, changed, rebuild)

    def _outside(self, source: str, reader: str, pins: Pins) -> tuple[SourceVersion, Frontier | None]:
        table = self._upstream.get(source)
        if table is None:
            return pins.bases[source], None
        version, frontier = filled(table, self._tables[reader])
        return SourceVersion(table.table_id, version), frontier

    def _changed(
        self,
        prepared: Mapping[str, Prepared],
        new: Mapping[str, SourceVersion],
        bases: Mapping[str, SourceVersion],
    ) -> tuple[frozenset[str], str]:
        """The sources outside with another version than read last, and why the stored rows do not count."""
        if self._foreign:
            return frozenset(new), self._foreign
        old: dict[str, SourceVersion] = {}
        for name, table in self._tables.items():
            if table.frontier is None:
                return frozenset(new), "it is filled for the first time"
            if table.needs_reinit:
                return frozenset(new), table.reinit_reason or "asked for"
            if table.fingerprint != prepared[name].definition.fingerprint:
                return frozenset(new), "the definition means something else than before"
            if table.frontier.bases.keys() != bases.keys():
                return frozenset(new), "the set of sources changed"
            for source, version in table.frontier.inputs.items():
                other = self._tables.get(source)
                read = SourceVersion(other.table_id, other.table_version or 0) if other else version
                if old.setdefault(source, version) != version or read != version:
                    return frozenset(new), "its members have read different versions"
        if (
            any(new[n].table_id != old[n].table_id for n in new.keys() & old.keys())
            or new.keys() - old.keys()
        ):
            return frozenset(new), "a source was replaced by another table"
        return frozenset(n for n, version in new.items() if old[n] != version), ""

    # Compute and write

    def _carry_out(
        self, prepared: Mapping[str, Prepared], measured: _Measured
    ) -> tuple[Decision, dict[str, Written | None], int]:
        untouched: dict[str, Written | None] = dict.fromkeys(self._tables)
        if not measured.changed and not measured.rebuild:
            return Decision(Action.NO_DATA, "no source has changed"), untouched, 0
        moment = {name: self._moment(one, measured) for name, one in prepared.items()}
        tables, most = self._runtime.tables, self._runtime.settings.local_change_rows
        outside = {
            name: VersionReader(tables.in_session(one.planner.spark), Moment(), moment[name], most)
            for name, one in prepared.items()
        }
        lost = measured.rebuild or self._may_lose(prepared, measured)
        decision = (
            Decision(Action.REINITIALIZE if self._filled else Action.FULL, measured.rebuild)
            if measured.rebuild
            else Decision(Action.FULL, f"the cycle is evaluated anew: {lost}")
            if lost
            else Decision(Action.DIFFERENTIAL, "its sources only have more rows than before")
        )
        for table in self._tables.values():
            refuse_silent_full(table, decision)
        with Fixpoint(prepared, outside, self._runtime.settings.local_change_rows) as fixpoint:
            with self._steps.step("compute"):
                begin = fixpoint.nothing() if lost else self._stored(prepared)
                found = self._solved(fixpoint, begin)
            with self._steps.step("write"):
                written = self._write(prepared, measured, found, decision)
        return decision, written, fixpoint.iterations

    @property
    def _filled(self) -> bool:
        return any(table.frontier is not None for table in self._tables.values())

    def _solved(self, fixpoint: Fixpoint, begin: Mapping[str, DataFrame]) -> dict[str, DataFrame]:
        most = self._runtime.settings.max_fixpoint_iterations
        try:
            return fixpoint.solve(begin, most)
        except NoFixpoint:
            members = ", ".join(f"`{shown(name)}`" for name in self._tables)
            raise RefreshError(
                f"The cycle of {members} still finds new rows after {most} iterations.",
                hint="Bound what its queries can derive, or raise the setting `max_fixpoint_iterations`.",
                code="NO_FIXPOINT",
            ) from None

    def _may_lose(self, prepared: Mapping[str, Prepared], measured: _Measured) -> str:
        """Why something that held before may not hold any more; empty when that cannot be."""
        for name, one in prepared.items():
            if self._tables[name].refresh_mode == "FULL":
                return f"the refresh mode of `{shown(name)}` is FULL"
            operator = shrinks_with(one.definition.relation, measured.changed)
            if operator is not None:
                return f"more rows may mean fewer in `{shown(name)}`"
            for source in measured.changed & one.definition.sources.keys():
                table = self._tables[name]
                location = one.definition.sources[source].location
                assert table.frontier is not None  # noqa: S101 - else there is a reason to rebuild
                try:
                    old = self._runtime.tables.snapshot(location, table.frontier.inputs[source])
                except VersionUnavailable as gone:
                    return f"the version read last cannot be read any more: {gone}"
                new = self._runtime.tables.snapshot(location, measured.new[source])
                columns = [c.name for c in one.definition.columns_of(source)]
                tables = self._runtime.tables.in_session(one.planner.spark)
                try:
                    change = changes_between(tables, old, new, columns)
                    lost = change is not None and bool(change.where(f"{WEIGHT} < 0").limit(1).collect())
                except (PySparkException, Py4JError) as error:
                    if not condition_of(error).startswith(GONE):
                        raise
                    return f"files of the version read last are gone: {sentence_of(error)}"
                if lost:
                    return f"rows of `{shown(source)}` were removed"
        return ""

    def _moment(self, one: Prepared, measured: _Measured) -> Moment:
        sources = one.definition.sources
        read = {
            name: self._runtime.tables.snapshot(sources[name].location, measured.new[name])
            for name in sources
            if name in measured.new
        }
        return Moment(read, self._pins.at)

    def _stored(self, prepared: Mapping[str, Prepared]) -> dict[str, DataFrame]:
        rows = {}
        for name, one in prepared.items():
            tables = self._runtime.tables.in_session(one.planner.spark)
            rows[name] = tables.rows(tables.latest_snapshot(self._tables[name].location))
        return rows

    def _write(
        self,
        prepared: Mapping[str, Prepared],
        measured: _Measured,
        found: Mapping[str, DataFrame],
        decision: Decision,
    ) -> dict[str, Written | None]:
        """Every member once, if it changes. What each of them reads of the others is what they will have become."""
        changes = {name: self._difference(prepared[name], name, found[name]) for name in prepared}
        expected = {
            name: Written(change.against.version + 1, 0, 0) if change else None
            for name, change in changes.items()
        }
        frontiers = self._frontiers(prepared, measured, expected)
        written: dict[str, Written | None] = dict.fromkeys(self._tables)
        for name, change in changes.items():
            if change is None:
                continue
            table, definition = self._tables[name], prepared[name].definition
            stamp = stamp_of(self._attempt(name, prepared[name], frontiers[name]), decision)
            with write_lock(self._runtime.locks, table.id):
                layout, tables = layout_of(definition), self._runtime.tables
                if change.everything:
                    written[name] = overwrite(tables, table.location, layout, change.rows, stamp)
                else:
                    written[name] = add_change(tables, change.against, layout, Difference(change.rows), stamp)
                self._runtime.on_step("committed")
        return written

    def _difference(self, one: Prepared, name: str, rows: DataFrame) -> _Change | None:
        """What the member's table lacks or has too much; its whole content where that is not to be compared."""
        stored = self._runtime.tables.latest_snapshot(self._tables[name].location)
        same = self._runtime.tables.rows(stored).dtypes == layout_of(one.definition).schema_types
        if self._tables[name].table_version is None or not same:
            return _Change(stored, rows, everything=True)
        nothing = Moment()
        with Computation(one, self._runtime.tables, nothing, nothing, self._runtime.settings) as computation:
            change = computation.against(rows, stored)
        return None if change is None else _Change(stored, change.rows)

    def _frontiers(
        self,
        prepared: Mapping[str, Prepared],
        measured: _Measured,
        written: Mapping[str, Written | None],
    ) -> dict[str, Frontier]:
        """What each member will have read: the outside, and the other members as this refresh leaves them."""
        after = {}
        for name, table in self._tables.items():
            done = written[name]
            version = done.version if done else table.table_version or 0
            after[name] = SourceVersion(
                table.table_id or self._runtime.tables.latest(table.location).table_id, version
            )
        every = {**measured.new, **after}
        frontiers = {}
        for name, one in prepared.items():
            inputs = {source: every[source] for source in one.definition.sources}
            others = {other: version for other, version in after.items() if other != name}
            frontiers[name] = Frontier(inputs, measured.bases, through={**measured.through, **others})
        return frontiers


@dataclass(frozen=True)
class _Change:
    """What to write to a member: a change of the version it was compared with, or its whole content."""

    against: Snapshot
    rows: DataFrame
    everything: bool = False
