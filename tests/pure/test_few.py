"""Rows in the driver's memory: netting, comparing and finding again, against counting in Python."""

from __future__ import annotations

import datetime
import struct
from collections import Counter
from decimal import Decimal
from typing import Any

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from spark_trickle.catalyst.few import WEIGHT, difference, netted, places_of

_ROWS = st.lists(
    st.tuples(
        st.sampled_from([None, 0, 1, 2]),
        st.sampled_from([None, "", "a", "A"]),
        st.sampled_from([None, 0.0, -0.0, 1.5, float("nan"), float("inf")]),
        st.sampled_from([None, Decimal("1.10"), Decimal("-2.00")]),
        st.sampled_from([None, datetime.date(2024, 2, 29), datetime.date(1500, 1, 1)]),
    ),
    max_size=8,
)
_SCHEMA = pa.schema(
    [
        ("i", pa.int64()),
        ("s", pa.string()),
        ("f", pa.float64()),
        ("d", pa.decimal128(10, 2)),
        ("t", pa.date32()),
    ]
)


def _table(rows: list[tuple[Any, ...]]) -> pa.Table:
    columns = [[row[i] for row in rows] for i in range(len(_SCHEMA))]
    return pa.table([pa.array(c, f.type) for c, f in zip(columns, _SCHEMA, strict=True)], schema=_SCHEMA)


def _identity(row: tuple[Any, ...]) -> tuple[Any, ...]:
    """A float by its bits, NaN as one value: −0.0 and 0.0 are two."""
    return tuple(
        ("nan" if value != value else struct.pack(">d", value)) if isinstance(value, float) else value
        for value in row
    )


def _counted(table: pa.Table) -> Counter[tuple[Any, ...]]:
    rows = zip(*(column.to_pylist() for column in table.columns), strict=True)
    found: Counter[tuple[Any, ...]] = Counter()
    for *values, weight in rows:
        assert weight != 0
        assert _identity(tuple(values)) not in found, "netted rows are all different"
        found[_identity(tuple(values))] = weight
    return found


def _only_different(counts: Counter[tuple[Any, ...]]) -> dict[tuple[Any, ...], int]:
    return {row: count for row, count in counts.items() if count}


@given(_ROWS, st.lists(st.integers(-2, 2), min_size=8, max_size=8))
def test_weights_of_identical_rows_are_summed(rows: list[tuple[Any, ...]], weights: list[int]) -> None:
    change = _table(rows).append_column(WEIGHT, pa.array(weights[: len(rows)], pa.int64()))
    expected: Counter[tuple[Any, ...]] = Counter()
    for row, weight in zip(rows, weights, strict=False):
        expected[_identity(row)] += weight
    assert dict(_counted(netted(change, _SCHEMA.names))) == _only_different(expected)


def test_rows_of_which_no_column_is_used_are_counted() -> None:
    change = _table([(1, "a", 1.5, None, None)] * 3).append_column(WEIGHT, pa.array([1, 1, -1], pa.int64()))
    assert netted(change, []).to_pydict() == {WEIGHT: [1]}
    assert netted(change.slice(1), []).num_rows == 0


@given(_ROWS, _ROWS)
def test_the_difference_of_two_bags(old: list[tuple[Any, ...]], new: list[tuple[Any, ...]]) -> None:
    places = pa.array(range(len(old)), pa.int64())
    found = difference(_table(new), _table(old).append_column("place", places), 1)
    expected = Counter(map(_identity, new))
    expected.subtract(Counter(map(_identity, old)))
    if found is None:
        assert not _only_different(expected)
        return
    assert dict(_counted(found.change)) == _only_different(expected)
    assert found.added == sum(w for w in expected.values() if w > 0)
    assert found.places is not None
    gone = found.places.column("place").to_pylist()
    assert len(gone) == len(set(gone)) == found.removed, "each copy is removed from a place of its own"
    removed = Counter(_identity(old[place]) for place in gone)
    assert removed == Counter({row: -w for row, w in expected.items() if w < 0})


@given(_ROWS.filter(bool), st.data())
def test_rows_to_remove_are_found_by_value(stored: list[tuple[Any, ...]], data: st.DataObject) -> None:
    chosen = data.draw(st.lists(st.sampled_from(range(len(stored))), unique=True, min_size=1))
    wanted = Counter(_identity(stored[row]) for row in chosen)
    rows = {_identity(stored[row]): stored[row] for row in chosen}
    located = _table(stored).append_column("place", pa.array(range(len(stored)), pa.int64()))
    found = places_of(_table(list(rows.values())), [wanted[row] for row in rows], located, 1)
    assert found is not None
    places = found.column("place").to_pylist()
    assert len(places) == len(set(places))
    assert Counter(_identity(stored[place]) for place in places) == wanted


def test_a_row_that_is_not_there_often_enough_is_not_found() -> None:
    row = (1, "a", 0.0, None, None)
    located = _table([row]).append_column("place", pa.array([0], pa.int64()))
    assert places_of(_table([row]), [2], located, 1) is None
    assert places_of(_table([(1, "a", -0.0, None, None)]), [1], located, 1) is None
