"""How much of a table may have changed, by what its files say of themselves."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from types import SimpleNamespace

import pytest

from spark_trickle.storage.changes import changed_share, rows_in_commits, rows_in_files
from spark_trickle.storage.commits import Commit, Touched
from spark_trickle.storage.tables import Snapshot

Files = Mapping[tuple[str, str], int | None]


def version(files: Files) -> Snapshot:
    """A version whose files, by path and deletion vector, hold so many rows of ten bytes each."""
    found = Snapshot(None, None, None, None, "t", 0)
    sizes = {key: SimpleNamespace(size=10 * (rows or 1), rows=rows) for key, rows in files.items()}
    found.__dict__.update(by_content=sizes)
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
    found = rows_in_files(version(old), version(new))
    assert found == rows
    assert changed_share(version(old), version(new), found) == pytest.approx(share)


def commit(*files: Touched, counted: int | None = None) -> Commit:
    return Commit(1, "WRITE", True, None, datetime.now(UTC), touched=files, counted=counted)


def added(path: str, rows: int | None, hidden: int = 0, *, moved: bool = False) -> Touched:
    return Touched(path, True, not moved, rows, hidden)


def removed(path: str, rows: int | None = None, hidden: int = 0, *, moved: bool = False) -> Touched:
    return Touched(path, False, not moved, rows, hidden)


@pytest.mark.parametrize(
    ("commits", "rows"),
    [
        ([], 0),
        ([commit(added("b", 5))], 5),
        ([commit(removed("a"))], 100),
        ([commit(removed("a"), added("a", 100, 3))], 3),
        ([commit(removed("a", moved=True), added("b", 100, moved=True))], 0),
        (
            [
                commit(removed("a"), added("a", 100, 3)),
                commit(removed("a", 100, 3, moved=True), added("b", 97, moved=True)),
                commit(removed("b"), added("b", None, 2)),
            ],
            5,
        ),
        ([commit(removed("a"), added("b", 100))], 200),
        ([commit(removed("a"), added("b", 100), counted=2)], 2),
        ([commit(removed("unknown"))], None),
        ([commit(removed("unknown", moved=True), added("b", 4, moved=True))], 0),
        ([Commit(1, "gone", True, None)], None),
    ],
    ids=[
        "none",
        "added",
        "removed",
        "marked",
        "compacted",
        "marked, compacted, marked",
        "rewritten",
        "rewritten for two rows",
        "uncounted",
        "uncounted but moved",
        "gone",
    ],
)
def test_commits_tell_what_changed(commits: list[Commit], rows: int | None) -> None:
    assert rows_in_commits({"a": 100}, commits) == rows
