"""When a table has so many small files or hidden rows that it is worth compacting."""

from __future__ import annotations

import pytest

from spark_trickle.storage.files import DataFile
from spark_trickle.storage.tidy import is_untidy


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
