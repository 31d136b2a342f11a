"""A Delta table by its location: who it is, which versions it has, its rows at one of them."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any
from weakref import WeakKeyDictionary

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from spark_trickle.catalyst.java import java
from spark_trickle.catalyst.plan import items
from spark_trickle.errors import SourceError
from spark_trickle.frontier import SourceVersion
from spark_trickle.names import quote

_KEPT_SNAPSHOTS = 64
_KEPT_CHANGES = 32


@dataclass(frozen=True, eq=False)
class Snapshot:
    """One version of a table, its file list read once."""

    log: Any
    state: Any
    files: Any
    table_id: str
    version: int

    @property
    def source_version(self) -> SourceVersion:
        return SourceVersion(self.table_id, self.version)

    def setting(self, name: str) -> str:
        """A table property, empty when it is not set."""
        found = self.state.metadata().configuration().get(name)
        return str(found.get()) if found.isDefined() else ""

    @cached_property
    def by_content(self) -> dict[tuple[str, str], Any]:
        """Files by path and deletion vector: a key that two versions share holds the same rows in both."""
        found: dict[tuple[str, str], Any] = {}
        for file in items(self.files):
            vector = file.deletionVector()
            found[(str(file.path()), "" if vector is None else str(vector.uniqueId()))] = file
        return found

    @cached_property
    def size_in_bytes(self) -> int:
        return sum(int(file.size()) for file in self.by_content.values())

    @cached_property
    def rows_of_file(self) -> dict[tuple[str, str], int | None]:
        """Rows by the files' own counts; None for a file without statistics."""
        counts = {key: file.numLogicalRecords() for key, file in self.by_content.items()}
        return {key: int(count.get()) if count.isDefined() else None for key, count in counts.items()}

    @cached_property
    def row_count(self) -> int:
        """Rows by the files' own counts; a file without statistics counts as empty."""
        return sum(count or 0 for count in self.rows_of_file.values())


class VersionUnavailable(Exception):  # noqa: N818 - a fact to act on, translated where it matters
    """A version that the log or the files can no longer give."""


