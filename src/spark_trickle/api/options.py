"""Options of a stream table, checked where they enter."""

from __future__ import annotations

from typing import Literal, cast, get_args

from spark_trickle.catalog import DiamondConsistency, RefreshMode
from spark_trickle.errors import DefinitionError
from spark_trickle.names import did_you_mean
from spark_trickle.scheduler.schedules import Every, parse_schedule, spelled


def check_schedule(schedule: str, least_seconds: int) -> str:
    """A schedule in its canonical spelling: a duration, a cron expression, or one of three words."""
    found = parse_schedule(schedule)
    if isinstance(found, Every) and found.seconds < least_seconds:
        raise DefinitionError(
            f"`{schedule}` is shorter than {least_seconds} seconds, the shortest freshness bound allowed.",
            hint="Allow it more time, or lower the setting `min_schedule_seconds`.",
            code="INVALID_SCHEDULE",
        )
    return spelled(schedule)


def check_mode(mode: str) -> RefreshMode:
    text = mode.upper() if isinstance(mode, str) else ""
    if text not in get_args(RefreshMode):
        raise _bad_choice("refresh_mode", mode, get_args(RefreshMode))
    return cast(RefreshMode, text)


def check_consistency(consistency: str) -> DiamondConsistency:
    text = consistency.lower() if isinstance(consistency, str) else ""
    if text not in get_args(DiamondConsistency):
        raise _bad_choice("diamond_consistency", consistency, get_args(DiamondConsistency))
    return cast(DiamondConsistency, text)


def check_status(status: str) -> Literal["ACTIVE", "SUSPENDED"]:
    """The statuses a user may set."""
    text = status.upper() if isinstance(status, str) else ""
    if text not in {"ACTIVE", "SUSPENDED"}:
        raise _bad_choice("status", status, ("ACTIVE", "SUSPENDED"))
    return cast(Literal["ACTIVE", "SUSPENDED"], text)


def _bad_choice(name: str, value: object, choices: tuple[str, ...]) -> DefinitionError:
    guess = did_you_mean(str(value).upper(), choices)
    return DefinitionError(
        f"`{name}` is {value!r}; it must be one of {', '.join(choices)}.",
        hint=guess or f"Choose one of {', '.join(choices)}.",
        code=f"INVALID_{name.upper()}",
    )
