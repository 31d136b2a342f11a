"""The rows of the catalog as values. A row that exists is one the database may hold."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal, get_args

from spark_trickle.frontier import Frontier

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

DefinitionKind = Literal["sql", "function", "dataframe"]
RefreshMode = Literal["AUTO", "DIFFERENTIAL", "FULL"]
Status = Literal["INITIALIZING", "ACTIVE", "SUSPENDED", "ERROR"]
SourceKind = Literal["delta", "stream_table"]
RefreshStatus = Literal["RUNNING", "COMPLETED", "FAILED", "SKIPPED"]
Action = Literal["NO_DATA", "DIFFERENTIAL", "FULL", "REINITIALIZE", "RESTORE", "SKIP"]
DiamondConsistency = Literal["none", "atomic"]


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamTable:
    """A definition and the state it has reached.

    `frontier` and `table_version` belong together: that version of the Delta table holds the answer
    over that frontier. `sequence` numbers committed refreshes; Delta stores it as transaction number.
    """

    id: str
    name: str
    location: str
    query: str
    definition_kind: DefinitionKind
    catalog_name: str
    database_name: str
    session_settings: Mapping[str, str] = field(default_factory=dict)
    schedule: str
    refresh_mode: RefreshMode
    status: Status = "INITIALIZING"
    fingerprint: str
    frontier: Frontier | None = None
    table_version: int | None = None
    table_id: str = ""
    sequence: int = 0
    consecutive_errors: int = 0
    last_error: str = ""
    needs_reinit: bool = False
    reinit_reason: str = ""
    created_at: datetime
    updated_at: datetime
    data_timestamp: datetime | None = None
    """How fresh the table is: what the daemon or a refresh asked for at this moment is in it.

    Everything committed before is, unless a table above it is suspended or refreshed by hand only.
    """
    failed_at: datetime | None = None
    """When the last of its consecutive errors happened, or when it was resumed; None once it has been refreshed."""
    diamond_consistency: DiamondConsistency = "none"
    """Whether a failure in a diamond it belongs to takes the other members back."""

    def __post_init__(self) -> None:
        _check_filled(self, "id", "name")
        _check_choice(self, "definition_kind", DefinitionKind)
        _check_choice(self, "refresh_mode", RefreshMode)
        _check_choice(self, "status", Status)
        _check_choice(self, "diamond_consistency", DiamondConsistency)
        _check_counts(self, "table_version", "sequence", "consecutive_errors")
        _check_aware(self, "created_at", "updated_at", "data_timestamp", "failed_at")


@dataclass(frozen=True, slots=True)
class Dependency:
    """A source a stream table reads directly, and the columns it uses as (name, type) pairs."""

    stream_table_id: str
    source_name: str
    source_kind: SourceKind
    source_id: str
    location: str
    columns: tuple[tuple[str, str], ...] = ()

    def __post_init__(self) -> None:
        _check_filled(self, "stream_table_id", "source_name")
        _check_choice(self, "source_kind", SourceKind)


@dataclass(frozen=True, slots=True, kw_only=True)
class Refresh:
    """One line of the history. It has no end exactly while it is running."""

    id: int
    stream_table_id: str
    sequence: int
    status: RefreshStatus
    action: Action | None = None
    reason: str = ""
    rows_inserted: int = 0
    rows_deleted: int = 0
    rows_changed: int = 0
    version: int | None = None
    frontier: Frontier | None = None
    started_at: datetime
    finished_at: datetime | None = None
    durations: Mapping[str, float] = field(default_factory=dict)
    error: str = ""
    error_code: str = ""
    owner: str
    iterations: int = 0
    """How often the queries of a cycle were evaluated until nothing was new."""
    predicted_seconds: float | None = None
    """What computing and writing were expected to take, by the refreshes before."""
    rows_estimated: int | None = None
    """How many rows of the sources may have changed, as far as could be told before reading any."""

    def __post_init__(self) -> None:
        _check_filled(self, "stream_table_id")
        _check_choice(self, "status", RefreshStatus)
        if self.action is not None:
            _check_choice(self, "action", Action)
        _check_counts(
            self, "sequence", "rows_inserted", "rows_deleted", "rows_changed", "version", "iterations"
        )
        _check_aware(self, "started_at", "finished_at")
        if (self.status == "RUNNING") != (self.finished_at is None):
            raise ValueError(f"a refresh that is {self.status} cannot have finished at {self.finished_at}")


@dataclass(frozen=True, slots=True)
class Lease:
    """The right of one owner to do the named thing until it expires."""

    name: str
    owner: str
    acquired_at: datetime
    expires_at: datetime

    def __post_init__(self) -> None:
        _check_filled(self, "name", "owner")
        _check_aware(self, "acquired_at", "expires_at")


def values(row: DataclassInstance) -> dict[str, Any]:
    """The row by column name. Unlike `dataclasses.asdict` it leaves a frontier a frontier."""
    return {f.name: getattr(row, f.name) for f in fields(row)}


def _check_filled(row: object, *names: str) -> None:
    for name in names:
        if not getattr(row, name):
            raise ValueError(f"`{name}` is empty")


def _check_choice(row: object, name: str, choices: object) -> None:
    value = getattr(row, name)
    if value not in get_args(choices):
        raise ValueError(f"`{name}` is {value!r}; it must be one of {', '.join(get_args(choices))}")


def _check_counts(row: object, *names: str) -> None:
    for name in names:
        value = getattr(row, name)
        if value is not None and value < 0:
            raise ValueError(f"`{name}` is never negative, got {value}")


def _check_aware(row: object, *names: str) -> None:
    for name in names:
        value = getattr(row, name)
        if value is not None and value.tzinfo is None:
            raise ValueError(f"`{name}` needs a time zone, got {value}")
