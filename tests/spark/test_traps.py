"""A hundred adversarial queries through the public API on real Delta tables."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace

import pytest

from spark_trickle import Action, Trickle
from spark_trickle.algebra.relations import NEW, At, InnerJoin, Node, Sum
from spark_trickle.incremental.rules import inner_join
from spark_trickle.refresh import kept_groups
from tests.spark.oracle import Checked
from tests.spark.session import as_in_production, forget_definitions
from tests.spark.traps import Trap, expected, load, strategies, strategy

WORTH = kept_groups._WORTH


@pytest.mark.parametrize("trap", load(), ids=lambda t: t.id)
def test_trap(trickle: Trickle, database: str, trap: Trap, monkeypatch: pytest.MonkeyPatch) -> None:
    if "COLLATE" in str(trap.tables):
        trickle.spark.conf.set("spark.databricks.delta.schema.typeCheck.enabled", "false")
    trap.create_tables(trickle)
    trickle.create_stream_table("st", trap.query)
    definition = trickle._runtime.definitions.of(trickle._table("st")).definition
    assert strategy(definition) == strategies()[trap.id]
    checked = Checked(trickle, "st", trap.query)
    checked.created()
    assert checked.held == expected(trap.initial)
    for number, batch in enumerate(trap.batches, len(trap.query)):
        for statement in batch["dml"]:
            trickle.sql(statement)
        forget_definitions(trickle)
        # Groups inside are kept however few rows they have, in some batches.
        monkeypatch.setattr(kept_groups, "_WORTH", number % 3 and WORTH)
        # Some batches read sources by keys, some whole.
        with as_in_production(trickle) if number % 2 else nullcontext():
            checked.refresh({Action.DIFFERENTIAL, Action.NO_DATA})
        assert checked.held == expected(batch["expected"])


def test_a_broken_rule_is_noticed(trickle: Trickle, database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The negative control: L_new in place of L_old counts a pair that is new on both sides twice."""

    def broken(join: InnerJoin, change_of: Callable[[Node], Node]) -> Node:
        from_left = replace(join, left=change_of(join.left), right=At(join.right, NEW))
        from_right = replace(join, left=At(join.left, NEW), right=change_of(join.right))
        return Sum((from_left, from_right))

    monkeypatch.setattr(inner_join, "change", broken)
    trap = next(t for t in load() if t.id == "A02")
    trap.create_tables(trickle)
    trickle.create_stream_table("st", "SELECT o.ok, l.amt FROM o JOIN l ON o.ok = l.ok")
    checked = Checked(trickle, "st", "SELECT o.ok, l.amt FROM o JOIN l ON o.ok = l.ok")
    checked.created()
    trickle.sql("INSERT INTO o VALUES (7, 70)")
    trickle.sql("INSERT INTO l VALUES (7, 700)")
    with pytest.raises(AssertionError, match="unexpected"):
        checked.refresh(Action.DIFFERENTIAL)
