"""Whether a version of a local table is still its newest one, by a look at two files instead of a question to the JVM."""

from __future__ import annotations

import os
from dataclasses import dataclass

from spark_trickle.storage.files import local_folder


@dataclass(frozen=True, slots=True)
class Mark:
    """The file of a commit: who it is, and the name that the next one will have."""

    path: str
    identity: tuple[int, int, int]
    next_path: str

    def still_newest(self) -> bool:
        """The commit is there unchanged, and none follows it. A table made anew at the same place has other files."""
        return _identity(self.path) == self.identity and not os.path.exists(self.next_path)  # noqa: PTH110 - asked often


def newest_mark(location: str, version: int) -> Mark | None:
    """The mark of a version; None for a table that is not local, or whose commit file is not there any more."""
    folder = local_folder(location)
    if folder is None or version < 0:
        return None
    path = commit_path(folder, version)
    identity = _identity(path)
    return None if identity is None else Mark(path, identity, commit_path(folder, version + 1))


def commit_path(folder: str, version: int) -> str:
    return f"{folder}/_delta_log/{version:020}.json"


def _identity(path: str) -> tuple[int, int, int] | None:
    try:
        found = os.stat(path)  # noqa: PTH116 - asked often
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns, found.st_size
