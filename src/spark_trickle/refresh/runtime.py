"""What a refresh works with."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from pyspark.sql import SparkSession

from spark_trickle.catalog import Catalog
from spark_trickle.catalyst.sessions import meaning_of
from spark_trickle.catalyst.volatile import POLICY
from spark_trickle.clock import Clock, system_clock
from spark_trickle.config import Settings
from spark_trickle.errors import TrickleError
from spark_trickle.refresh.definitions import Definitions
from spark_trickle.refresh.kept_groups import KeptGroups
from spark_trickle.storage.tables import DeltaTables


def _nothing(_step: str) -> None:
    """The default observer."""


@dataclass
class Runtime:
    """Spark, storage, catalog and settings of one process."""

    spark: SparkSession
    catalog: Catalog
    settings: Settings
    home: Path
    clock: Clock = system_clock
    on_step: Callable[[str], None] = _nothing
    """Called with the name of every step of a refresh as it begins: progress, tests."""
    rescan: Callable[[], None] | None = None
    """Makes tables that other processes created known to Spark, where its catalog cannot."""
    tables: DeltaTables = field(init=False)
    definitions: Definitions = field(init=False)
    groups: KeptGroups = field(init=False)

    def __post_init__(self) -> None:
        self.tables = DeltaTables(
            self.spark, self.settings.driver_scan_rows, self.settings.driver_cache_bytes
        )
        self.definitions = Definitions(self.spark, self.tables, self.rescan)
        self.groups = KeptGroups(self.settings.kept_groups, self.settings.driver_cache_bytes)

    def meaning(self) -> dict[str, str]:
        """What decides how a definition is understood: settings of the session, and our own."""
        policy = self.settings.volatile_function_policy
        return meaning_of(self.spark) | ({POLICY: policy} if policy != "reject" else {})

    @property
    def locks(self) -> Path:
        return self.home / "locks"


def owner_name() -> str:
    """This thread, so that another process can tell whether its process still lives."""
    return f"{socket.gethostname()}:{os.getpid()}:{_started(os.getpid())}:{threading.get_ident()}"


def who(owner: str) -> str:
    """An owner for people: machine and process."""
    return owner.rsplit(":", 2)[0]


def is_dead(owner: str) -> bool:
    """True if the owner was a process of this machine that has ended."""
    host, pid, started, *_ = owner.split(":")
    if host != socket.gethostname():
        return False
    return _started(int(pid)) != started


def _started(pid: int) -> str:
    """When a process started, in the kernel's ticks; empty when there is none. Pids are used again."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return "alive" if _exists(pid) and not Path("/proc").is_dir() else ""
    fields = stat.rsplit(")", 1)[1].split()
    return "" if fields[0] == "Z" else fields[19]


def _exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def refreshing(stream_table_id: str) -> str:
    """The name of the right to refresh a stream table."""
    return f"refresh:{stream_table_id}"


def refreshing_together(stream_table_ids: Iterable[str]) -> str:
    """The name of the right to refresh some stream tables as one."""
    return f"together:{min(stream_table_ids)}"


@contextmanager
def lease_on(runtime: Runtime, name: str) -> Iterator[str | None]:
    """Hold a right while the block runs, and renew it; yields the holder if refused."""
    owner = owner_name()
    seconds = runtime.settings.lease_seconds
    with runtime.catalog.begin() as catalog:
        lease = catalog.leases.acquire(name, owner, seconds, is_dead)
        holder = catalog.leases.holder(name) if lease is None else None
    if lease is None:
        yield holder.owner if holder else "another process"
        return
    stop = threading.Event()

    def renew() -> None:
        while not stop.wait(seconds / 3):
            # A catalog out of reach for a moment must not end the renewals; the transaction number guards the rest.
            with suppress(TrickleError), runtime.catalog.begin() as catalog:
                catalog.leases.renew(name, owner, seconds)

    thread = threading.Thread(target=renew, name=f"lease {name}", daemon=True)
    thread.start()
    try:
        yield None
    finally:
        stop.set()
        thread.join()
        with runtime.catalog.begin() as catalog:
            catalog.leases.release(name, owner)
