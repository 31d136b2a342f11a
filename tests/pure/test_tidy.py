"""When a table has so many small files or hidden rows that it is worth compacting."""

from __future__ import annotations

import pytest

from spark_trickle.storage.files import DataFile
from spark_trickle.storage.tidy import is_scattered, is_untidy


def files(count: int, size: int, rows: int = 100, hidden: int = 0) -> list[DataFile]:
    return [DataFile(f"f{i}", "", size, hidden, f'{{"numRecords": {rows}}}') for i in range(count)]


@pytest.mark.parametrize(
    ("listed", "untidy"),
    [
        ([], False),
        (files(49, 1000), False),
        (files(50, 1000), True),
        (files(500, 2**27), False),
        (files(1, 2**27, 100, 90), False),
        (files(1, 2**27, 1_000_000, 290_000), False),
        (files(1, 2**27, 1_000_000, 310_000), True),
    ],
    ids=["empty", "few", "many", "large", "tiny", "some hidden", "many hidden"],
)
def test_many_small_files_or_many_hidden_rows(listed: list[DataFile], untidy: bool) -> None:
    assert is_untidy(listed, 50) is untidy


def ranged(*ends: tuple[int, int], size: int = 2**27) -> list[DataFile]:
    return [
        DataFile(f"f{i}", "", size, 0, f'{{"minValues": {{"k": {low}}}, "maxValues": {{"k": {high}}}}}')
        for i, (low, high) in enumerate(ends)
    ]


@pytest.mark.parametrize(
    ("listed", "scattered"),
    [
        ([], False),
        (ranged(*[(0, 1000)] * 3), False),
        (ranged(*[(i, 1000 - i) for i in range(5)]), True),
        (ranged(*[(i, 1000 - i) for i in range(5)], size=1000), False),
        (ranged(*[(100 * i, 100 * i + 120) for i in range(10)]), False),
        (ranged(*[(7, 7)] * 20, (0, 7), (7, 90)), False),
        (ranged(*[(0, 1000)] * 3, *[(100 * i, 100 * i + 99) for i in range(10)]), False),
        (files(10, 2**27), False),
    ],
    ids=["empty", "few", "anywhere", "small", "in order", "one value", "mostly in order", "unknown"],
)
def test_keys_that_lie_in_most_of_the_large_files(listed: list[DataFile], scattered: bool) -> None:
    assert is_scattered(listed, "k") is scattered
