"""A short seeded run of the fuzzer; `make fuzz` is the long one."""

from __future__ import annotations

from spark_trickle import Trickle
from tests.spark.fuzz import run
from tests.spark.shapes import SHAPES


def test_random_edits_keep_every_shape_equal(trickle: Trickle, database: str) -> None:
    actions = run(trickle, seed=20261115, cycles=50, each=1)
    assert sum(actions.values()) == 50
    assert actions["DIFFERENTIAL"] > 2 * len(SHAPES)
