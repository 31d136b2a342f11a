"""Columns of Parquet files, kept in memory: a file never changes, and the next refresh looks into the same ones. Pure."""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

Place = tuple[str, int, str]
"""A file, a row group in it, a column."""
Numbers = np.ndarray[Any, np.dtype[np.int64]]


@dataclass(frozen=True)
class Column:
    """The values of a column in one row group."""

    values: pa.ChunkedArray

    @cached_property
    def in_order(self) -> np.ndarray[Any, Any] | None:
        """The values, if they are whole numbers in order and none is missing."""
        if not pa.types.is_integer(self.values.type) or self.values.null_count:
            return None
        numbers: np.ndarray[Any, Any] = self.values.to_numpy()
        return numbers if bool(np.all(numbers[:-1] <= numbers[1:])) else None

    def places_of(self, wanted: np.ndarray[Any, Any]) -> Numbers | None:
        """Where these values, in order and each once, are; None unless the column is in order."""
        numbers = self.in_order
        if numbers is None:
            return None
        first, last = np.searchsorted(numbers, wanted, "left"), np.searchsorted(numbers, wanted, "right")
        counts = last - first
        starts = np.repeat(first - np.concatenate(([0], np.cumsum(counts)[:-1])), counts)
        return (starts + np.arange(counts.sum())).astype(np.int64)


class Columns:
    """The columns that were read last, up to so many bytes in all."""

    def __init__(self, most_bytes: int) -> None:
        self._most = most_bytes
        self._kept: OrderedDict[Place, Column] = OrderedDict()
        self._bytes = 0
        self._guard = threading.Lock()

    def get(self, place: Place) -> Column | None:
        with self._guard:
            found = self._kept.get(place)
            if found is not None:
                self._kept.move_to_end(place)
            return found

    def keep(self, place: Place, values: pa.ChunkedArray) -> Column:
        """The column, kept if it is small enough; those that nobody has asked for longest make room for it."""
        column = Column(values)
        if values.nbytes > self._most:
            return column
        with self._guard:
            if place not in self._kept:
                self._kept[place] = column
                self._bytes += values.nbytes
            while self._bytes > self._most:
                _, oldest = self._kept.popitem(last=False)
                self._bytes -= oldest.values.nbytes
        return column
