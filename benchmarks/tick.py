"""How long a tick of the daemon takes, against the sum of its refreshes.

python -m benchmarks.tick [--graphs "graph of 50,diamond"] [--rounds 3] [--workers 4] [--json FILE]
"""

from __future__ import annotations

import argparse
import json
import threading
import time
from collections.abc import Mapping
from pathlib import Path

from benchmarks.common import place

from spark_trickle import Trickle
from spark_trickle.scheduler.daemon import Daemon
from spark_trickle.scheduler.events import Event

COPY = "SELECT id, k, v FROM {source}"
FIFTY = {
    **{f"copy_{i}": f"SELECT id, k, v FROM base WHERE id % 10 <> {i}" for i in range(10)},
    **{f"sum_{i}": f"SELECT k, SUM(v) AS s, COUNT(*) AS n FROM copy_{i} GROUP BY k" for i in range(10)},
    **{f"most_{i}": f"SELECT k, MAX(v) AS m FROM copy_{i} GROUP BY k" for i in range(10)},
    **{f"both_{i}": f"SELECT s.k, s.s, m.m FROM sum_{i} s JOIN most_{i} m ON s.k = m.k" for i in range(10)},
    **{f"large_{i}": f"SELECT k, s FROM both_{i} WHERE s > m" for i in range(10)},
}
"""Ten diamonds over one table, each with a reader."""
GRAPHS: Mapping[str, Mapping[str, str]] = {
    "chain of 10": {f"chain_{i}": COPY.format(source=f"chain_{i - 1}" if i else "base") for i in range(10)},
    "fan-out of 20": {
        f"fan_{i}": f"SELECT k, SUM(v) AS s FROM base WHERE id % 20 <> {i} GROUP BY k" for i in range(20)
    },
    "diamond": {
        "sums": "SELECT k, SUM(v) AS s FROM base GROUP BY k",
        "counts": "SELECT k, COUNT(*) AS n FROM base GROUP BY k",
        "averages": "SELECT s.k, s.s / c.n AS a FROM sums s JOIN counts c ON s.k = c.k",
    },
    "graph of 50": FIFTY,
}


def measure(graph: Mapping[str, str], rounds: int, workers: int) -> list[dict[str, float]]:
    with place({"max_concurrent_refreshes": workers}) as trickle:
        trickle.sql("CREATE TABLE base AS SELECT id, id % 100 AS k, id % 7 AS v FROM range(10000)")
        for name, query in graph.items():
            trickle.create_stream_table(name, query, "6s")
        return [_round(trickle, number) for number in range(rounds)]


def _round(trickle: Trickle, number: int) -> dict[str, float]:
    first = 10_000 + 100 * number
    trickle.sql(f"INSERT INTO base SELECT id, id % 100, id % 7 FROM range({first}, {first + 100})")
    events, stop = list[Event](), threading.Event()
    time.sleep(3.1)  # the next data timestamp
    daemon = Daemon(trickle._runtime, events.append)
    started = time.monotonic()
    daemon.tick()
    while daemon.waiting or daemon.running:
        stop.wait(0.005)
    wall = time.monotonic() - started
    daemon.finish()
    done = [event.result for event in events if event.kind == "refreshed" and event.result]
    return {"wall": wall, "sum": sum(result.seconds for result in done), "refreshes": len(done)}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--graphs", type=lambda text: text.split(","), default=list(GRAPHS))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    results = {
        name: measure(graph, options.rounds, options.workers)
        for name, graph in GRAPHS.items()
        if name in options.graphs
    }
    print(f"{'graph':<15} {'refreshes':>9} {'wall s':>8} {'sum s':>8} {'ratio':>6}")
    for name, rounds in results.items():
        for one in rounds:
            ratio = one["wall"] / one["sum"]
            print(f"{name:<15} {one['refreshes']:>9.0f} {one['wall']:>8.2f} {one['sum']:>8.2f} {ratio:>6.2f}")
    if options.json:
        options.json.write_text(json.dumps(results, indent=2))


if __name__ == "__main__":
    main()
