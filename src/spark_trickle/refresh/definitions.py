"""A stream table's definition, understood once per process and rechecked cheaply before every use."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from spark_trickle.catalog import StreamTable
from spark_trickle.catalyst.analyze import analyze_frame, analyze_function, analyze_text
from spark_trickle.catalyst.definition import Definition, define
from spark_trickle.catalyst.inner import Inner, inner_groups
from spark_trickle.catalyst.plan import Plan, Planner
from spark_trickle.catalyst.sessions import meaning_of, session_for
from spark_trickle.catalyst.views import view_texts
from spark_trickle.catalyst.volatile import policy_in, refuse_clock_literals
from spark_trickle.errors import QueryError, StateError
from spark_trickle.incremental.inner import above
from spark_trickle.incremental.maintain import Maintenance, maintain
from spark_trickle.names import shown
from spark_trickle.refresh.functions import call
from spark_trickle.storage.tables import DeltaTables

CIRCULAR = "trickle.circular"
"""Among the settings of a definition: it is a member of a cycle, and means the set of its rows."""
_NOT_FOUND = "TABLE_OR_VIEW_NOT_FOUND"

Meaning = Mapping[str, str]
"""Settings that a definition was written under."""


@dataclass(frozen=True)
class Prepared:
    """A definition with the session it is evaluated in."""

    planner: Planner
    definition: Definition
    lasts: bool = True
    """The next refresh will ask for the same object."""

    @cached_property
    def inner(self) -> tuple[Inner, ...]:
        """The groups inside the query that could be kept from one refresh to the next."""
        definition = self.definition
        if not self.lasts or definition.volatile or definition.recomputed:
            return ()
        return inner_groups(self.planner, definition.relation)

    def above(self, kept: Iterable[Inner]) -> Maintenance:
        """How the table is maintained if some groups are sources of their own."""
        chosen = tuple(kept)
        if chosen not in self._above:
            replaced = {id(inner.groups): inner.scan for inner in chosen}
            definition = self.definition
            columns = tuple(definition.totals.columns) if definition.totals else ()
            self._above[chosen] = maintain(above(definition.relation, replaced), columns)
        return self._above[chosen]

    @cached_property
    def _above(self) -> dict[tuple[Inner, ...], Maintenance]:
        return {}


@dataclass(frozen=True)
class _Wording:
    """What a definition's meaning is decided by, apart from the tables, views and functions it names."""

    kind: str
    """sql or function"""
    query: str
    settings: tuple[tuple[str, str], ...]
    catalog: str
    database: str

    @classmethod
    def of(cls, kind: str, query: str, settings: Meaning, catalog: str, database: str) -> _Wording:
        return cls(kind, query, tuple(sorted(settings.items())), catalog, database)


@dataclass(frozen=True)
class _Kept:
    wording: _Wording
    prepared: Prepared
    sources: tuple[tuple[str, str, str, str], ...]
    views: tuple[tuple[str, str], ...]


