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


def test_only_whole_numbers_in_order_without_gaps_are_searched() -> None:
    wanted = np.array([1], dtype=np.int64)
    assert _column([2, 1]).places_of(wanted) is None
    assert _column([1, None]).places_of(wanted) is None
    assert Column(pa.chunked_array([pa.array(["a"])])).places_of(wanted) is None


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
