"""A process of its own that runs the daemon until it is killed, and says what it does, one line of JSON an event.

python -m tests.spark.daemon_process HOME [--catalog URL] [--lease SECONDS] [--host NAME]
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import sys
from pathlib import Path

from spark_trickle import Trickle
from spark_trickle.scheduler.events import Event
from spark_trickle.storage.warehouse import register_folders
from tests.spark.session import start


def say(told: dict[str, object]) -> None:
    """One write a line: events come from several threads."""
    sys.stdout.write(json.dumps(told) + "\n")
    sys.stdout.flush()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("home", type=Path)
    parser.add_argument("--catalog")
    parser.add_argument("--lease", type=int, default=10)
    parser.add_argument("--host", help="what it says its machine is called")
    options = parser.parse_args()
    if options.host:
        socket.gethostname = lambda: str(options.host)
    spark = start(options.home)
    register_folders(spark, options.home / "warehouse")

    def tell(event: Event) -> None:
        action = event.result.action.value if event.result else ""
        why = event.error.message if event.error else event.message
        told = {"kind": event.kind, "name": event.name, "pid": os.getpid(), "action": action, "why": why}
        say(told)

    settings = {"lease_seconds": options.lease, "scheduler_interval_ms": 200, "max_consecutive_errors": 1000}
    with Trickle(spark, home=options.home, catalog=options.catalog, settings=settings) as trickle:
        say({"kind": "ready", "pid": os.getpid()})
        trickle.run(on_event=tell)


if __name__ == "__main__":
    main()
