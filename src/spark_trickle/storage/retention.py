"""How long a version of a table can still be read."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from spark_trickle.storage.commits import read_commit
from spark_trickle.storage.tables import DeltaTables


@dataclass(frozen=True, slots=True)
class Retention:
    """Until when VACUUM and the clean-up of the log, run at their usual settings, leave a version readable."""

    until: datetime
    of: timedelta
    """How long versions are kept altogether."""


def retention_of(tables: DeltaTables, location: str, version: int) -> Retention | None:
    """None for the newest version: nothing of it can be removed."""
    log, state = tables.latest_state(location)
    if version >= int(state.version()):
        return None
    metadata = state.metadata()
    delta_log = tables.jvm.org.apache.spark.sql.delta.DeltaLog
    files = timedelta(milliseconds=int(delta_log.tombstoneRetentionMillis(metadata)))
    entries = timedelta(milliseconds=int(log.deltaRetentionMillis(metadata)))
    # Files of a version become removable with the next commit, its log entry with its own.
    own, after = (read_commit(tables, location, v).at for v in (version, version + 1))
    ends = [(own + entries, entries)] if own else []
    ends += [(after + files, files)] if after else []
    if not ends:
        return Retention(
            datetime.now(UTC), min(files, entries)
        )  # the log no longer knows: it may go any time
    until, kept = min(ends)
    return Retention(until, kept)
