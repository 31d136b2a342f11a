"""What a whole run of refreshes agrees on."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from spark_trickle.catalog import Dependency, StreamTable
from spark_trickle.frontier import SourceVersion
from spark_trickle.refresh.runtime import Runtime


@dataclass(frozen=True, slots=True)
class Pins:
    """The version of every base table, and the time."""

    bases: Mapping[str, SourceVersion]
    at: datetime


def pin_bases(dependencies: Iterable[Dependency], runtime: Runtime) -> Pins:
    """The newest version of every base table, and the time now."""
    at = runtime.clock()  # first: whatever was committed by then is in the versions found
    places = {d.source_name: d.location for d in dependencies if d.source_kind == "delta"}
    newest = {name: runtime.tables.latest(location) for name, location in sorted(places.items())}
    return Pins(newest, at)


def is_suspended(table: StreamTable) -> bool:
    return table.status == "SUSPENDED"


def settled(
    pins: Pins, upstream: Iterable[StreamTable], fixed: Callable[[StreamTable], bool] = is_suspended
) -> Pins:
    """The pinned versions, made to agree with what the stream tables above have read.

    Never back: one of them may have taken in a newer version meanwhile. And a table that is not going to be
    refreshed, because it is suspended, decides for all that is read beside it.
    """
    bases = dict(pins.bases)
    for table in sorted(upstream, key=fixed):
        for name, version in (table.frontier.bases if table.frontier else {}).items():
            pinned = bases.get(name)
            if pinned and pinned.table_id == version.table_id:
                bases[name] = version if fixed(table) else max(pinned, version, key=lambda v: v.version)
    return Pins(bases, pins.at)
