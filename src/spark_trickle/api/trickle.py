"""The verbs, in Python."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

from spark_trickle.api.checks import check_active, check_differential, point_of
from spark_trickle.api.explain import Explanation, explain_definition
from spark_trickle.api.options import check_consistency, check_mode, check_schedule, check_status
from spark_trickle.api.results import (
    cycles_frame,
    diamonds_frame,
    findings_frame,
    graph_frame,
    history_frame,
    status_frame,
)
from spark_trickle.api.snapshots import Snapshot, take_snapshot
from spark_trickle.catalog import Catalog, StreamTable
from spark_trickle.clock import Clock, system_clock
from spark_trickle.config import Settings, load_settings
from spark_trickle.errors import DefinitionError, StateError, TableNameError
from spark_trickle.names import TableName, did_you_mean, parse_name, shown

if TYPE_CHECKING:
    import pandas as pd
    from pyspark.sql import DataFrame, SparkSession

    from spark_trickle.refresh.results import RefreshResult, VerifyResult
    from spark_trickle.refresh.runtime import Runtime
    from spark_trickle.scheduler.events import Event
    from spark_trickle.scheduler.overview import Overview

_UNCHANGED = "\0unchanged"


def _ignore(_about: object) -> None:
    """The default listener."""


class Trickle:
    """Stream tables over a Spark session, or over an embedded one that starts when a verb needs it."""

    def __init__(
        self,
        spark: SparkSession | None = None,
        *,
        home: str | Path | None = None,
        catalog: str | None = None,
        settings: Settings | Mapping[str, object] | None = None,
        clock: Clock = system_clock,
        on_step: Callable[[str], None] | None = None,
        lasting: bool = True,
    ) -> None:
        self._given = spark
        self._home = Path(home or ".trickle").absolute()
        self._asked = settings
        self._settings = self._load_settings()
        self._clock = clock
        self._on_step = on_step
        self._lasting = lasting
        self._lazy_runtime: Runtime | None = None
        if spark is not None:
            from spark_trickle.storage.embedded import adopt

            adopt(spark)
        self._catalog = Catalog.open(catalog or f"sqlite:///{self._home / 'catalog.db'}", clock)

    def reload_settings(self) -> None:
        """Read `trickle.toml` and the environment again; what was given in Python stays."""
        self._settings = self._load_settings()
        if self._lazy_runtime is not None:
            self._lazy_runtime.settings = self._settings

    def _load_settings(self) -> Settings:
        if isinstance(self._asked, Settings):
            return self._asked
        return load_settings(self._home, os.environ, self._asked)

    # Spark

    @property
    def spark(self) -> SparkSession:
        """The Spark session; an embedded one is started the first time it is asked for."""
        return self._runtime.spark

    def sql(self, statement: str) -> DataFrame:
        """Run any SQL statement in the session."""
        from pyspark.errors import PySparkException

        from spark_trickle.catalyst.spark_errors import query_error

        try:
            return self.spark.sql(statement)
        except PySparkException as error:
            if self._runtime.rescan is None or error.getCondition() != "TABLE_OR_VIEW_NOT_FOUND":
                raise query_error(error) from None
        try:
            self._runtime.rescan()
            return self.spark.sql(statement)
        except PySparkException as error:
            raise query_error(error) from None

    @property
    def _runtime(self) -> Runtime:
        if self._lazy_runtime is None:
            from pyspark.sql import SparkSession

            from spark_trickle.refresh.runtime import Runtime
            from spark_trickle.storage.embedded import adopt, start_session
            from spark_trickle.storage.warehouse import register_folders

            spark, rescan = self._given or SparkSession.getActiveSession(), None
            if spark is not None:
                self._given = adopt(spark)
            else:
                spark = start_session(self._home)
                rescan = partial(register_folders, spark, self._home / "warehouse")
                rescan()
            runtime = Runtime(spark, self._catalog, self._settings, self._home, self._clock, rescan=rescan)
            if self._on_step is not None:
                runtime.on_step = self._on_step
            self._lazy_runtime = runtime
            runtime.on_step("started")
        return self._lazy_runtime

    # Definitions

    def create_stream_table(
        self,
        name: str,
        query: str | DataFrame | Callable[[SparkSession], DataFrame],
        schedule: str = "1m",
        refresh_mode: str = "AUTO",
        initialize: bool = True,
        *,
        diamond_consistency: str | None = None,
        or_replace: bool = False,
        if_not_exists: bool = False,
    ) -> RefreshResult | None:
        """Define a stream table, create its Delta table and fill it.

        The query is SQL text, a function of a module that is given a Spark session and returns a DataFrame, or
        a DataFrame, which only this process can refresh.
        """
        from spark_trickle.api.create import Request, create
        from spark_trickle.refresh.ready import get_ready

        if or_replace and if_not_exists:
            raise DefinitionError(
                "`or_replace` and `if_not_exists` exclude each other.",
                hint="Give one of them.",
                code="INVALID_OPTION",
            )
        if not isinstance(query, str) and not hasattr(query, "_jdf") and not callable(query):
            raise DefinitionError(
                f"A query is SQL text, a function or a DataFrame, not {type(query).__name__}.",
                hint="Pass a SELECT as a string.",
                code="INVALID_QUERY",
            )
        request_mode, request_schedule = check_mode(refresh_mode), self._schedule(schedule)
        consistency = check_consistency(diamond_consistency or self._settings.diamond_consistency)
        full = self._qualified(name)
        existing = self._lookup(full)
        if existing is not None and if_not_exists:
            return None
        if existing is not None and not or_replace:
            raise TableNameError(
                f"The stream table `{full.short}` exists already.",
                hint="Use or_replace=True to define it anew, or if_not_exists=True to keep it.",
                code="NAME_TAKEN",
            )
        request = Request(full, query, request_schedule, request_mode, initialize, consistency)
        result = create(request, self._runtime, existing)
        table = self._lookup(full)
        if table is not None and self._lasting:
            get_ready(table, self._runtime)
        return result

    def alter_stream_table(
        self,
        name: str,
        *,
        schedule: str = _UNCHANGED,
        refresh_mode: str = _UNCHANGED,
        status: str = _UNCHANGED,
        diamond_consistency: str = _UNCHANGED,
    ) -> None:
        """Change what is given. Setting the status to ACTIVE resets the error count."""
        table = self._table(name)
        changes: dict[str, object] = {}
        if schedule != _UNCHANGED:
            changes["schedule"] = self._schedule(schedule)
        if refresh_mode != _UNCHANGED:
            changes["refresh_mode"] = check_mode(refresh_mode)
            if changes["refresh_mode"] == "DIFFERENTIAL":
                check_differential(table, self._runtime.definitions.of(table).definition)
        if diamond_consistency != _UNCHANGED:
            changes["diamond_consistency"] = check_consistency(diamond_consistency)
        if status != _UNCHANGED:
            changes["status"] = check_status(status)
            if changes["status"] == "ACTIVE":
                changes |= {"consecutive_errors": 0, "last_error": "", "failed_at": self._clock()}
                if table.frontier is None:
                    changes["status"] = "INITIALIZING"
        if not changes:
            raise DefinitionError(
                "Nothing was asked to change.",
                hint="Give schedule, refresh_mode, diamond_consistency or status.",
                code="NOTHING_TO_CHANGE",
            )
        with self._catalog.begin() as catalog:
            catalog.stream_tables.update(table.id, **changes)

    def suspend(self, name: str) -> None:
        self.alter_stream_table(name, status="SUSPENDED")

    def resume(self, name: str) -> None:
        self.alter_stream_table(name, status="ACTIVE")

    def drop_stream_table(self, name: str, cascade: bool = False) -> None:
        """Remove a stream table and its Delta table; with `cascade` also those that read it."""
        from spark_trickle.api.create import remove
        from spark_trickle.refresh.graph import read_graph

        table = self._table(name)
        graph = read_graph(self._catalog)
        below = [name for name in graph.dependencies.downstream(table.name) if name != table.name]
        if below and not cascade:
            listed = ", ".join(f"`{shown(n)}`" for n in below)
            raise StateError(
                f"`{shown(table.name)}` is read by {listed}.",
                hint="Drop those first, or use cascade=True.",
                code="HAS_DEPENDENTS",
            )
        for dependent in reversed(below):
            remove(graph.tables[dependent], self._runtime)
        remove(table, self._runtime)

    # Refreshing and proving

    def refresh_stream_table(self, name: str) -> RefreshResult:
        """Refresh what the stream table reads, then the table itself, at one set of base versions."""
        from spark_trickle.refresh.upstream import refresh_with_upstream

        table = self._table(name)
        check_active(table)
        return refresh_with_upstream(table.name, self._runtime)

    def run(
        self,
        stop: threading.Event | None = None,
        on_event: Callable[[Event], None] = _ignore,
        on_tick: Callable[[Overview], None] = _ignore,
    ) -> None:
        """Keep every stream table as fresh as its schedule asks, until `stop` is set or Ctrl-C is pressed.

        What is being refreshed then is finished. Any number of processes may do this on one catalog.
        """
        from spark_trickle.scheduler.daemon import Daemon

        Daemon(self._runtime, on_event, on_tick).run(stop or threading.Event())

    def verify(self, name: str, as_of: int | None = None, *, repair: bool = False) -> VerifyResult:
        """Compare the table with its query at its frontier, or as of a past refresh (its id in the history)."""
        from spark_trickle.refresh.verify import verify_table

        table = self._table(name)
        if repair and as_of is not None:
            raise DefinitionError(
                "Only the present can be repaired, not a past refresh.",
                hint="Leave out either `as_of` or `repair`.",
                code="INVALID_OPTION",
            )
        if repair:
            check_active(table)
        version, frontier = point_of(table, as_of, self._catalog)
        prepared = self._runtime.definitions.of(table)
        result = verify_table(table, version, frontier, prepared, self._runtime)
        if repair and not result.equal:
            with self._catalog.begin() as catalog:
                catalog.stream_tables.update(
                    table.id, needs_reinit=True, reinit_reason="verify found differing rows"
                )
            self.refresh_stream_table(name)
        return result

    def explain(self, name_or_query: str) -> Explanation:
        """The plan, the plan of its change, what can be maintained, and what the next refresh would do."""
        from spark_trickle.refresh.definitions import CIRCULAR
        from spark_trickle.refresh.graph import read_graph
        from spark_trickle.refresh.preview import decide, kept_groups, sizes_of, together

        table = self._lookup_text(name_or_query)
        if table is None and len(name_or_query.split()) == 1:
            table = self._table(name_or_query)
        runtime = self._runtime
        if table is not None:
            prepared = runtime.definitions.of(table)
            sizes = sizes_of(prepared.definition, runtime)
            notes = (*together(table.name, read_graph(self._catalog)), *kept_groups(prepared, runtime))
            # A cycle is refreshed as a whole: what one member alone would do says nothing.
            decision = None if CIRCULAR in table.session_settings else decide(table, prepared, runtime)
            return explain_definition(prepared.definition, sizes, decision, notes)
        namespace = (runtime.spark.catalog.currentCatalog(), runtime.spark.catalog.currentDatabase())
        prepared = runtime.definitions.of_text(name_or_query, runtime.meaning(), *namespace)
        return explain_definition(prepared.definition, sizes_of(prepared.definition, runtime))

    # Looking

    def status(self) -> pd.DataFrame:
        with self._catalog.begin(write=False) as catalog:
            tables = catalog.stream_tables.all()
            last = {t.id: catalog.refreshes.last_completed(t.id) for t in tables}
        return status_frame(tables, last)

    def refresh_history(self, name: str | None = None, limit: int | None = None) -> pd.DataFrame:
        """Past refreshes, newest first."""
        table = self._table(name) if name is not None else None
        with self._catalog.begin(write=False) as catalog:
            names = {t.id: t.name for t in catalog.stream_tables.all()}
            rows = catalog.refreshes.of(table.id, limit) if table else catalog.refreshes.all(limit)
        return history_frame(rows, names)

    def graph(self) -> pd.DataFrame:
        """Who reads what: one row per source of a stream table."""
        with self._catalog.begin(write=False) as catalog:
            names = {t.id: t.name for t in catalog.stream_tables.all()}
            return graph_frame(catalog.dependencies.all(), names)

    def diamond_groups(self) -> pd.DataFrame:
        """Stream tables that reach a common source along several paths and meet again."""
        from spark_trickle.graph.diamonds import diamond_groups
        from spark_trickle.refresh.graph import read_graph

        graph = read_graph(self._catalog)
        atomic = {name for name, table in graph.tables.items() if table.diamond_consistency == "atomic"}
        return diamonds_frame(diamond_groups(graph.dependencies), atomic)

    def cycle_status(self) -> pd.DataFrame:
        """Stream tables that read each other in a circle, and how their last refresh ended."""
        from spark_trickle.refresh.graph import read_graph

        graph = read_graph(self._catalog)
        cycles = [[graph.tables[name] for name in sorted(cycle)] for cycle in graph.dependencies.cycles()]
        with self._catalog.begin(write=False) as catalog:
            last = {table.id: catalog.refreshes.last_completed(table.id) for c in cycles for table in c}
        return cycles_frame(cycles, last)

    def snapshot(self, names: Sequence[str], *, views: bool = False) -> Snapshot:
        """Several stream tables at the newest versions that agree on everything they have read in common."""
        tables = [self._table(name) for name in ([names] if isinstance(names, str) else names)]
        return take_snapshot(tables, self._runtime, views)

    def doctor(self, *, rebuild: bool = False) -> pd.DataFrame:
        """What is wrong or soon will be. With `rebuild`, tables that say they are stream tables are entered first."""
        from spark_trickle.refresh.doctor import examine
        from spark_trickle.refresh.doctor import rebuild as enter

        if rebuild:
            enter(self._runtime)
        return findings_frame(examine(self._runtime))

    # Ends

    def close(self) -> None:
        """Close the catalog, and Spark if it was started here."""
        if self._lazy_runtime is not None and self._given is None:
            self._lazy_runtime.spark.stop()
        self._lazy_runtime = None
        self._catalog.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _schedule(self, schedule: str) -> str:
        return check_schedule(schedule, self._settings.min_schedule_seconds)

    # Names

    def _qualified(self, name: str) -> TableName:
        """Complete a name. The session decides the namespace once it runs; before, it is the default one."""
        if self._given is None and self._lazy_runtime is None:
            return parse_name(name)
        catalog = self._runtime.spark.catalog
        return parse_name(name, catalog.currentCatalog(), catalog.currentDatabase())

    def _lookup(self, name: TableName) -> StreamTable | None:
        with self._catalog.begin(write=False) as catalog:
            return catalog.stream_tables.get(str(name))

    def _lookup_text(self, text: str) -> StreamTable | None:
        try:
            return self._lookup(self._qualified(text))
        except TableNameError:
            return None

    def _table(self, name: str) -> StreamTable:
        full = self._qualified(name)
        table = self._lookup(full)
        if table is not None:
            return table
        with self._catalog.begin(write=False) as catalog:
            known = [shown(t.name) for t in catalog.stream_tables.all()]
        raise TableNameError(
            f"There is no stream table `{full.short}`.",
            hint=did_you_mean(full.short, known) or "`trickle status` lists them.",
            code="UNKNOWN_STREAM_TABLE",
        )
