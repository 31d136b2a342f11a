"""Rows read by the driver from Parquet files: by keys, without what is hidden, and never what Spark might read otherwise."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from spark_trickle.algebra.comparisons import Check, Comparison
from spark_trickle.storage.parquet import Field, Keys, Reading, Source, TooMany, Unreadable, read_files
from spark_trickle.storage.small_write import statistics, written_file

_SPARK = {"org.apache.spark.version": "4.2.0"}
_K, _V = Field("k", ("k",), pa.int64()), Field("v", ("v",), pa.string())


def _file(folder: Path, columns: dict[str, pa.Array], metadata: dict[str, str] | None = None) -> str:
    path = folder / f"{len(list(folder.iterdir()))}.parquet"
    pq.write_table(pa.table(columns).replace_schema_metadata(metadata or _SPARK), path, row_group_size=3)
    return str(path)


def _numbers(folder: Path) -> str:
    keys = pa.array([1, 2, None, 2, 5, 9, 2], pa.int64())
    return _file(folder, {"k": keys, "v": pa.array(list("abcdefg"))})


def _found(source: Source, keys: list[int], *, with_null: bool = False) -> list[tuple[Any, ...]]:
    wanted = {"k": Keys(pa.array(keys, pa.int64()), with_null)}
    rows = read_files([source], Reading([_K, _V], wanted, 100, places=True))
    return list(zip(*(column.to_pylist() for column in rows.columns), strict=True))


def test_rows_are_found_by_their_keys_with_their_places(tmp_path: Path) -> None:
    source = Source(_numbers(tmp_path), "there", {})
    assert _found(source, [2]) == [(2, "b", "there", 1), (2, "d", "there", 3), (2, "g", "there", 6)]
    assert _found(source, [7]) == []
    assert _found(source, [9], with_null=True) == [(None, "c", "there", 2), (9, "f", "there", 5)]


def test_hidden_rows_are_not_read(tmp_path: Path) -> None:
    source = Source(_numbers(tmp_path), "", {}, np.array([1, 6]))
    assert _found(source, [2]) == [(2, "d", "", 3)]


def test_only_some_rows_are_read(tmp_path: Path) -> None:
    source = Source(_numbers(tmp_path), "", {}, only=np.array([0, 4]))
    rows = read_files([source], Reading([_V], {}, 100))
    assert rows.column("v").to_pylist() == ["a", "e"]


def test_two_columns_of_keys(tmp_path: Path) -> None:
    keys = {"k": Keys(pa.array([2], pa.int64())), "v": Keys(pa.array(["d", "e"]))}
    rows = read_files([Source(_numbers(tmp_path), "", {})], Reading([_K, _V], keys, 100))
    assert rows.to_pydict() == {"k": [2], "v": ["d"]}


def test_a_column_that_was_added_later_is_null_and_a_partition_has_one_value(tmp_path: Path) -> None:
    fields = [_K, Field("later", ("later",), pa.int32()), Field("p", ("p",), pa.date32(), is_partition=True)]
    source = Source(_numbers(tmp_path), "", {"p": "2024-02-29"})
    rows = read_files([source], Reading(fields, {"k": Keys(pa.array([5], pa.int64()))}, 100))
    assert rows.to_pydict() == {"k": [5], "later": [None], "p": [datetime.date(2024, 2, 29)]}


def test_narrow_numbers_are_widened_and_nothing_else_is(tmp_path: Path) -> None:
    path = _file(tmp_path, {"k": pa.array([1, 2], pa.int32()), "v": pa.array([1.5, 2.5])})
    assert read_files([Source(path, "", {})], Reading([_K], {}, 9)).column("k").type == pa.int64()
    with pytest.raises(Unreadable):
        read_files([Source(path, "", {})], Reading([_V], {}, 9))


def test_more_rows_than_asked_for(tmp_path: Path) -> None:
    with pytest.raises(TooMany):
        read_files([Source(_numbers(tmp_path), "", {})], Reading([_K], {}, 6))


@pytest.mark.parametrize(
    "metadata", [{}, {"org.apache.spark.version": "2.4.8"}, _SPARK | {"org.apache.spark.legacyDateTime": ""}]
)
def test_old_days_are_left_to_spark_unless_it_wrote_them_as_it_does_today(
    tmp_path: Path, metadata: dict[str, str]
) -> None:
    days = [datetime.date(1500, 1, 1), datetime.date(2024, 1, 1)]
    column = {"k": pa.array([1, 2], pa.int64()), "t": pa.array(days, pa.date32())}
    field = Field("t", ("t",), pa.date32())
    old = Source(_file(tmp_path, column, metadata or {"other": "writer"}), "", {})
    today = Source(_file(tmp_path, column), "", {})
    everything, recent = Reading([field], {}, 9), {"k": Keys(pa.array([2], pa.int64()))}
    assert read_files([today], everything).column("t").to_pylist() == days
    assert read_files([old], Reading([_K, field], recent, 9)).column("t").to_pylist() == days[1:]
    with pytest.raises(Unreadable):
        read_files([old], everything)
    with pytest.raises(Unreadable):
        read_files([old], Reading([field], {"t": Keys(pa.array(days, pa.date32()))}, 9))


def test_conditions_on_days_leave_no_row_out_where_days_may_be_counted_otherwise(tmp_path: Path) -> None:
    days = [datetime.date(2023, 1, 1), datetime.date(2024, 1, 1)]
    column = {"k": pa.array([1, 2], pa.int64()), "t": pa.array(days, pa.date32())}
    field, late = Field("t", ("t",), pa.date32()), Comparison("t", Check.AT_LEAST, (days[1],))
    second = Comparison("k", Check.EQUAL, (2,))
    by_whom = {"today": _file(tmp_path, column), "unknown": _file(tmp_path, column, {"other": "writer"})}

    def keys(writer: str, *only: Comparison) -> list[int]:
        rows = read_files([Source(by_whom[writer], "", {})], Reading([_K, field], {}, 9, only=only))
        return rows.column("k").to_pylist()

    assert keys("today", late) == [2]
    assert keys("unknown", late) == [1, 2]
    assert keys("unknown", late, second) == [2]


def test_days_that_python_does_not_know_are_left_to_spark(tmp_path: Path) -> None:
    days = pa.array([-800_000], pa.int32()).cast(pa.date32())
    old = Source(_file(tmp_path, {"t": days}, {"other": "writer"}), "", {})
    with pytest.raises(Unreadable):
        read_files([old], Reading([Field("t", ("t",), pa.date32())], {}, 9))


def test_files_written_here_say_that_their_days_are_counted_as_spark_does(tmp_path: Path) -> None:
    days = pa.table({"t": pa.array([datetime.date(1500, 1, 1)], pa.date32())})
    written_file(tmp_path, "own.parquet", days)
    rows = read_files(
        [Source(str(tmp_path / "own.parquet"), "", {})], Reading([Field("t", ("t",), pa.date32())], {}, 9)
    )
    assert rows.equals(days)


def test_a_file_that_is_gone_or_broken_is_left_to_spark(tmp_path: Path) -> None:
    broken = tmp_path / "broken.parquet"
    broken.write_bytes(b"PAR1 nothing")
    for path in (broken, tmp_path / "gone.parquet"):
        with pytest.raises(Unreadable):
            read_files([Source(str(path), "", {})], Reading([_K], {}, 9))


def test_statistics_are_exact_or_missing() -> None:
    rows = pa.table(
        {
            "n": pa.array([3, None, -1], pa.int64()),
            "d": pa.array([None, None, None], pa.decimal128(10, 2)),
            "s": pa.array(["b", "ab", "x" * 40]),
            "t": pa.array([datetime.date(2024, 2, 29)] * 3),
            "st": pa.StructArray.from_arrays([pa.array([1, 2, 3])], ["k0"]),
        }
    )
    assert statistics(rows) == (
        '{"numRecords":3,"minValues":{"n":-1,"t":"2024-02-29","st":{"k0":1}},'
        '"maxValues":{"n":3,"t":"2024-02-29","st":{"k0":3}},'
        '"nullCount":{"n":1,"d":3,"s":0,"t":0,"st":{"k0":0}},"tightBounds":true}'
    )
