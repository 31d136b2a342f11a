"""What the commits of a table say about themselves."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from spark_trickle.frontier import Frontier, SourceVersion
from spark_trickle.storage.tables import DeltaTables

_KEPT = 2000
_OWN_TIME = "delta.enableInCommitTimestamps"
_COUNTS = {
    "UPDATE": {"numUpdatedRows": 2},
    "DELETE": {"numDeletedRows": 1},
    "MERGE": {"numTargetRowsInserted": 1, "numTargetRowsUpdated": 2, "numTargetRowsDeleted": 1},
}
"""What writers count, by operation, and how many rows of a change feed each stands for."""


@dataclass(frozen=True, slots=True)
class Stamp:
    """What a commit of ours carries: which refresh made it, and what its table has read."""

    stream_table_id: str
    sequence: int
    action: str
    reason: str
    fingerprint: str
    frontier: Frontier
    rows_inserted: int = 0
    rows_deleted: int = 0

    def to_json(self) -> str:
        return json.dumps(
            {
                "spark_trickle": 1,
                "stream_table_id": self.stream_table_id,
                "sequence": self.sequence,
                "action": self.action,
                "reason": self.reason,
                "fingerprint": self.fingerprint,
                "frontier": json.loads(self.frontier.to_json()),
                "rows_inserted": self.rows_inserted,
                "rows_deleted": self.rows_deleted,
            }
        )

    @classmethod
    def from_json(cls, text: str) -> Stamp | None:
        """The stamp in a commit's metadata; None when it is not ours."""
        try:
            raw = json.loads(text)
        except ValueError:
            return None
        if not isinstance(raw, dict) or raw.get("spark_trickle") != 1:
            return None
        return cls(
            raw["stream_table_id"],
            int(raw["sequence"]),
            raw["action"],
            raw["reason"],
            raw["fingerprint"],
            Frontier.from_json(json.dumps(raw["frontier"])),
            int(raw["rows_inserted"]),
            int(raw["rows_deleted"]),
        )


@dataclass(frozen=True, slots=True)
class Touched:
    """A file that a commit added or removed."""

    path: str
    added: bool
    changes_data: bool
    rows: int | None
    """All that it was written with; None where the commit does not say."""
    hidden_rows: int
    """Those that its deletion vector hides."""
    vector: Mapping[str, Any] = field(default_factory=dict)
    """Its deletion vector as the log describes it; empty without one."""
    partition: Mapping[str, str | None] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Commit:
    """One version of a table: what was done, whether rows changed, and our stamp if it is ours."""

    version: int
    operation: str
    changes_data: bool
    stamp: Stamp | None
    at: datetime | None = None
    """When it was made; None when its file is gone."""
    feed_bytes: int = 0
    """The size of the files that its change feed is read from."""
    feed: tuple[tuple[str, Mapping[str, str | None]], ...] = ()
    """The files of change rows that it has written, with what their rows share."""
    changes_metadata: bool = False
    """The schema or the properties of the table, or what is needed to read it, have changed."""
    touched: tuple[Touched, ...] = ()
    counted: int | None = None
    """Rows of its change feed, by the writer's own count: it may have rewritten files for the sake of few of their rows."""

    @property
    def gone(self) -> bool:
        return self.at is None


def commits_after(
    tables: DeltaTables, location: str, version: int, last: int, table_id: str = ""
) -> Iterator[Commit]:
    """The commits newer than `version` up to `last`, oldest first. One whose file is gone may hold anything.

    With the id of the table, what was read once is remembered: a commit never changes.
    """
    for number in range(version + 1, last + 1):
        known = tables.commits.get((table_id, number)) if table_id else None
        found: Commit = known or read_commit(tables, location, number)
        if table_id and not found.gone:
            tables.commits[table_id, number] = found
            while len(tables.commits) > _KEPT:
                tables.commits.popitem(last=False)
        yield found


def read_commit(tables: DeltaTables, location: str, version: int) -> Commit:
    text = tables.commit_text(location, version)
    if text is None:
        return Commit(version, "unknown: its log file is gone", True, None)
    actions: list[dict[str, Any]] = [json.loads(line) for line in text.split("\n") if line.strip()]
    info: dict[str, Any] = next((a["commitInfo"] for a in actions if "commitInfo" in a), {})
    files = [a.get("add") or a.get("remove") for a in actions if "add" in a or "remove" in a]
    metadata = info.get("userMetadata")
    feed = [a["cdc"] for a in actions if "cdc" in a]
    return Commit(
        version,
        str(info.get("operation", "unknown")),
        any(f.get("dataChange", True) for f in files if f is not None),
        Stamp.from_json(metadata) if metadata else None,
        datetime.fromtimestamp(_made_at(info) / 1000, UTC),
        _feed_bytes(actions),
        tuple((f["path"], f.get("partitionValues") or {}) for f in feed),
        any("metaData" in a or "protocol" in a for a in actions),
        tuple(_touched(actions)),
        _counted(info),
    )


def _touched(actions: list[dict[str, Any]]) -> Iterator[Touched]:
    for action in actions:
        for kind in ("add", "remove"):
            file = action.get(kind)
            if file is not None:
                rows = json.loads(file.get("stats") or "{}").get("numRecords")
                hidden = int((file.get("deletionVector") or {}).get("cardinality", 0))
                yield Touched(
                    file["path"],
                    kind == "add",
                    file.get("dataChange", True),
                    rows,
                    hidden,
                    file.get("deletionVector") or {},
                    file.get("partitionValues") or {},
                )


def _counted(info: dict[str, Any]) -> int | None:
    """An updated row is two rows of a change feed."""
    metrics = info.get("operationMetrics") or {}
    weights = _COUNTS.get(str(info.get("operation")), {})
    if not weights or any(name not in metrics for name in weights):
        return None
    return sum(weight * int(metrics[name]) for name, weight in weights.items())


def _feed_bytes(actions: list[dict[str, Any]]) -> int:
    """A commit has files of change rows, or its feed is read from the files it added and removed."""
    changes = [a["cdc"] for a in actions if "cdc" in a]
    files = changes or [a.get("add") or a.get("remove") for a in actions if "add" in a or "remove" in a]
    return sum(int(f.get("size") or 0) for f in files if f is not None)


def version_at(tables: DeltaTables, location: str, newest: SourceVersion, at: datetime) -> SourceVersion:
    """The last version made by then, if the table keeps its own time (in-commit timestamps); else the newest.

    Writers' clocks do not agree, so without them nobody knows which commits were made by then.
    """
    version = newest.version
    if tables.setting(location, _OWN_TIME) == "true":
        while version > 0 and (made := read_commit(tables, location, version).at) is not None and made > at:
            version -= 1
    return SourceVersion(newest.table_id, version)


def _made_at(info: dict[str, Any]) -> int:
    """In milliseconds; the table's own clock where it has one (in-commit timestamps), else the writer's."""
    return int(info.get("inCommitTimestamp") or info.get("timestamp") or 0)
