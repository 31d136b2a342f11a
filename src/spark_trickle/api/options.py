"""Options of a stream table, checked where they enter."""

from __future__ import annotations

import re
from typing import Literal, cast, get_args

from cronsim import CronSim, CronSimError

from spark_trickle.catalog import RefreshMode
from spark_trickle.clock import system_clock
from spark_trickle.errors import DefinitionError
from spark_trickle.names import did_you_mean

_DURATION = re.compile(r"^(?:(\d+)d)?(?:(\d+)h)?(?:(\d+)m)?(?:(\d+)s)?$")
_WORDS = ("DOWNSTREAM", "MANUAL", "ON CHANGE")


def check_schedule(schedule: str) -> str:
    """A schedule in its canonical spelling: a duration, a cron expression, or one of three words."""
    text = schedule.strip() if isinstance(schedule, str) else ""
    if text.upper() in _WORDS:
        return text.upper()
    duration = _DURATION.match(text.lower())
    if text and duration and any(int(part or 0) for part in duration.groups()):
        return text.lower()
    if len(text.split()) in {5, 6}:
        try:
            CronSim(text, system_clock())
        except CronSimError as error:
            raise _bad_schedule(schedule, f": {error}") from None
        return text
    raise _bad_schedule(schedule, "")


def check_mode(mode: str) -> RefreshMode:
    text = mode.upper() if isinstance(mode, str) else ""
    if text not in get_args(RefreshMode):
        raise _bad_choice("refresh_mode", mode, get_args(RefreshMode))
    return cast(RefreshMode, text)


def check_status(status: str) -> Literal["ACTIVE", "SUSPENDED"]:
    """The statuses a user may set."""
    text = status.upper() if isinstance(status, str) else ""
    if text not in {"ACTIVE", "SUSPENDED"}:
        raise _bad_choice("status", status, ("ACTIVE", "SUSPENDED"))
    return cast(Literal["ACTIVE", "SUSPENDED"], text)


def _bad_schedule(schedule: object, why: str) -> DefinitionError:
    return DefinitionError(
        f"`{schedule}` is not a schedule{why}.",
        hint="Write a duration (30s, 5m, 1h30m), a cron expression, DOWNSTREAM, MANUAL or ON CHANGE.",
        code="INVALID_SCHEDULE",
    )


def _bad_choice(name: str, value: object, choices: tuple[str, ...]) -> DefinitionError:
    guess = did_you_mean(str(value).upper(), choices)
    return DefinitionError(
        f"`{name}` is {value!r}; it must be one of {', '.join(choices)}.",
        hint=guess or f"Choose one of {', '.join(choices)}.",
        code=f"INVALID_{name.upper()}",
    )
