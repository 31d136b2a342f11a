"""Settings are checked where they enter; time is an argument."""

from datetime import UTC, timedelta
from pathlib import Path

import pytest

from spark_trickle.clock import system_clock
from spark_trickle.config import Settings, load_settings
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
        {"max_concurrent_refreshes": 1},
        {"max_consecutive_errors": 1},
        {"min_schedule_seconds": 1},
        {"scheduler_interval_ms": 10},
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
        ("max_concurrent_refreshes", 0, "at least 1"),
        ("max_consecutive_errors", 0, "at least 1"),
        ("min_schedule_seconds", 0, "at least 1"),
        ("scheduler_interval_ms", 9, "at least 10"),
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


def test_file_environment_and_keywords_in_this_order(tmp_path: Path) -> None:
    (tmp_path / "trickle.toml").write_text(
        "lease_seconds = 10\nlocal_change_rows = 20\nfull_refresh_threshold = 1"
    )
    environment = {
        "TRICKLE_LOCAL_CHANGE_ROWS": "30",
        "TRICKLE_MAX_CONSECUTIVE_ERRORS": "40",
        "TRICKLE_HOME": "x",
    }
    found = load_settings(tmp_path, environment, {"max_consecutive_errors": 50})
    assert found == Settings(
        full_refresh_threshold=1.0, lease_seconds=10, local_change_rows=30, max_consecutive_errors=50
    )
    assert load_settings(tmp_path / "nowhere", {"TRICKLE_LEASE_SECONDS": ""}) == Settings()


@pytest.mark.parametrize(
    ("file", "environment", "given", "said"),
    [
        ("lease_secs = 10", {}, {}, "no setting `lease_secs`"),
        ("lease_seconds = ", {}, {}, "cannot be read"),
        ("lease_seconds = true", {}, {}, "a whole number"),
        ("lease_seconds = 1.5", {}, {}, "a whole number"),
        ("", {"TRICKLE_LEASE_SECONDS": "soon"}, {}, "a whole number, in the environment"),
        ("", {"TRICKLE_FULL_REFRESH_THRESHOLD": "half"}, {}, "a number, in the environment"),
        ("", {"TRICKLE_LEASE_SECONDS": "0"}, {}, "at least 1"),
        ("", {}, {"leas_seconds": 3}, "no setting `leas_seconds`"),
        ("", {}, {"lease_seconds": None}, "a whole number"),
    ],
)
def test_what_cannot_be_a_setting_is_named_with_its_place(
    tmp_path: Path, file: str, environment: dict[str, str], given: dict[str, object], said: str
) -> None:
    (tmp_path / "trickle.toml").write_text(file)
    with pytest.raises(DefinitionError, match=said) as refused:
        load_settings(tmp_path, environment, given)
    assert refused.value.code == "INVALID_SETTING"
    assert refused.value.hint