class DeltaTables:
    """Delta tables as seen from one Spark session; snapshots are kept and shared by refreshes."""

    def __init__(self, spark: SparkSession) -> None:
        self.spark = spark
        self.jvm = java(spark)
        self.none = self.jvm.scala.Option.empty()
        self._dataset = self.jvm.org.apache.spark.sql.classic.Dataset
        self._delta = self.jvm.org.apache.spark.sql.delta
        self._kept: OrderedDict[tuple[str, str, int], Snapshot] = OrderedDict()
        self._leaves: WeakKeyDictionary[Snapshot, Any] = WeakKeyDictionary()
        self._changes: OrderedDict[tuple[str, str, int, int], Any] = OrderedDict()
        self._guard = threading.Lock()

    def in_session(self, spark: SparkSession) -> DeltaTables:
        """The same tables, read under another session's settings; snapshots are shared."""
        other = DeltaTables(spark)
        other._kept, other._leaves, other._guard = self._kept, self._leaves, self._guard
        other._changes = self._changes
        return other

    def log(self, location: str) -> Any:
        return self._delta.DeltaLog.forTable(self.spark._jsparkSession, location)

    def exists(self, location: str) -> bool:
        path = self.jvm.org.apache.hadoop.fs.Path(location, "_delta_log")
        conf = self.spark._jsparkSession.sessionState().newHadoopConf()
        return bool(path.getFileSystem(conf).exists(path)) and self.latest_state(location)[1].version() >= 0

    def latest(self, location: str) -> SourceVersion:
        """The newest version: a log listing, not a Spark job."""
        _, state = self.latest_state(location)
        if state.version() < 0:
            raise SourceError(
                f"There is no Delta table at `{location}` any more.",
                hint="Create the table again, or drop the stream tables that read it.",
                code="SOURCE_DROPPED",
            )
        return SourceVersion(str(state.metadata().id()), int(state.version()))

    def identity_and_schema(self, location: str) -> tuple[str, str]:
        """The table's id and its schema as Delta has it, empty when there is no table."""
        _, state = self.latest_state(location)
        if state.version() < 0:
            return "", ""
        return str(state.metadata().id()), str(state.metadata().schemaString())

    def setting(self, location: str, name: str) -> str:
        """A property of the table as it is now, empty when it is not set."""
        found = self.latest_state(location)[1].metadata().configuration().get(name)
        return str(found.get()) if found.isDefined() else ""

    def snapshot(self, location: str, wanted: SourceVersion) -> Snapshot:
        """One version of the table. Raises VersionUnavailable when it is not the same table any more."""
        key = (location, wanted.table_id, wanted.version)
        with self._guard:
            if key in self._kept:
                self._kept.move_to_end(key)
                return self._kept[key]
        log, state = self.latest_state(location)
        if int(state.version()) != wanted.version:
            state = self._state_at(log, wanted.version)
        if str(state.metadata().id()) != wanted.table_id:
            raise VersionUnavailable(f"the table at `{location}` is another one now")
        return self._remember(key, log, state)

    def latest_snapshot(self, location: str) -> Snapshot:
        return self.snapshot(location, self.latest(location))

    def remember_change(self, old: Snapshot, new: Snapshot, read: Callable[[], Any]) -> Any:
        """What was read of the change between two versions, once for all who ask."""
        key = (str(new.log.dataPath().toString()), new.table_id, old.version, new.version)
        with self._guard:
            if key in self._changes:
                self._changes.move_to_end(key)
                return self._changes[key]
        found = read()
        with self._guard:
            self._changes[key] = found
            while len(self._changes) > _KEPT_CHANGES:
                self._changes.popitem(last=False)
        return found

    def rows(self, snapshot: Snapshot, columns: Sequence[str] | None = None) -> DataFrame:
        """The rows of a version; deletion vectors are respected."""
        return self.rows_of_files(snapshot, snapshot.files, columns)

    def leaf(self, snapshot: Snapshot) -> Any:
        """The version as one leaf of a plan, the same object each time: equal scans can then be read once."""
        if snapshot not in self._leaves:
            self._leaves[snapshot] = self._built(snapshot, snapshot.files).queryExecution().analyzed()
        return self._leaves[snapshot]

    def rows_of_files(
        self, snapshot: Snapshot, files: Any, columns: Sequence[str] | None = None
    ) -> DataFrame:
        # Delta builds the frame in whatever session is active; ours may have other settings.
        built = self._built(snapshot, files)
        rebound = self._dataset.ofRows(self.spark._jsparkSession, built.queryExecution().analyzed())
        frame = DataFrame(rebound, self.spark)
        return frame if columns is None else frame.select(*[quote(c) for c in columns])

    def _built(self, snapshot: Snapshot, files: Any) -> Any:
        return snapshot.log.createDataFrame(snapshot.state, files, False, self.none)

    def _files_of(self, state: Any) -> Any:
        """The version's files: from its checksum, which lists them while they are few, else by a Spark job."""
        checksum = state.checksumOpt()
        if checksum.isDefined() and checksum.get().allFiles().isDefined():
            return checksum.get().allFiles().get()
        return self.jvm.org.apache.spark.api.python.PythonUtils.toSeq(state.allFiles().collectAsList())

    def latest_state(self, location: str) -> tuple[Any, Any]:
        """The log and its newest snapshot, as Delta has them."""
        log = self.log(location)
        state = log.update(False, self.none, self.none)
        return log, state

    def _state_at(self, log: Any, version: int) -> Any:
        try:
            return log.getSnapshotAt(version, self.none, self.none, False)
        except (PySparkException, Py4JJavaError) as error:
            raise VersionUnavailable(f"version {version} is no longer in the table's log") from error

    def _remember(self, key: tuple[str, str, int], log: Any, state: Any) -> Snapshot:
        snapshot = Snapshot(log, state, self._files_of(state), key[1], key[2])
        with self._guard:
            self._kept[key] = snapshot
            while len(self._kept) > _KEPT_SNAPSHOTS:
                self._kept.popitem(last=False)
        return snapshot
