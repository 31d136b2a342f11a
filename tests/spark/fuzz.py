"""Random edits against twenty query shapes, equal to Spark's own answer after every cycle.

python -m tests.spark.fuzz [--seed N] [--cycles N] [--part 1/2] [--break join]        (make fuzz)
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

from spark_trickle import Action, Trickle
from tests.spark.breaks import add_option, break_rule, exit_code
from tests.spark.oracle import Checked
from tests.spark.session import start
from tests.spark.shapes import SHAPES, TABLES, Edits


def run(
    trickle: Trickle,
    seed: int,
    cycles: int,
    each: int = len(SHAPES),
    shapes: Mapping[str, str] = SHAPES,
    said: Callable[[str], None] = lambda _: None,
) -> Counter[str]:
    """Create the tables and one stream table a shape in the current database, then edit and compare.

    `each` shapes take their turn in a cycle; those that wait have several batches in their next interval.
    """
    edits = Edits(seed)
    for table, schema in TABLES.items():
        trickle.sql(f"CREATE TABLE {table} ({schema}) USING delta")
        trickle.sql(edits.initial(table))
    checks = []
    for name, query in shapes.items():
        trickle.create_stream_table(name, query, refresh_mode="DIFFERENTIAL")
        checks.append(Checked(trickle, name, query))
        checks[-1].created()
    actions: Counter[str] = Counter()
    for cycle in range(cycles):
        batch = edits.batch()
        for statement in batch:
            trickle.sql(statement)
        turn = [checks[(cycle * each + i) % len(checks)] for i in range(min(each, len(checks)))]
        for check in turn:
            try:
                result = check.refresh({Action.DIFFERENTIAL, Action.NO_DATA})
            except BaseException:
                print(f"seed {seed}, cycle {cycle}, shape {check.name}: after {batch}")
                raise
            actions[result.action.value] += 1
        said(f"cycle {cycle + 1} of {cycles}: {dict(actions)}")
    return actions


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--cycles", type=int, default=50)
    parser.add_argument(
        "--part", default="1/1", help="1/2: the first half of the shapes, beside another process"
    )
    add_option(parser)
    options = parser.parse_args()
    break_rule(options)
    part, parts = map(int, options.part.split("/"))
    shapes = dict(list(SHAPES.items())[part - 1 :: parts])
    print(f"seed {options.seed}, {options.cycles} cycles, {len(shapes)} shapes")
    with tempfile.TemporaryDirectory() as folder:
        spark = start(Path(folder))
        with Trickle(spark, home=Path(folder)) as trickle:
            started = time.monotonic()
            try:
                actions = run(
                    trickle, options.seed, options.cycles, shapes=shapes, said=partial(print, flush=True)
                )
            except AssertionError as difference:
                print(difference)
                sys.exit(exit_code(options, found=True))
        spark.stop()
    print(f"equal after every cycle: {dict(actions)}, {time.monotonic() - started:.0f} s")
    sys.exit(exit_code(options, found=False))


if __name__ == "__main__":
    main()
