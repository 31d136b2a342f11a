"""A mark tells whether a version is still the newest one."""

from __future__ import annotations

from pathlib import Path

from spark_trickle.storage.marks import commit_path, newest_mark


def _commit(folder: Path, version: int, text: str = "{}") -> Path:
    path = Path(commit_path(str(folder), version))
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    return path


def test_until_another_commit_follows(tmp_path: Path) -> None:
    _commit(tmp_path, 3)
    mark = newest_mark(f"file:{tmp_path}", 3)
    assert mark is not None
    assert mark.still_newest()
    _commit(tmp_path, 4)
    assert not mark.still_newest()


def test_a_table_made_anew_is_another_one(tmp_path: Path) -> None:
    first = _commit(tmp_path, 0)
    mark = newest_mark(str(tmp_path), 0)
    assert mark is not None
    first.rename(
        first.with_suffix(".old")
    )  # still there, so that its number in the file system is not used again
    assert not mark.still_newest()
    _commit(tmp_path, 0)
    assert not mark.still_newest()


def test_no_mark_elsewhere_or_without_a_file(tmp_path: Path) -> None:
    assert newest_mark("s3://bucket/table", 0) is None
    assert newest_mark(str(tmp_path), 0) is None
    assert newest_mark(str(tmp_path), -1) is None
