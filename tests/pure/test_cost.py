"""What a refresh is expected to take follows from those before it, and an action is changed for a clear gain only."""

from __future__ import annotations

from dataclasses import replace

import pytest

from spark_trickle.refresh.choose import Action, Facts, SourceChange, choose_action
from spark_trickle.refresh.cost import WINDOW, Past, Prediction, predict


def change(rows: int, seconds: float) -> Past:
    return Past(False, seconds, rows)


def whole(seconds: float) -> Past:
    return Past(True, seconds)


@pytest.mark.parametrize(
    ("past", "rows", "expected"),
    [
        ([], 10, None),
        ([whole(5)], 10, None),
        ([change(100, 2.0)], None, None),
        ([change(100, 2.0)], 10, 2.0),
        ([change(100, 2.0)], 100, 2.0),
        ([change(100, 2.0)], 10_000, 2.0),
        ([change(100, 2.0)], 100_000, 20.0),
        ([change(50_000, 2.0)], 100_000, 4.0),
        ([change(0, 0.5)], 1000, 0.5),
        ([Past(False, 9.0, None), change(100, 2.0)], 100, 2.0),
        ([change(10_000, 2.0), change(40_000, 5.0)], 20_000, 3.0),
        ([change(100, 9.0), change(100, 2.0), change(100, 2.0)], 100, 2.0),
        ([change(12_030, 1.0), change(11_950, 12.0)], 12_010, 1.0),
        ([change(12_030, 12.0), change(11_950, 1.0)], 12_010, 1.0),
        ([*[change(12_000, 9.0)] * 2, *[change(12_000, 1.0)] * 9], 12_000, 9.0),
        ([change(100, 2.0), change(600, 1.0)], 900, 1.0),
        ([*[whole(1)] * WINDOW, change(100, 2.0)], 100, None),
    ],
)
def test_the_seconds_of_a_change(past: list[Past], rows: int | None, expected: float | None) -> None:
    assert predict(past, rows).differential == expected


def test_the_seconds_of_a_recomputation_are_the_middle_ones() -> None:
    assert predict([whole(9), change(1, 1), whole(2), whole(3)], 1).full == 3
    assert predict([whole(2), replace(whole(9), first=True)], 1).full == 2
    assert predict([whole(9), whole(9), change(1, 1), whole(9)], 1).fulls_since == 2
    assert predict([change(1, 1), whole(9)], 1).fulls_since == 0


@pytest.mark.parametrize(
    ("differential", "full", "last_was_full", "expected"),
    [
        (1.05, 1.0, False, False),
        (1.2, 1.0, False, True),
        (0.95, 1.0, True, True),
        (0.8, 1.0, True, False),
        (None, 1.0, True, False),
        (9.0, None, False, False),
    ],
)
def test_what_was_done_last_is_done_again_unless_the_other_is_clearly_better(
    differential: float | None, full: float | None, last_was_full: bool, expected: bool
) -> None:
    assert Prediction(differential, full, int(last_was_full), trials=2).prefers_full is expected


def test_the_first_differential_refresh_decides_nothing_unless_it_was_given_up_or_far_too_slow() -> None:
    full, slow = Past(True, 1.0), Past(False, 2.5, 10)
    assert not predict([slow, full], 10).prefers_full
    assert predict([replace(slow, seconds=3.5), full], 10).prefers_full
    assert predict([slow, slow, full], 10).prefers_full
    assert predict([replace(slow, given_up=True), full], 10).prefers_full


def test_a_first_differential_refresh_that_may_have_been_compiling_is_repeated() -> None:
    slow, full = Past(False, 4.9, 10), whole(1.0)
    assert predict([full, full, slow, full], 10).prefers_full
    assert not predict([full, full, full, slow, full], 10).prefers_full
    assert predict([full, full, full, replace(slow, seconds=5.1), full], 10).prefers_full
    assert predict([full, full, full, replace(slow, given_up=True), full], 10).prefers_full
    assert predict([full, full, full, slow, slow, full], 10).prefers_full


@pytest.mark.parametrize(
    ("seconds", "first", "expected"),
    [(2.0, 3.5, True), (1.0, 3.5, False), (20.0, 61.0, False)],
    ids=["not much shorter", "much shorter", "a long time"],
)
def test_a_first_fill_alone_says_too_much_of_recomputing(
    seconds: float, first: float, expected: bool
) -> None:
    tried = [change(10, seconds), change(10, seconds)]
    fill = replace(whole(first), first=True)
    assert predict([*tried, fill], 10).is_to_compare is expected
    assert not predict([tried[0], fill], 10).is_to_compare
    assert not predict([*tried, whole(first), fill], 10).is_to_compare
    assert not predict([*tried * WINDOW, whole(first), fill], 10).is_to_compare
    assert not predict([*tried, whole(first)], 10).is_to_compare
    facts = Facts("AUTO", (SourceChange("t", 0.01, 10**9),), source_bytes=10**9)
    decision = choose_action(replace(facts, prediction=predict([*tried, fill], 10)))
    assert (decision.action is Action.FULL) is expected
    why = "`t` changed; recomputed once to compare: differential refreshes take about 2.0 s"
    assert decision.reason == (why if expected else "`t` changed")


def test_a_change_is_given_up_only_where_recomputing_is_known_to_be_shorter() -> None:
    assert Prediction(1.0, None).limit is None
    assert Prediction(1.0, 0.5).limit == 5
    assert Prediction(None, 60.0).limit == 180


def test_cost_decides_in_mode_auto_and_for_large_sources_only() -> None:
    dear = Prediction(9.0, 3.0, trials=2)
    facts = Facts("AUTO", (SourceChange("t", 0.01, 10**9),), source_bytes=10**9, prediction=dear)
    decision = choose_action(facts)
    assert (decision.action, decision.predicted) == (Action.FULL, 3.0)
    assert decision.reason == "`t` changed, which would take about 9.0 s instead of 3.0 s for all"
    small = Facts("AUTO", facts.changed, full_refresh_min_bytes=10**10, source_bytes=10**9, prediction=dear)
    assert (choose_action(small).action, choose_action(small).limit) == (Action.DIFFERENTIAL, None)
    assert choose_action(replace(small, changed_rows=7, full_refresh_min_rows=6)).action is Action.FULL
    assert (
        choose_action(replace(small, changed_rows=7, full_refresh_min_rows=7)).action is Action.DIFFERENTIAL
    )
    endless = replace(small, prediction=replace(dear, differential=11.0))
    assert choose_action(endless).action is Action.FULL
    asked = Facts("DIFFERENTIAL", facts.changed, source_bytes=10**9, prediction=dear)
    assert (choose_action(asked).action, choose_action(asked).limit) == (Action.DIFFERENTIAL, None)
    cheap = Facts("AUTO", facts.changed, source_bytes=10**9, prediction=Prediction(1.0, 30.0))
    assert (choose_action(cheap).action, choose_action(cheap).limit) == (Action.DIFFERENTIAL, 90.0)
