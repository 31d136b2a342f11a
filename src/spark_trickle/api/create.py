"""From a query to a registered, filled table. Nothing is half-created: a failure takes everything back."""

from __future__ import annotations

import uuid
import warnings
from dataclasses import dataclass

from pyspark.sql import DataFrame

from spark_trickle.api.cycles import check_cycle
from spark_trickle.catalog import DefinitionKind, DiamondConsistency, RefreshMode, StreamTable
from spark_trickle.catalyst.plan import Plan
from spark_trickle.errors import StateError, TableNameError, UnsupportedQueryError
from spark_trickle.frontier import Frontier
from spark_trickle.names import TableName, check_new_name, parse_name, shown
from spark_trickle.refresh.circular import mark_cycles
from spark_trickle.refresh.compute import layout_of
from spark_trickle.refresh.definitions import Prepared
from spark_trickle.refresh.described import properties_of
from spark_trickle.refresh.functions import Build, reference_to
from spark_trickle.refresh.graph import read_graph
from spark_trickle.refresh.remember import dependencies_of
from spark_trickle.refresh.results import RefreshResult
from spark_trickle.refresh.runtime import Runtime
from spark_trickle.refresh.upstream import refresh_with_upstream
from spark_trickle.storage.warehouse import check_database, create_table, drop_table, table_exists


@dataclass(frozen=True, slots=True)
class Request:
    """What `create_stream_table` was asked for, checked."""

    name: TableName
    query: str | DataFrame | Build
    schedule: str
    refresh_mode: RefreshMode
    initialize: bool
    diamond_consistency: DiamondConsistency


def create(request: Request, runtime: Runtime, replacing: StreamTable | None) -> RefreshResult | None:
    """Understand the query, create the table, register it, fill it."""
    name = str(request.name)
    check_new_name(request.name)
    check_database(runtime.spark, request.name)
    if replacing is None and table_exists(runtime.spark, request.name):
        raise TableNameError(
            f"`{request.name.short}` already exists and is not a stream table.",
            hint="Choose another name, or drop that table or view first.",
            code="NAME_TAKEN",
        )
    spark = runtime.spark
    settings = runtime.meaning()
    namespace = (spark.catalog.currentCatalog(), spark.catalog.currentDatabase())
    plan = None
    kind: DefinitionKind
    if isinstance(request.query, str):
        kind, text = "sql", request.query
        prepared = runtime.definitions.of_text(text, settings, *namespace)
    elif callable(request.query):
        kind, text = "function", reference_to(request.query)
        prepared = runtime.definitions.of_function(text, settings, *namespace)
    else:
        kind, text = "dataframe", "a DataFrame"
        prepared, plan = runtime.definitions.of_frame(request.query, settings)
    _check(request, prepared, runtime)
    now = runtime.clock()
    table = StreamTable(
        id=uuid.uuid4().hex if replacing is None else replacing.id,
        name=name,
        location="",
        query=text,
        definition_kind=kind,
        catalog_name=namespace[0],
        database_name=namespace[1],
        session_settings=settings,
        schedule=request.schedule,
        refresh_mode=request.refresh_mode,
        diamond_consistency=request.diamond_consistency,
        fingerprint=prepared.definition.fingerprint,
        created_at=now,
        updated_at=now,
    )
    if replacing is not None:
        return _redefine(table, replacing, prepared, plan, request.initialize, runtime)
    return _create(table, request, prepared, plan, runtime)


def _create(
    table: StreamTable, request: Request, prepared: Prepared, plan: Plan | None, runtime: Runtime
) -> RefreshResult | None:
    sources = dependencies_of(table.id, prepared, Frontier(), read_graph(runtime.catalog).tables)
    with runtime.catalog.begin() as catalog:
        catalog.stream_tables.add(table)
        catalog.dependencies.replace(table.id, sources)
    try:
        runtime.definitions.remember_frame(table.id, plan)
        location = create_table(
            runtime.spark, request.name, layout_of(prepared.definition), properties_of(table)
        )
        with runtime.catalog.begin() as catalog:
            catalog.stream_tables.update(table.id, location=location)
        return refresh_with_upstream(table.name, runtime) if request.initialize else None
    except BaseException:
        remove(table, runtime)
        raise


_REDEFINED = (
    "query", "definition_kind", "catalog_name", "database_name", "session_settings", "schedule", "refresh_mode",
    "diamond_consistency",
)  # fmt: skip


def _redefine(
    table: StreamTable, old: StreamTable, prepared: Prepared, plan: Plan | None, fill: bool, runtime: Runtime
) -> RefreshResult | None:
    """Another definition for the same table. Until it is filled, the old one stays as it was."""
    kept = runtime.definitions.remembered_frame(old.id)
    status = "INITIALIZING" if old.frontier is None else "ACTIVE"
    changes = {name: getattr(table, name) for name in _REDEFINED} | {"status": status}
    sources = dependencies_of(table.id, prepared, Frontier(), read_graph(runtime.catalog).tables)
    with runtime.catalog.begin() as catalog:
        before = catalog.dependencies.of(old.id)
        reason = "its definition was replaced"
        catalog.stream_tables.update(old.id, needs_reinit=True, reinit_reason=reason, **changes)
        catalog.dependencies.replace(old.id, sources)
    runtime.definitions.remember_frame(old.id, plan)
    try:
        mark_cycles(runtime)
        return refresh_with_upstream(table.name, runtime) if fill else None
    except BaseException:
        fields = (*_REDEFINED, "status", "needs_reinit", "reinit_reason", "last_error", "consecutive_errors")
        with runtime.catalog.begin() as catalog:
            catalog.stream_tables.update(old.id, **{name: getattr(old, name) for name in fields})
            catalog.dependencies.replace(old.id, before)
        mark_cycles(runtime)
        runtime.definitions.remember_frame(old.id, kept)
        raise


def remove(table: StreamTable, runtime: Runtime) -> None:
    """The Delta table first, then what the catalog knows of it: a crash between leaves something to drop."""
    drop_table(runtime.spark, parse_name(table.name))
    runtime.definitions.forget(table.id)
    with runtime.catalog.begin() as catalog:
        catalog.stream_tables.remove(table.id)
    mark_cycles(runtime)


def _check(request: Request, prepared: Prepared, runtime: Runtime) -> None:
    name, definition = str(request.name), prepared.definition
    graph = read_graph(runtime.catalog)
    together = check_cycle(name, definition, graph, runtime)
    if request.refresh_mode == "DIFFERENTIAL" and definition.recomputed:
        raise UnsupportedQueryError(
            f"`{request.name.short}` cannot be maintained differentially: {definition.recomputed}.",
            hint="Use refresh_mode AUTO, which recomputes it and says so.",
            code="NOT_DIFFERENTIAL",
        )
    if definition.volatile and runtime.settings.volatile_function_policy == "warn":
        for what in definition.volatile:
            warnings.warn(f"{what}: every refresh of `{request.name.short}` recomputes it.", stacklevel=4)
    for source in definition.sources.keys() - together:
        upstream = graph.tables.get(source)
        if upstream is not None and upstream.frontier is None and request.initialize:
            raise StateError(
                f"`{shown(source)}` has not been filled yet, so `{request.name.short}` cannot read it.",
                hint=f"Refresh `{shown(source)}` first, or create with initialize=False.",
                code="UPSTREAM_NOT_READY",
            )