class Definitions:
    """The definitions this process has met. Views and source schemas are compared before one is reused."""

    def __init__(self, spark: SparkSession, tables: DeltaTables, rescan: Callable[[], None] | None) -> None:
        self._spark = spark
        self._tables = tables
        self._rescan = rescan
        self._kept: dict[str, _Kept] = {}
        self._frames: dict[str, Plan] = {}
        self._newest: _Kept | None = None
        """What was understood last: the first refresh of a new stream table asks for it again."""

    def of_text(self, query: str, settings: Meaning, catalog: str, database: str) -> Prepared:
        """What a text means now, whatever it meant before."""
        return self._understand(_Wording.of("sql", query, settings, catalog, database)).prepared

    def of_function(self, reference: str, settings: Meaning, catalog: str, database: str) -> Prepared:
        """The definition by a `module:function`, called in a session of its own."""
        return self._understand(_Wording.of("function", reference, settings, catalog, database)).prepared

    def of_frame(self, frame: DataFrame, settings: Meaning) -> tuple[Prepared, Plan]:
        """A DataFrame's definition, and the plan to remember it by."""
        plan = analyze_frame(Planner(frame.sparkSession), frame)
        planner = self._planner_like(frame.sparkSession)
        return Prepared(planner, define(planner, plan, policy_in(settings))), plan

    def remember_frame(self, stream_table_id: str, plan: Plan | None) -> None:
        """A DataFrame has no text: its plan lives as long as this process. None: defined by text."""
        self.forget(stream_table_id)
        if plan is not None:
            self._frames[stream_table_id] = plan

    def remembered_frame(self, stream_table_id: str) -> Plan | None:
        return self._frames.get(stream_table_id)

    def forget(self, stream_table_id: str) -> None:
        self._kept.pop(stream_table_id, None)
        self._frames.pop(stream_table_id, None)

    def of(self, table: StreamTable) -> Prepared:
        """The definition as it means now. Raises what Spark says when it means nothing any more."""
        if table.definition_kind == "dataframe":
            return self._of_remembered_frame(table)
        namespace = table.catalog_name, table.database_name
        wording = _Wording.of(table.definition_kind, table.query, table.session_settings, *namespace)
        for kept in (self._kept.get(table.id), self._newest):
            if kept and kept.wording == wording and self._unchanged(kept):
                self._kept[table.id] = kept
                return kept.prepared
        kept = self._kept[table.id] = self._understand(wording)
        return kept.prepared

    def is_steady(self, table: StreamTable, location_of: Callable[[Planner, str], str]) -> bool:
        """This process has understood it, and it means the same as long as its sources stay the same versions.

        `location_of` tells where a named table lies now.
        """
        kept = self._kept.get(table.id)
        if kept is None or kept.views or kept.prepared.definition.uses_time:
            return False
        namespace = table.catalog_name, table.database_name
        wording = _Wording.of(table.definition_kind, table.query, table.session_settings, *namespace)
        planner = kept.prepared.planner
        return kept.wording == wording and all(
            location_of(planner, name) == place for name, place, *_ in kept.sources
        )

    def _understand(self, wording: _Wording) -> _Kept:
        planner, plan = self._analyzed(wording)
        if CIRCULAR in dict(wording.settings):
            plan = planner.distinct(plan)
        prepared = Prepared(planner, define(planner, plan, policy_in(dict(wording.settings))))
        views = tuple(sorted(view_texts(planner, plan).items()))
        self._newest = kept = _Kept(wording, prepared, self._schemas(prepared), views)
        return kept

    def _analyzed(self, wording: _Wording) -> tuple[Planner, Plan]:
        """The analyzed query. A table unknown to Spark may have been created by another process meanwhile."""

        def attempt() -> tuple[Planner, Plan]:
            settings = dict(wording.settings)
            planner = Planner(session_for(self._spark, settings, wording.catalog, wording.database))
            if wording.kind == "function":
                return planner, analyze_function(planner, lambda: call(wording.query, planner.spark))
            refuse_clock_literals(wording.query)
            return planner, analyze_text(planner, wording.query)

        try:
            return attempt()
        except (QueryError, PySparkException) as error:
            if self._rescan is None or (isinstance(error, QueryError) and error.code != _NOT_FOUND):
                raise
            self._rescan()
            return attempt()

    def _of_remembered_frame(self, table: StreamTable) -> Prepared:
        plan = self._frames.get(table.id)
        if plan is None:
            raise StateError(
                f"`{shown(table.name)}` is defined by a DataFrame of another process and can only be refreshed there.",
                hint="Define it by SQL text or by a function, or create it again in this process with or_replace=True.",
                code="DATAFRAME_OF_ANOTHER_PROCESS",
            )
        planner = self._planner_like(self._spark)
        if CIRCULAR in table.session_settings:
            plan = planner.distinct(plan)
        definition = define(planner, plan, policy_in(table.session_settings))
        return Prepared(planner, definition, lasts=False)

    def _planner_like(self, spark: SparkSession) -> Planner:
        """A planner in a session of its own that means the same as the given one."""
        namespace = spark.catalog.currentCatalog(), spark.catalog.currentDatabase()
        return Planner(session_for(spark, meaning_of(spark), *namespace))

    def _unchanged(self, kept: _Kept) -> bool:
        views = tuple((name, kept.prepared.planner.view_text(name)) for name, _ in kept.views)
        return views == kept.views and self._schemas(kept.prepared) == kept.sources

    def _schemas(self, prepared: Prepared) -> tuple[tuple[str, str, str, str], ...]:
        """Name, place, identity and schema of every source: what the analyzer has seen of them."""
        return tuple(
            (name, prepared.planner.table_location(name), *self._tables.identity_and_schema(source.location))
            for name, source in sorted(prepared.definition.sources.items())
        )
