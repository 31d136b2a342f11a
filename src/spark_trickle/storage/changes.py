"""What changed between two versions of a table, as rows with weights.

With the change feed on, the feed tells; otherwise the files that only one of the versions has. Both are netted:
rewritten files, compaction and rows that came and went between the versions cancel out.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence, Set

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame

from spark_trickle.catalyst.identity import net
from spark_trickle.catalyst.java import scala_seq
from spark_trickle.catalyst.spark_errors import condition_of
from spark_trickle.names import WEIGHT, quote
from spark_trickle.storage.commits import Commit, commits_after
from spark_trickle.storage.tables import DeltaTables, Snapshot

_ONE_TASK_BYTES = 4 * 2**20
_FEW_COMMITS = 20
_FEED = "delta.enableChangeDataFeed"


def changes_between(
    tables: DeltaTables, old: Snapshot, new: Snapshot, columns: Sequence[str]
) -> DataFrame | None:
    """The netted change of some columns, weight last; None when no file differs."""
    if old.table_id != new.table_id:
        raise ValueError("two different tables have no change between them")
    feed = _from_feed(tables, old, new, columns)
    change = feed if feed is not None else _from_files(tables, old, new, columns)
    if change is None:
        return None
    return net(change.coalesce(1) if _is_small(tables, old, new, feed=feed is not None) else change)


def _is_small(tables: DeltaTables, old: Snapshot, new: Snapshot, *, feed: bool) -> bool:
    """One task reads it: then it is netted without an exchange."""
    if not feed:
        return changed_bytes(old, new) <= _ONE_TASK_BYTES
    if new.version - old.version > _FEW_COMMITS:
        return False
    commits = commits_after(tables, new.place, old.version, new.version, new.table_id)
    return sum(commit.feed_bytes for commit in commits) <= _ONE_TASK_BYTES


def changed_rows(tables: DeltaTables, old: Snapshot, new: Snapshot) -> int | None:
    """How many rows may have changed, by what commits and files say of themselves; None where they do not.

    Files that were only rewritten, as by compaction, do not count.
    """
    key = old.version
    if key not in new.changed_since:
        new.changed_since[key] = _changed_rows(tables, old, new)
    return new.changed_since[key]


def _changed_rows(tables: DeltaTables, old: Snapshot, new: Snapshot) -> int | None:
    if 0 < new.version - old.version <= _FEW_COMMITS:
        commits = commits_after(tables, new.place, old.version, new.version, new.table_id)
        written = {path: file.written_rows for (path, _), file in old.by_content.items()}
        rows = rows_in_commits(written, commits)
        if rows is not None:
            return rows
    return rows_in_files(old, new)


def rows_in_commits(written: Mapping[str, int | None], commits: Iterable[Commit]) -> int | None:
    """The changes of all commits; `written` says with how many rows each file before them was written. Pure."""
    known = dict(written)
    total = 0
    for commit in commits:
        if commit.gone:
            return None
        rows: dict[str, int] = defaultdict(int)
        for file in commit.touched:
            held = known[file.path] = known.get(file.path) if file.rows is None else file.rows
            if not file.changes_data:
                continue
            if held is None:
                return None
            rows[file.path] += (held - file.hidden_rows) * (1 if file.added else -1)
        by_files = sum(map(abs, rows.values()))
        total += by_files if commit.counted is None else min(by_files, commit.counted)
    return total


def rows_in_files(old: Snapshot, new: Snapshot) -> int | None:
    """Rows of the files that only one of two versions has; None where a file has no count.

    Of a file with another deletion vector only the rows that it hides, or hid, have changed.
    """
    removed, added = (
        _by_path(one, one.by_content.keys() - other.by_content.keys())
        for one, other in ((old, new), (new, old))
    )
    if None in removed.values() or None in added.values():
        return None
    rows = [abs((added.get(path) or 0) - (removed.get(path) or 0)) for path in removed.keys() | added.keys()]
    return sum(rows)


def _by_path(snapshot: Snapshot, keys: Set[tuple[str, str]]) -> dict[str, int | None]:
    return {path: snapshot.by_content[path, vector].rows for path, vector in keys}


def changed_bytes(old: Snapshot, new: Snapshot) -> int:
    """The size of the files that only one of the versions has: an upper bound of what a change can hold."""
    before, after = old.by_content, new.by_content
    removed = sum(before[key].size for key in before.keys() - after.keys())
    added = sum(after[key].size for key in after.keys() - before.keys())
    return max(removed, added)


def changed_share(old: Snapshot, new: Snapshot, rows: int | None) -> float:
    """Which part of the larger version may have changed: by rows, or by bytes where those are not known."""
    total = max(old.row_count, new.row_count)
    if rows is None:
        rows, total = changed_bytes(old, new), max(old.size_in_bytes, new.size_in_bytes)
    return min(1.0, rows / total) if total else 0.0


def has_feed(old: Snapshot, new: Snapshot) -> bool:
    """The change feed is on at both versions, and the first is not the later one."""
    return old.version <= new.version and old.setting(_FEED) == "true" and new.setting(_FEED) == "true"


def _from_feed(tables: DeltaTables, old: Snapshot, new: Snapshot, columns: Sequence[str]) -> DataFrame | None:
    """The change feed, or None where it was not on for the whole interval or cannot be read across it."""
    if not has_feed(old, new):
        return None
    try:
        feed = (
            tables.spark.read.format("delta")
            .option("readChangeFeed", "true")
            .option("startingVersion", old.version + 1)
            .option("endingVersion", new.version)
            .load(str(new.log.dataPath().toString()))
        )
    except PySparkException as error:
        if condition_of(error).startswith("DELTA_"):
            return None
        raise
    if any(c not in feed.columns for c in columns):
        return None
    sign = "if(_change_type IN ('insert', 'update_postimage'), 1L, -1L)"
    return feed.selectExpr(*[quote(c) for c in columns], f"{sign} AS {WEIGHT}")


def _from_files(
    tables: DeltaTables, old: Snapshot, new: Snapshot, columns: Sequence[str]
) -> DataFrame | None:
    before, after = old.by_content, new.by_content
    added = [new.action(after[key]) for key in after.keys() - before.keys()]
    removed = [old.action(before[key]) for key in before.keys() - after.keys()]
    parts = []
    for snapshot, files, sign in ((new, added, 1), (old, removed, -1)):
        if files:
            rows = tables.rows_of_files(snapshot, scala_seq(tables.jvm, files), columns)
            parts.append(rows.selectExpr("*", f"{sign}L AS {WEIGHT}"))
    if not parts:
        return None
    return parts[0] if len(parts) == 1 else parts[0].unionAll(parts[1])
