"""Settings are checked where they enter; time is an argument."""

from datetime import UTC, timedelta

import pytest

from spark_trickle.clock import system_clock
from spark_trickle.config import Settings
from spark_trickle.errors import DefinitionError


def test_the_defaults_are_valid() -> None:
    assert Settings().full_refresh_threshold == 0.5


@pytest.mark.parametrize(
    "valid",
    [
        {"full_refresh_threshold": 1},
        {"full_refresh_min_bytes": 0},
        {"lease_seconds": 1},
        {"local_change_rows": 1},
        {"volatile_function_policy": "allow"},
    ],
    ids=str,
)
def test_the_outermost_valid_values_are_accepted(valid: dict[str, float]) -> None:
    accepted = Settings(**valid)
    assert {name: getattr(accepted, name) for name in valid} == valid


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("full_refresh_threshold", 0, "above 0 and at most 1"),
        ("full_refresh_threshold", 1.5, "above 0 and at most 1"),
        ("full_refresh_min_bytes", -1, "at least 0"),
        ("lease_seconds", 0, "at least 1"),
        ("local_change_rows", -3, "at least 1"),
        ("volatile_function_policy", "maybe", "reject, warn or allow"),
    ],
)
def test_an_invalid_setting_is_named_with_its_value_and_its_bounds(
    name: str, value: float, expected: str
) -> None:
    with pytest.raises(DefinitionError) as refused:
        Settings(**{name: value})
    assert refused.value.message == f"Setting `{name}` is {value!r}; it must be {expected}."
    assert refused.value.code == "INVALID_SETTING"


def test_the_system_clock_tells_utc() -> None:
    assert system_clock().tzinfo is UTC
    assert system_clock() - system_clock() < timedelta(minutes=1)
