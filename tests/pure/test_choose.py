"""The decision is a pure function of facts, and says why."""

from __future__ import annotations

from dataclasses import replace

import pytest

from spark_trickle.refresh.choose import Action, Facts, SourceChange, choose_action

SMALL = SourceChange("orders", 0.1, 100)
LARGE = SourceChange("lines", 0.8, 100)
AUTO = Facts("AUTO", (SMALL,))
MANY = replace(
    AUTO, changed_rows=80_000, source_rows=100_000, full_refresh_min_bytes=10**9, full_refresh_min_rows=1000
)


@pytest.mark.parametrize(
    ("facts", "action", "reason"),
    [
        (replace(AUTO, changed=()), Action.NO_DATA, "no source has changed"),
        (AUTO, Action.DIFFERENTIAL, "`orders` changed"),
        (replace(AUTO, changed=(SMALL, LARGE)), Action.FULL, "80% of `lines` changed"),
        (
            replace(AUTO, changed=(LARGE,), full_refresh_min_bytes=1000),
            Action.DIFFERENTIAL,
            "`lines` changed",
        ),
        (replace(MANY, changed=(LARGE,)), Action.FULL, "80% of `lines` changed"),
        (replace(MANY, changed=(LARGE,), changed_rows=800), Action.DIFFERENTIAL, "`lines` changed"),
        (replace(MANY, changed=(LARGE,), source_rows=200_000), Action.DIFFERENTIAL, "`lines` changed"),
        (replace(MANY, changed=(SMALL,)), Action.DIFFERENTIAL, "`orders` changed"),
        (
            replace(MANY, changed=(LARGE,), refresh_mode="DIFFERENTIAL"),
            Action.DIFFERENTIAL,
            "`lines` changed",
        ),
        (
            replace(AUTO, changed=(LARGE,), refresh_mode="DIFFERENTIAL"),
            Action.DIFFERENTIAL,
            "`lines` changed",
        ),
        (replace(AUTO, refresh_mode="FULL"), Action.FULL, "refresh_mode is FULL; `orders` changed"),
        (
            replace(AUTO, recomputed_reason="LIMIT needs all rows"),
            Action.FULL,
            "`orders` changed and LIMIT needs all rows",
        ),
        (replace(AUTO, first_fill=True, rebuild_reason="x"), Action.FULL, "it is filled for the first time"),
        (replace(AUTO, rebuild_reason="`orders` was replaced"), Action.REINITIALIZE, "`orders` was replaced"),
        (replace(AUTO, changed=(), rebuild_reason="a view changed"), Action.REINITIALIZE, "a view changed"),
        (replace(AUTO, changed=(SourceChange("e", 0, 0),)), Action.DIFFERENTIAL, "`e` changed"),
        (replace(AUTO, changed=(), time_passed=True), Action.DIFFERENTIAL, "time has passed"),
        (replace(AUTO, time_passed=True), Action.DIFFERENTIAL, "`orders` changed"),
        (
            replace(AUTO, changed=(), time_passed=True, recomputed_reason="COUNT needs all rows"),
            Action.FULL,
            "time has passed and COUNT needs all rows",
        ),
    ],
)
def test_the_action_and_its_reason(facts: Facts, action: Action, reason: str) -> None:
    decision = choose_action(facts)
    assert (decision.action, decision.reason) == (action, reason)


def test_nothing_changed_wins_over_mode_full() -> None:
    assert choose_action(Facts("FULL", ())).action is Action.NO_DATA
