"""A Delta table by its location: who it is, which versions it has, its rows at one of them."""

from __future__ import annotations

import json
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from spark_trickle.catalyst.java import java, scala_seq
from spark_trickle.catalyst.later import calls_put_off, later
from spark_trickle.catalyst.listing import Within
from spark_trickle.catalyst.plan import items
from spark_trickle.errors import SourceError
from spark_trickle.frontier import SourceVersion
from spark_trickle.names import quote
from spark_trickle.storage.columns import Columns
from spark_trickle.storage.files import Content, DataFile, described, local_folder
from spark_trickle.storage.following import Following, following
from spark_trickle.storage.marks import Mark, newest_mark
from spark_trickle.storage.parquet import Positions
from spark_trickle.storage.vectors import Descriptor, Vectors

PHYSICAL = "delta.columnMapping.physicalName"
_WORTH_CHOOSING = 0.75
_MANY_PAGES, _FEW_PAGES = 100, 0.25
_SHARED = 2
_KEPT_SNAPSHOTS = 64
_KEPT_CHANGES = 16
_FOLLOWED = 100
"""After more commits than that, Delta has a checkpoint to read the files from."""


@dataclass(frozen=True, eq=False)
class Snapshot:
    """One version of a table, its file list read once."""

    log: Any
    state: Any
    files: Any
    mapper: Any
    """Writes objects of the log as JSON."""
    table_id: str
    version: int
    derived: Mapping[Content, DataFile] | None = None
    """Its files by content, in the order of `files`, where somebody knows them already."""
    changed_since: dict[int, int | None] = field(default_factory=dict)
    """How many rows may have changed since other versions, as far as somebody has asked."""

    @property
    def source_version(self) -> SourceVersion:
        return SourceVersion(self.table_id, self.version)

    @cached_property
    def place(self) -> str:
        """Where the table lies."""
        return str(self.log.dataPath().toString())

    def setting(self, name: str) -> str:
        """A table property, empty when it is not set."""
        return self.configuration.get(name, "")

    @cached_property
    def by_content(self) -> Mapping[Content, DataFile]:
        """Files by path and deletion vector: a key that two versions share holds the same rows in both."""
        return self.derived or {file.content: file for file in described(self._json)}

    @cached_property
    def _numbers(self) -> dict[Content, int]:
        return {content: number for number, content in enumerate(self.by_content)}

    @property
    def _json(self) -> str:
        return str(self.mapper.writeValueAsString(self.files))

    @cached_property
    def _listed(self) -> Any:
        return self.files.toIndexedSeq()  # a linked list is slow to index

    def action(self, file: DataFile) -> Any:
        """The file as Delta has it."""
        return later(self._listed).apply(self._numbers[file.content])

    @cached_property
    def configuration(self) -> dict[str, str]:
        """All properties that are set."""
        found: dict[str, str] = json.loads(
            str(self.mapper.writeValueAsString(self.state.metadata().configuration()))
        )
        return found

    @cached_property
    def schema(self) -> StructType:
        """With what Delta notes beside the columns."""
        return StructType.fromJson(json.loads(str(self.state.metadata().schemaString())))

    @cached_property
    def partitioned_by(self) -> frozenset[str]:
        return frozenset(map(str, items(self.state.metadata().partitionColumns())))

    @cached_property
    def _written_names(self) -> dict[str, str]:
        """Columns by the names that the files have for them."""
        return {f.name: (f.metadata or {}).get(PHYSICAL, f.name) for f in self.schema.fields}

    def files_within(self, within: Within) -> list[DataFile] | None:
        """The files that may hold a row with all these columns in their ranges; None when they are almost all."""
        names = self._written_names
        wanted = [(names[c], ranges) for c, ranges in within.items() if ranges and c in names]
        files = [f for f in self.by_content.values() if all(f.may_hold(*one) for one in wanted)]
        return files if len(files) <= _WORTH_CHOOSING * len(self.by_content) else None

    def prunes_pages(self, column: str, values: Sequence[int]) -> bool:
        """Looking for these values in order, most pages of the files can be left out."""
        name = self._written_names.get(column)
        if name is None or not values:
            return False
        found = [file.pages_with(name, values) for file in self.by_content.values()]
        hit, pages = sum(one for one, _ in found), sum(every for _, every in found)
        return pages >= _MANY_PAGES and hit <= _FEW_PAGES * pages

    def name_in_files(self, column: str) -> str:
        """The name under which files have a column; empty for one that the table does not have."""
        return self._written_names.get(column, "")

    def may_be_unique(self, column: str) -> bool:
        """The column's whole numbers or days lie far enough apart that hardly two rows need to share one."""
        span = self._span(column)
        return span is not None and self.row_count <= _SHARED * span

    def most_values(self, column: str) -> int:
        """A column has no more different values than that."""
        span = self._span(column)
        return self.row_count if span is None else min(span, self.row_count)

    def _span(self, column: str) -> int | None:
        """How many whole numbers or days lie between the ends of a column; None where its files do not tell them."""
        name = self.name_in_files(column)
        ends = [file.ends(name) for file in self.by_content.values()]
        known = [pair for pair in ends if pair is not None]
        if not known or len(known) < len(ends):
            return None
        return max(high for _, high in known) - min(low for low, _ in known) + 1

    @cached_property
    def size_in_bytes(self) -> int:
        return sum(file.size for file in self.by_content.values())

    @cached_property
    def counted(self) -> tuple[int, int]:
        """Bytes and rows, hidden ones included, of the files that tell how many they are."""
        files = [file for file in self.by_content.values() if file.written_rows]
        return sum(file.size for file in files), sum(file.written_rows or 0 for file in files)

    @cached_property
    def row_count(self) -> int:
        """Rows by the files' own counts; a file without statistics counts as empty."""
        return sum(file.rows or 0 for file in self.by_content.values())


