"""Schedules, canonical periods and data timestamps."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_trickle.errors import DefinitionError
from spark_trickle.scheduler.schedules import (
    Cron,
    Downstream,
    Every,
    Manual,
    OnChange,
    aligned,
    last_instant,
    next_instant,
    parse_schedule,
    period_of,
    spelled,
)

INSTANTS = st.integers(1_577_836_800, 2_051_222_400).map(lambda s: datetime.fromtimestamp(s, UTC))
ZONES = st.sampled_from(["UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kathmandu"])


@pytest.mark.parametrize(
    ("text", "schedule"),
    [
        ("30s", Every(30)),
        ("5M", Every(300)),
        (" 1h30m ", Every(5400)),
        ("2d", Every(172_800)),
        ("downstream", Downstream()),
        ("Manual", Manual()),
        ("on  change", OnChange()),
        ("0 6 * * 1-5", Cron("0 6 * * 1-5")),
        ("0 6 * * * Europe/Berlin", Cron("0 6 * * *", "Europe/Berlin")),
        ("*/10 * * * * *", Cron("*/10 * * * * *")),
        ("0 0 * * SUN", Cron("0 0 * * SUN")),
    ],
)
def test_a_schedule_is_understood(text: str, schedule: object) -> None:
    assert parse_schedule(text) == schedule
    assert parse_schedule(spelled(text)) == schedule


@pytest.mark.parametrize(
    "text", ["", " ", "0s", "5", "5x", "1m30", "-5m", "1h 30m", "99999d", "61 * * * *", "* * * *", None, 60,
             "0 6 * * * Mars/Olympus", "ON CHANGES"],
)  # fmt: skip
def test_what_is_no_schedule_gets_one_sentence(text: object) -> None:
    with pytest.raises(DefinitionError) as failed:
        parse_schedule(text)
    assert failed.value.code == "INVALID_SCHEDULE"
    assert failed.value.hint


@given(st.floats(1, 1e8))
def test_a_period_is_canonical_and_at_most_half_the_bound(bound: float) -> None:
    period = period_of(bound)
    while period < 48:
        period *= 2
    while period > 48:
        period /= 2
    assert period == 48
    assert period_of(bound) <= max(bound / 2, 3)
    assert period_of(bound) == 3 or period_of(bound) * 4 > bound


@given(INSTANTS, st.integers(6, 10_000_000), st.integers(6, 10_000_000))
def test_instants_of_a_longer_period_are_instants_of_a_shorter_one(now: datetime, one: int, two: int) -> None:
    longer, shorter = period_of(max(one, two)), period_of(min(one, two))
    at = aligned(now, longer)
    assert aligned(at, shorter) == at
    assert at <= now < at + timedelta(seconds=longer)


@given(INSTANTS, ZONES, st.sampled_from(["*/5 * * * *", "30 2 * * *", "0 6 * * 1", "0 0 1 * *"]))
def test_cron_instants_enclose_now(now: datetime, zone: str, expression: str) -> None:
    cron = Cron(expression, zone)
    last, following = last_instant(cron, now), next_instant(cron, now)
    assert last is not None
    assert following is not None
    assert last <= now < following
    assert last_instant(cron, last) == last
    assert last_instant(cron, following) == following


def test_cron_follows_its_time_zone_through_the_change_to_summer_time() -> None:
    cron = Cron("0 6 * * *", "Europe/Berlin")
    winter, summer = datetime(2026, 3, 28, 12, tzinfo=UTC), datetime(2026, 3, 29, 12, tzinfo=UTC)
    assert last_instant(cron, winter) == datetime(2026, 3, 28, 5, tzinfo=UTC)
    assert last_instant(cron, summer) == datetime(2026, 3, 29, 4, tzinfo=UTC)
