"""How much of a table may have changed, by what its files say of themselves."""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace

import pytest

from spark_trickle.storage.changes import changed_rows, changed_share
from spark_trickle.storage.tables import Snapshot

Files = Mapping[tuple[str, str], int | None]


def version(files: Files) -> Snapshot:
    """A version whose files, by path and deletion vector, hold so many rows of ten bytes each."""
    found = Snapshot(None, None, None, "t", 0)
    sizes = {key: SimpleNamespace(size=lambda rows=rows: 10 * (rows or 1)) for key, rows in files.items()}
    found.__dict__.update(by_content=sizes, rows_of_file=dict(files))
    return found


@pytest.mark.parametrize(
    ("old", "new", "rows", "share"),
    [
        ({("a", ""): 100}, {("a", ""): 100}, 0, 0),
        ({("a", ""): 100}, {("a", ""): 100, ("b", ""): 25}, 25, 0.2),
        ({("a", ""): 100}, {("a", "v1"): 90}, 10, 0.1),
        ({("a", "v1"): 90}, {("a", ""): 100}, 10, 0.1),
        ({("a", "v1"): 90}, {("a", "v2"): 80, ("b", ""): 10}, 20, 20 / 90),
        ({("a", ""): 100}, {("b", ""): 100}, 200, 1),
        ({}, {}, 0, 0),
        ({}, {("a", ""): 5}, 5, 1),
        ({("a", ""): 100}, {("a", ""): 100, ("b", ""): None}, None, 10 / 1010),
    ],
    ids=["same", "added", "marked", "restored", "updated", "rewritten", "empty", "first", "uncounted"],
)
def test_only_rows_that_differ_count(old: Files, new: Files, rows: int | None, share: float) -> None:
    assert changed_rows(version(old), version(new)) == rows
    assert changed_share(version(old), version(new)) == pytest.approx(share)