@dataclass(frozen=True)
class _Newest:
    """The newest version of a table; if it has a mark, for as long as that says so."""

    log: Any
    state: Any
    mark: Mark | None = None

    @cached_property
    def version(self) -> int:
        """Less than zero: there is no table."""
        return int(self.state.version())

    @cached_property
    def table_id(self) -> str:
        return str(self.state.metadata().id())

    @cached_property
    def schema(self) -> str:
        return str(self.state.metadata().schemaString())

    def setting(self, name: str) -> str:
        """A property, empty when it is not set."""
        if name not in self._settings:
            found = self.state.metadata().configuration().get(name)
            self._settings[name] = str(found.get()) if found.isDefined() else ""
        return self._settings[name]

    @cached_property
    def _settings(self) -> dict[str, str]:
        return {}


class VersionUnavailable(Exception):  # noqa: N818 - a fact to act on, translated where it matters
    """A version that the log or the files can no longer give."""


class DeltaTables:
    """Delta tables as seen from one Spark session; snapshots are kept and shared by refreshes."""

    def __init__(self, spark: SparkSession, most_scanned: int = 0, most_kept: int = 0) -> None:
        """`most_scanned`: so many rows are looked through by the driver, instead of by a Spark job.

        `most_kept`: so many bytes of what it has looked through are kept for the next time.
        """
        self.spark = spark
        self.most_scanned = most_scanned
        self.columns = Columns(most_kept)
        self.jvm = java(spark)
        self.none = self.jvm.scala.Option.empty()
        self._dataset = self.jvm.org.apache.spark.sql.classic.Dataset
        self._delta = self.jvm.org.apache.spark.sql.delta
        self._mapper = self._delta.util.JsonUtils.mapper()
        self._kept: OrderedDict[tuple[str, str, int], Snapshot] = OrderedDict()
        self._leaves: WeakKeyDictionary[Snapshot, Any] = WeakKeyDictionary()
        self._changes: OrderedDict[tuple[str, str, int, int, int], Any] = OrderedDict()
        self._whole: WeakKeyDictionary[Snapshot, dict[Any, Any]] = WeakKeyDictionary()
        self._newest: dict[str, _Newest] = {}
        self.commits: OrderedDict[tuple[str, int], Any] = OrderedDict()
        """What commits say, by table id and version; see `commits`."""
        self.vectors = Vectors(spark)
        self._guard = threading.Lock()

    def in_session(self, spark: SparkSession) -> DeltaTables:
        """The same tables, read under another session's settings; snapshots are shared."""
        other = DeltaTables(spark, self.most_scanned)
        other.columns = self.columns
        other._kept, other._leaves, other._guard = self._kept, self._leaves, self._guard
        other._changes, other._whole, other.vectors = self._changes, self._whole, self.vectors
        other.commits, other._newest = self.commits, self._newest
        return other

    def log(self, location: str) -> Any:
        return self._delta.DeltaLog.forTable(self.spark._jsparkSession, location)

    def exists(self, location: str) -> bool:
        if self._known_newest(location) is not None:
            return True
        path = self.jvm.org.apache.hadoop.fs.Path(location, "_delta_log")
        conf = self.spark._jsparkSession.sessionState().newHadoopConf()
        return bool(path.getFileSystem(conf).exists(path)) and self._latest(location).version >= 0

    def latest(self, location: str) -> SourceVersion:
        """The newest version: a log listing, not a Spark job."""
        newest = self._latest(location)
        if newest.version < 0:
            raise SourceError(
                f"There is no Delta table at `{location}` any more.",
                hint="Create the table again, or drop the stream tables that read it.",
                code="SOURCE_DROPPED",
            )
        return SourceVersion(newest.table_id, newest.version)

    def identity_and_schema(self, location: str) -> tuple[str, str]:
        """The table's id and its schema as Delta has it, empty when there is no table."""
        newest = self._latest(location)
        return (newest.table_id, newest.schema) if newest.version >= 0 else ("", "")

    def setting(self, location: str, name: str) -> str:
        """A property of the table as it is now, empty when it is not set."""
        return self._latest(location).setting(name)

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

    def remember_change(self, old: Snapshot, new: Snapshot, most: int, read: Callable[[], Any]) -> Any:
        """What was read of the change between two versions, of so many rows at the most, once for all who ask."""
        key = (new.place, new.table_id, old.version, new.version, most)
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

    def remember_whole(self, snapshot: Snapshot, what: Any, read: Callable[[], Any]) -> Any:
        """What is asked of all rows of a small table, read once for all who ask the same."""
        kept = self._whole.setdefault(snapshot, {})
        if what not in kept:
            kept[what] = read()
        return kept[what]

    def address(self, snapshot: Snapshot, file: DataFile) -> str:
        """The file as `_metadata.file_path` has it."""
        operations = self.jvm.org.apache.spark.sql.delta.util.DeltaFileOperations
        path = operations.absolutePath(snapshot.place, file.path)
        return str(self.jvm.org.apache.spark.paths.SparkPath.fromPath(path).urlEncoded())

    def hidden_rows(self, snapshot: Snapshot, files: Iterable[DataFile]) -> Mapping[str, Positions]:
        """The numbers of the rows that the deletion vectors of files hide, by vector."""
        hiding = {file.vector: partial(_descriptor, snapshot, file) for file in files if file.vector}
        return self.positions(snapshot, hiding)

    def positions(self, snapshot: Snapshot, vectors: Mapping[str, Descriptor]) -> Mapping[str, Positions]:
        """The row numbers in deletion vectors of the table."""
        return self.vectors.positions(snapshot.log, snapshot.place, vectors)

    def rows(
        self, snapshot: Snapshot, columns: Sequence[str] | None = None, within: Within | None = None
    ) -> DataFrame:
        """The rows of a version, under ids of their own; deletion vectors are respected. `within`: see `leaf`."""
        files = self._chosen(snapshot, within)
        return self.rows_of_files(snapshot, snapshot.files if files is None else files, columns)

    def leaf(self, snapshot: Snapshot, within: Within | None = None) -> Any:
        """The version as one leaf of a plan, the same object each time: equal scans can then be read once.

        With `within`, ranges by column, only the files that may hold a row with all its columns in their ranges.
        """
        files = self._chosen(snapshot, within)
        if files is not None:
            return self._built(snapshot, files).queryExecution().analyzed()
        if snapshot not in self._leaves:
            self._leaves[snapshot] = self._built(snapshot, snapshot.files).queryExecution().analyzed()
        return self._leaves[snapshot]

    def _chosen(self, snapshot: Snapshot, within: Within | None) -> Any:
        """The files of a version that are worth choosing; None for all."""
        files = snapshot.files_within(within) if within else None
        return None if files is None else scala_seq(self.jvm, [snapshot.action(file) for file in files])

    def rows_of_files(
        self, snapshot: Snapshot, files: Any, columns: Sequence[str] | None = None
    ) -> DataFrame:
        # Delta builds the frame in whatever session is active; ours may have other settings.
        leaf = self._built(snapshot, files).queryExecution().analyzed()
        frame = DataFrame(self._dataset.ofRows(self.spark._jsparkSession, leaf), self.spark)
        return frame if columns is None else frame.select(*[quote(c) for c in columns])

    def _built(self, snapshot: Snapshot, files: Any) -> Any:
        return snapshot.log.createDataFrame(snapshot.state, files, False, self.none)

    def _files_of(self, state: Any) -> Any:
        """The version's files: from its checksum, which lists them while they are few, else by a Spark job."""
        checksum = state.checksumOpt()
        if checksum.isDefined() and checksum.get().allFiles().isDefined():
            return checksum.get().allFiles().get()
        return self.jvm.org.apache.spark.api.python.PythonUtils.toSeq(state.allFiles().collectAsList())

    def _continued(self, key: tuple[str, str, int], log: Any, state: Any) -> Snapshot | None:
        """A version whose files are told by those of an earlier one and the commits since: no Spark job."""
        location, table_id, version = key
        with self._guard:
            known = [s for (place, own, _), s in self._kept.items() if (place, own) == (location, table_id)]
        before = max((s for s in known if s.version < version), key=lambda s: s.version, default=None)
        if before is None or version - before.version > _FOLLOWED:
            return None
        texts = (self.commit_text(location, number) for number in range(before.version + 1, version + 1))
        found = following(before.by_content, texts)
        if found is None:
            return None
        return Snapshot(log, state, self._listed(before, found), self._mapper, table_id, version, found.files)

    def _listed(self, before: Snapshot, found: Following) -> Any:
        """The files as Delta has them, in the order of `found.files`."""
        with calls_put_off(self.spark):
            gone = scala_seq(self.jvm, [before.action(file) for file in found.gone]).toSet()
            read = self._delta.actions.Action.fromJson
            return before.files.filterNot(gone).appendedAll(scala_seq(self.jvm, map(read, found.added)))

    def latest_state(self, location: str) -> tuple[Any, Any]:
        """The log and its newest snapshot, as Delta has them."""
        newest = self._latest(location)
        return newest.log, newest.state

    def _latest(self, location: str) -> _Newest:
        known = self._known_newest(location)
        if known is not None:
            return known
        log = self.log(location)
        found = _Newest(log, log.update(False, self.none, self.none))
        mark = newest_mark(location, found.version)
        if mark is None:
            self._newest.pop(location, None)
            return found
        self._newest[location] = found = replace(found, mark=mark)
        return found

    def _known_newest(self, location: str) -> _Newest | None:
        known = self._newest.get(location)
        return known if known is not None and known.mark is not None and known.mark.still_newest() else None

    def _state_at(self, log: Any, version: int) -> Any:
        try:
            return log.getSnapshotAt(version, self.none, self.none, False)
        except (PySparkException, Py4JJavaError) as error:
            raise VersionUnavailable(f"version {version} is no longer in the table's log") from error

    def commit_text(self, location: str, version: int) -> str | None:
        """The file of a commit; None when it is gone. On a local disk it is read without asking the JVM."""
        folder = local_folder(location)
        if folder is not None:
            with suppress(OSError):
                return (Path(folder) / "_delta_log" / f"{version:020}.json").read_text(encoding="utf-8")
        log = self.log(location)
        name = self._delta.util.FileNames.unsafeDeltaFile(log.logPath(), version)
        try:
            return str(log.store().read(name, log.newDeltaHadoopConf()).mkString("\n"))
        except Py4JJavaError:
            return None

    def _remember(self, key: tuple[str, str, int], log: Any, state: Any) -> Snapshot:
        snapshot = self._continued(key, log, state) or Snapshot(
            log, state, self._files_of(state), self._mapper, key[1], key[2]
        )
        with self._guard:
            self._kept[key] = snapshot
            while len(self._kept) > _KEPT_SNAPSHOTS:
                self._kept.popitem(last=False)
        return snapshot


def _descriptor(snapshot: Snapshot, file: DataFile) -> Any:
    return snapshot.action(file).deletionVector()
