"""One writer at a time, also across processes.

On a local disk Delta's rename is not put-if-absent: two writers can win the same version. A lock file beside
the tables, never inside one (VACUUM would remove it), keeps them apart.
"""

from __future__ import annotations

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def write_lock(folder: Path, name: str) -> Iterator[None]:
    """Hold the lock of one stream table; waits for whoever holds it."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / f"{name}.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
