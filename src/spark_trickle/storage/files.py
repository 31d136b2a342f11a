"""The data files of a version as the log describes them: sizes, counts, least and greatest values. Pure."""

from __future__ import annotations

import json
import re
from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from functools import cached_property
from typing import Any
from urllib.parse import unquote, urlsplit

_PAGE_ROWS = 20_000
"""After so many rows at the latest, Parquet begins another page of a column."""
_EPOCH = date(1970, 1, 1).toordinal()
_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")
_CALENDAR = "1583-01-01"
"""Some writers count the days before in another calendar."""

Content = tuple[str, str]
"""The path of a file and its deletion vector."""


@dataclass(frozen=True)
class DataFile:
    """One file of a version."""

    path: str
    vector: str
    """The deletion vector that hides some of its rows; empty without one."""
    size: int
    hidden_rows: int
    written: str
    """Its statistics as the log has them."""
    partition: Mapping[str, str | None] = field(default_factory=dict)
    """The values that all its rows share, by the names of columns in files."""

    @property
    def content(self) -> Content:
        """Two files of which this is the same hold the same rows."""
        return self.path, self.vector

    @cached_property
    def _statistics(self) -> Mapping[str, Any]:
        try:
            found = json.loads(self.written) if self.written else {}
        except ValueError:
            return {}
        return found if isinstance(found, dict) else {}

    @property
    def written_rows(self) -> int | None:
        """Those that a vector hides included; None when nobody has counted them."""
        return _number(self._statistics.get("numRecords"))

    @property
    def rows(self) -> int | None:
        written = self.written_rows
        return None if written is None else written - self.hidden_rows

    def may_hold(self, column: str, ranges: Sequence[tuple[int, int]]) -> bool:
        """Some value of the column, by the name it has in the file, may lie in one of the ranges, ends included.

        The ends are those of all rows that the file was written with, so they hold whatever a vector hides.
        """
        ends = self.ends(column)
        return ends is None or any(first <= ends[1] and ends[0] <= last for first, last in ranges)

    def ends(self, column: str) -> tuple[int, int] | None:
        """The least and the greatest of its whole numbers or days in the column, if the log knows them."""
        low, high = self._end("minValues", column), self._end("maxValues", column)
        return None if low is None or high is None else (low, high)

    def pages_with(self, column: str, values: Sequence[int]) -> tuple[int, int]:
        """How many of its pages hold one of the values, and how many it has, if it is sorted by the column.

        The values are in order.
        """
        pages = max(1, -(-(self.written_rows or 0) // _PAGE_ROWS))
        ends = self.ends(column)
        if ends is None:
            return pages, pages
        low, high = ends
        inside = values[bisect_left(values, low) : bisect_right(values, high)]
        return len({(value - low) * pages // (high - low + 1) for value in inside}), pages

    def _end(self, which: str, column: str) -> int | None:
        ends = self._statistics.get(which)
        value = ends.get(column) if isinstance(ends, dict) else None
        return _day(value) if isinstance(value, str) else _number(value)


def local_folder(place: str) -> str | None:
    """The path of a local table by its place, which is written as it is; None for one that lies elsewhere."""
    scheme, colon, rest = place.partition(":")
    if place.startswith("/"):
        return place
    return "/" + rest.lstrip("/") if colon and scheme == "file" else None


def local_path(place: str, path: str) -> str | None:
    """The path of a file by what the log says, which is encoded; None for one that lies elsewhere."""
    parts = urlsplit(path)
    if parts.scheme:
        return unquote(parts.path) if parts.scheme == "file" and not parts.netloc else None
    folder = local_folder(place)
    return None if folder is None else f"{folder}/{unquote(path)}"


def vector_name(vector: Mapping[str, Any]) -> str:
    """What tells a deletion vector from every other one of its table; empty for none."""
    parts = (vector.get(part, "") for part in ("storageType", "pathOrInlineDv", "offset"))
    return "@".join(str(part) for part in parts) if vector else ""


def described(text: str) -> list[DataFile]:
    """The files of a version, from their JSON."""
    return [data_file(raw) for raw in json.loads(text)]


def data_file(raw: Mapping[str, Any]) -> DataFile:
    """A file as the log has it."""
    vector = raw.get("deletionVector") or {}
    return DataFile(
        raw["path"],
        vector_name(vector),
        int(raw["size"]),
        int(vector.get("cardinality", 0)),
        raw.get("stats") or "",
        raw.get("partitionValues") or {},
    )


def _number(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _day(text: str) -> int | None:
    """A day as its number; None for other text, and for days on which calendars disagree."""
    if not _DAY.fullmatch(text) or text < _CALENDAR:
        return None
    try:
        return date.fromisoformat(text).toordinal() - _EPOCH
    except ValueError:
        return None
