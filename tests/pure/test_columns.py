"""Columns kept in memory: the same rows are found in them, and they take no more room than they may."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import given
from hypothesis import strategies as st

from spark_trickle.storage.columns import Column, Columns
from spark_trickle.storage.parquet import Field, Keys, Reading, Source, read_files


def _column(values: list[int | None]) -> Column:
    return Column(pa.chunked_array([pa.array(values, pa.int64())]))


_NUMBERS = st.integers(0, 9) | st.sampled_from([2**31 - 1, 2**31, -(2**31), 2**63 - 1, -(2**63)])


@given(st.lists(st.integers(0, 9)), st.sets(st.integers(-1, 10)))
def test_values_in_order_are_found_where_comparing_each_would_find_them(
    values: list[int], keys: set[int]
) -> None:
    wanted = np.array(sorted(keys), dtype=np.int64)
    found = _column(sorted(values)).places_of(wanted)
    assert found is not None
    assert found.tolist() == [i for i, value in enumerate(sorted(values)) if value in keys]


@given(st.lists(st.none() | st.integers(0, 9)), st.sets(st.integers(-1, 10)), st.booleans())
def test_keys_are_found_in_any_column(values: list[int | None], keys: set[int], with_null: bool) -> None:
    found = Keys(pa.array(sorted(keys), pa.int64()), with_null).places_in(_column(values))
    expected = [i for i, v in enumerate(values) if v in keys or (v is None and with_null)]
    assert found.tolist() == expected


@given(
    st.lists(st.none() | _NUMBERS, min_size=100), st.sets(_NUMBERS | st.just(-1), max_size=3), st.booleans()
)
def test_a_column_that_is_looked_through_again_is_sorted(
    values: list[int | None], keys: set[int], with_null: bool
) -> None:
    column = _column(values)
    expected = [i for i, v in enumerate(values) if v in keys or (v is None and with_null)]
    for _ in range(3):
        assert Keys(pa.array(sorted(keys), pa.int64()), with_null).places_in(column).tolist() == expected
    own = column.places_of(np.array(sorted(keys), dtype=np.int64))
    assert own is not None and own.tolist() == [i for i, v in enumerate(values) if v in keys]


def test_only_few_whole_numbers_are_looked_up() -> None:
    wanted = np.array([1], dtype=np.int64)
    assert [_column([2, 1]).places_of(wanted) for _ in range(3)] == [None] * 3
    long = _column([2, 1] * 100)
    assert long.places_of(wanted) is None
    assert long.places_of(np.arange(100)) is None
    assert long.places_of(wanted) is not None
    texts = Column(pa.chunked_array([pa.array(["a"] * 100)]))
    assert [texts.places_of(wanted) for _ in range(3)] == [None] * 3


def test_a_sorted_column_takes_up_more_room() -> None:
    values = pa.chunked_array([pa.array([2, 1] * 100, pa.int64())])
    columns = Columns(2 * values.nbytes)
    first, second = (columns.keep(("file", 0, name), values) for name in "ab")
    assert columns.nbytes == 2 * values.nbytes
    for _ in range(2):
        second.places_of(np.array([1]))
    assert columns.get(("file", 0, "a")) is None
    assert columns.get(("file", 0, "b")) is second
    assert columns.nbytes == 2 * values.nbytes
    for _ in range(2):
        first.places_of(np.array([1]))  # no longer kept
    assert columns.nbytes == 2 * values.nbytes


def test_what_was_asked_for_longest_ago_makes_room() -> None:
    values = pa.chunked_array([pa.array(range(10), pa.int64())])
    columns = Columns(2 * values.nbytes)
    for name in "ab":
        columns.keep(("file", 0, name), values)
    assert columns.get(("file", 0, "a")) is not None
    columns.keep(("file", 0, "c"), values)
    assert [columns.get(("file", 0, name)) is not None for name in "abc"] == [True, False, True]
    assert columns.keep(("file", 0, "d"), pa.chunked_array([pa.array(range(30), pa.int64())])) is not None
    assert columns.get(("file", 0, "d")) is None
    assert columns.get(("file", 0, "a")) is not None


def test_columns_that_are_looked_through_stay_longest() -> None:
    values = pa.chunked_array([pa.array(range(10), pa.int64())])
    columns = Columns(2 * values.nbytes)
    columns.keep(("file", 0, "key"), values, searched=True)
    for name in "abc":
        columns.keep(("file", 0, name), values)
    assert [columns.get(("file", 0, name)) is not None for name in ("key", *"abc")] == [
        True,
        False,
        False,
        True,
    ]
    assert columns.get(("file", 0, "c"), searched=True) is not None
    columns.keep(("file", 0, "other key"), values, searched=True)
    assert [columns.get(("file", 0, name)) is not None for name in ("key", "c", "other key")] == [
        False,
        True,
        True,
    ]
    assert columns.nbytes == 2 * values.nbytes


def test_kept_columns_are_not_read_again(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"k": pa.array([3, 1, 2], pa.int64()), "v": ["x", "y", "z"]}), path)
    kept = Columns(10**6)
    fields = [Field("k", ("k",), pa.int64()), Field("v", ("v",), pa.string())]
    reading = Reading(fields, {"k": Keys(pa.array([1, 3], pa.int64()))}, 9, kept=kept)
    first = read_files([Source(str(path), "", {})], reading)
    assert first.to_pydict() == {"k": [3, 1], "v": ["x", "y"]}
    assert kept.get((str(path), 0, "v")) is not None
    assert read_files([Source(str(path), "", {}, np.array([0]))], reading).to_pydict() == {
        "k": [1],
        "v": ["y"],
    }
