"""A hundred adversarial queries through the public API on real Delta tables."""

from __future__ import annotations

import pytest

from spark_trickle import Action, Trickle
from tests.spark.oracle import Checked
from tests.spark.traps import Trap, expected, load

RECOMPUTED: dict[str, str] = {}
"""Traps whose root needs all of its input, with the reason. Everything else must be DIFFERENTIAL."""


@pytest.mark.parametrize("trap", load(), ids=lambda t: t.id)
def test_trap(trickle: Trickle, database: str, trap: Trap) -> None:
    if "COLLATE" in str(trap.tables):
        trickle.spark.conf.set("spark.databricks.delta.schema.typeCheck.enabled", "false")
    trap.create_tables(trickle)
    trickle.create_stream_table("st", trap.query)
    checked = Checked(trickle, "st", trap.query)
    checked.created()
    assert checked.held == expected(trap.initial)
    wanted = Action.FULL if trap.id in RECOMPUTED else Action.DIFFERENTIAL
    for batch in trap.batches:
        for statement in batch["dml"]:
            trickle.sql(statement)
        checked.refresh({wanted, Action.NO_DATA})
        assert checked.held == expected(batch["expected"])
