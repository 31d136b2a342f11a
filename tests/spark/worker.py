"""A process of its own that refreshes one stream table, and may be told to die at a named step.

python -m tests.spark.worker HOME NAME [--die-at STEP] [--wait-at STEP FILE]
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import time
from pathlib import Path

from spark_trickle import Trickle
from spark_trickle.storage.warehouse import register_folders
from tests.spark.session import start


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("home", type=Path)
    parser.add_argument("name")
    parser.add_argument("--die-at", nargs="*", default=[])
    parser.add_argument("--hold-until", type=Path, help="wait before writing until this file exists")
    options = parser.parse_args()
    spark = start(options.home)
    register_folders(spark, options.home / "warehouse")
    dying = list(options.die_at) or [""]
    for step in dying:
        _refresh(spark, options, step)


def _refresh(spark: object, options: argparse.Namespace, step: str) -> None:
    def on_step(name: str) -> None:
        if name == step:
            sys.stdout.flush()
            os.kill(os.getpid(), signal.SIGKILL)
        if name == "write" and options.hold_until:
            (options.hold_until.parent / "holding").touch()
            while not options.hold_until.exists():
                time.sleep(0.05)

    with Trickle(spark, home=options.home, on_step=on_step) as trickle:  # type: ignore[arg-type]
        result = trickle.refresh_stream_table(options.name)
        print(json.dumps({"action": result.action.value, "reason": result.reason}), flush=True)


if __name__ == "__main__":
    main()
