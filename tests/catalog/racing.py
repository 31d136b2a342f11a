"""Start the same work in several threads or processes at the same instant and collect the answers."""

from __future__ import annotations

import multiprocessing
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.connection import Connection
from multiprocessing.synchronize import Barrier

from spark_trickle.catalog import Catalog

Work = Callable[[str, int], object]
"""Takes the URL of the catalog and the number of the racer. A module's function: processes import it."""


def race_threads(count: int, work: Callable[[int], object]) -> list[object]:
    line = threading.Barrier(count, timeout=30)

    def run(number: int) -> object:
        line.wait()
        return work(number)

    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(run, range(count)))


def race_processes(count: int, work: Work, url: str) -> list[object]:
    context = multiprocessing.get_context("spawn")
    line = context.Barrier(count, timeout=60)
    runs = []
    for number in range(count):
        receiver, sender = context.Pipe(duplex=False)
        process = context.Process(target=_run, args=(work, url, number, line, sender))
        process.start()
        sender.close()
        runs.append((process, receiver))
    answers = [receiver.recv() for _, receiver in runs]
    for process, _ in runs:
        process.join()
    return answers


def _run(work: Work, url: str, number: int, line: Barrier, answer: Connection) -> None:
    line.wait()
    try:
        answer.send(work(url, number))
    except Exception as error:
        answer.send(repr(error))


def open_catalog(url: str, _number: int) -> str:
    with Catalog.open(url) as catalog, catalog.begin(write=False) as transaction:
        return f"{len(transaction.stream_tables.all())} stream tables"


def acquire_lease(url: str, number: int) -> bool:
    with Catalog.open(url) as catalog, catalog.begin() as transaction:
        return transaction.leases.acquire("totals", f"process-{number}", 60) is not None


def count_up(url: str, number: int) -> str:
    """Read, then write what was read plus one: an update is lost if transactions overlap."""
    with Catalog.open(url) as catalog:
        for _ in range(20):
            with catalog.begin() as transaction:
                row = transaction.stream_tables.update("counter")
                transaction.stream_tables.update("counter", sequence=row.sequence + 1)
    return "done"
