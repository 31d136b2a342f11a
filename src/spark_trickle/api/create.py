"""From a query to a registered, filled table. Nothing is half-created: a failure takes everything back."""

from __future__ import annotations

import uuid
from dataclasses import dataclass

from pyspark.sql import DataFrame

from spark_trickle.catalog import RefreshMode, StreamTable
from spark_trickle.catalyst.sessions import meaning_of
from spark_trickle.errors import DefinitionError, StateError, TableNameError, UnsupportedQueryError
from spark_trickle.frontier import Frontier
from spark_trickle.graph.dependencies import Dependencies
from spark_trickle.names import TableName, parse_name, shown
from spark_trickle.refresh.compute import layout_of
from spark_trickle.refresh.definitions import Prepared
from spark_trickle.refresh.results import RefreshResult
from spark_trickle.refresh.run import dependencies_of
from spark_trickle.refresh.runtime import Runtime
from spark_trickle.refresh.upstream import graph_of, refresh_with_upstream
from spark_trickle.storage.warehouse import check_database, create_table, drop_table, table_exists


@dataclass(frozen=True, slots=True)
class Request:
    """What `create_stream_table` was asked for, checked."""

    name: TableName
    query: str | DataFrame
    schedule: str
    refresh_mode: RefreshMode
    initialize: bool


def create(request: Request, runtime: Runtime, replacing: StreamTable | None) -> RefreshResult | None:
    """Understand the query, create the table, register it, fill it."""
    name = str(request.name)
    check_database(runtime.spark, request.name)
    if replacing is None and table_exists(runtime.spark, request.name):
        raise TableNameError(
            f"`{request.name.short}` already exists and is not a stream table.",
            hint="Choose another name, or drop that table or view first.",
            code="NAME_TAKEN",
        )
    settings = meaning_of(runtime.spark)
    namespace = (runtime.spark.catalog.currentCatalog(), runtime.spark.catalog.currentDatabase())
    plan = None
    if isinstance(request.query, str):
        prepared = runtime.definitions.of_text(request.query, settings, *namespace)
    else:
        prepared, plan = runtime.definitions.of_frame(request.query)
    _check(request, prepared, runtime)
    if replacing is not None:
        remove(replacing, runtime)
    now = runtime.clock()
    table = StreamTable(
        id=uuid.uuid4().hex,
        name=name,
        location="",
        query=request.query if isinstance(request.query, str) else "a DataFrame",
        definition_kind="sql" if isinstance(request.query, str) else "dataframe",
        catalog_name=namespace[0],
        database_name=namespace[1],
        session_settings=settings,
        schedule=request.schedule,
        refresh_mode=request.refresh_mode,
        fingerprint=prepared.definition.fingerprint,
        created_at=now,
        updated_at=now,
    )
    sources = dependencies_of(table.id, prepared, Frontier(), runtime)
    with runtime.catalog.begin() as catalog:
        catalog.stream_tables.add(table)
        catalog.dependencies.replace(table.id, sources)
    try:
        if plan is not None:
            runtime.definitions.remember_frame(table.id, plan)
        location = create_table(runtime.spark, request.name, layout_of(prepared.definition))
        with runtime.catalog.begin() as catalog:
            catalog.stream_tables.update(table.id, location=location)
        return refresh_with_upstream(name, runtime)[-1] if request.initialize else None
    except BaseException:
        with runtime.catalog.begin(write=False) as catalog:
            current = catalog.stream_tables.get_by_id(table.id)
        if current is not None:
            remove(current, runtime)
        raise


def remove(table: StreamTable, runtime: Runtime) -> None:
    """The Delta table first, then what the catalog knows of it: a crash between leaves something to drop."""
    drop_table(runtime.spark, parse_name(table.name))
    runtime.definitions.forget(table.id)
    with runtime.catalog.begin() as catalog:
        catalog.stream_tables.remove(table.id)


def _check(request: Request, prepared: Prepared, runtime: Runtime) -> None:
    name, definition = str(request.name), prepared.definition
    if name in definition.sources:
        raise DefinitionError(
            f"`{request.name.short}` cannot read itself.",
            hint="Use another name, or a recursive CTE.",
            code="CYCLE",
        )
    graph, tables = graph_of(runtime)
    reads = {t: [s for s, d in graph.edges() if d == t] for t in tables}
    Dependencies({**reads, name: list(definition.sources)}).check_acyclic()
    if request.refresh_mode == "DIFFERENTIAL" and definition.recomputed:
        raise UnsupportedQueryError(
            f"`{request.name.short}` cannot be maintained differentially: {definition.recomputed}.",
            hint="Use refresh_mode AUTO, which recomputes it and says so.",
            code="NOT_DIFFERENTIAL",
        )
    for source in definition.sources:
        upstream = tables.get(source)
        if upstream is not None and upstream.frontier is None and request.initialize:
            raise StateError(
                f"`{shown(source)}` has not been filled yet, so `{request.name.short}` cannot read it.",
                hint=f"Refresh `{shown(source)}` first, or create with initialize=False.",
                code="UPSTREAM_NOT_READY",
            )
