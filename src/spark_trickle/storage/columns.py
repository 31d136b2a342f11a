"""Columns of Parquet files, kept in memory: a file never changes, and the next refresh looks into the same ones. Pure."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

Place = tuple[str, int, str]
"""A file, a row group in it, a column."""
Numbers = np.ndarray[Any, np.dtype[np.int64]]
_LOOKS = 2
"""A column is sorted when it is looked through for the second time: sorting takes about as long as two looks."""
_FEW = 32
"""Looking up a value takes about as long as looking through so many."""


def _untold(_bytes: int) -> None:
    """Nobody asks how large a column is."""


@dataclass(frozen=True)
class _Sorted:
    """Whole numbers in order, and where each of them is in the column."""

    numbers: np.ndarray[Any, Any]
    places: np.ndarray[Any, np.dtype[np.uint32]] | None = None
    """None: the column itself is in this order."""

    def places_of(self, wanted: np.ndarray[Any, Any]) -> Numbers:
        # In the type of the numbers: otherwise those would be turned into that of the wanted ones, all of them.
        ends = np.iinfo(self.numbers.dtype)
        wanted = wanted[(wanted >= ends.min) & (wanted <= ends.max)].astype(self.numbers.dtype)
        first = np.searchsorted(self.numbers, wanted, "left")
        counts = np.searchsorted(self.numbers, wanted, "right") - first
        starts = np.repeat(first - np.concatenate(([0], np.cumsum(counts)[:-1])), counts)
        found = (starts + np.arange(counts.sum())).astype(np.int64)
        return found if self.places is None else np.sort(self.places[found]).astype(np.int64)


@dataclass
class Column:
    """The values of a column in one row group."""

    values: pa.ChunkedArray
    grown: Callable[[int], None] = _untold
    """Told how many bytes it takes up besides its values, once it does."""
    _looks: int = field(default=0, init=False)

    @cached_property
    def _in_order(self) -> _Sorted | None:
        """The values, if they are whole numbers in order and none is missing."""
        if not pa.types.is_integer(self.values.type) or self.values.null_count:
            return None
        numbers: np.ndarray[Any, Any] = self.values.to_numpy()
        return _Sorted(numbers) if bool(np.all(numbers[:-1] <= numbers[1:])) else None

    @cached_property
    def _sorted(self) -> _Sorted:
        """Whole numbers, put in order; those that are missing are left out."""
        present = np.flatnonzero(np.asarray(self.values.is_valid()))
        numbers: np.ndarray[Any, Any] = self.values.drop_null().to_numpy()
        numbers = _narrowed(numbers)
        order = np.argsort(numbers)
        found = _Sorted(numbers[order], present[order].astype(np.uint32))
        assert found.places is not None  # noqa: S101 - just given
        self.grown(found.numbers.nbytes + found.places.nbytes)
        return found

    def places_of(self, wanted: np.ndarray[Any, Any]) -> Numbers | None:
        """Where these whole numbers, in order and each once, are; None where looking through all is quicker."""
        if self._in_order is not None:
            return self._in_order.places_of(wanted)
        if not pa.types.is_integer(self.values.type) or len(wanted) * _FEW > len(self.values):
            return None
        self._looks += 1
        return self._sorted.places_of(wanted) if self._looks >= _LOOKS else None


def _narrowed(numbers: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """In four bytes each, if they fit: sorted sooner, and half as large."""
    ends = np.iinfo(np.int32)
    fits = not numbers.size or (numbers.min() >= ends.min and numbers.max() <= ends.max)
    return numbers.astype(np.int32) if fits else numbers


class Columns:
    """The columns that were read last, up to so many bytes in all.

    Those that were looked through for keys stay longest: all of their rows are needed again, of the others only few.
    """

    def __init__(self, most_bytes: int) -> None:
        self._most = most_bytes
        self._searched: OrderedDict[Place, Column] = OrderedDict()
        self._others: OrderedDict[Place, Column] = OrderedDict()
        self._sizes: dict[Place, int] = {}
        self.nbytes = 0
        """What is kept, in all."""
        self._guard = threading.Lock()

    def get(self, place: Place, *, searched: bool = False) -> Column | None:
        """`searched`: it is going to be looked through for keys."""
        with self._guard:
            found = self._searched.pop(place, None)
            searched = searched or found is not None
            found = found or self._others.pop(place, None)
            if found is not None:
                (self._searched if searched else self._others)[place] = found  # as the last one
            return found

    def keep(self, place: Place, values: pa.ChunkedArray, *, searched: bool = False) -> Column:
        """The column, kept if it is small enough; those that nobody has asked for longest make room for it."""
        column = Column(values)
        if values.nbytes > self._most:
            return column
        with self._guard:
            if place in self._sizes:
                return column
            column.grown = lambda more: self._grow(place, column, more)
            (self._searched if searched else self._others)[place] = column
            self._count(place, values.nbytes)
        return column

    def _grow(self, place: Place, column: Column, more: int) -> None:
        with self._guard:
            if self._searched.get(place) is column or self._others.get(place) is column:
                self._count(place, more)

    def _count(self, place: Place, more: int) -> None:
        self._sizes[place] = self._sizes.get(place, 0) + more
        self.nbytes += more
        while self.nbytes > self._most:
            oldest, _ = (self._others or self._searched).popitem(last=False)
            self.nbytes -= self._sizes.pop(oldest)
