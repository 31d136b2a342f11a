"""Schedules: how stale a stream table may get, and the instants at which it is brought up to date.

Freshness bounds of different tables rarely have a common multiple. So a bound is turned into a canonical period,
48·2ⁿ seconds, the largest that is at most half of it: instants of a longer period are then instants of every
shorter one, and tables with different bounds meet at the same data timestamps.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from cronsim import CronSim, CronSimError

from spark_trickle.errors import DefinitionError

_DURATION = re.compile(r"^(?:(\d+)d)?(?:(\d+)h)?(?:(\d+)m)?(?:(\d+)s)?$")
_UNITS = (86_400, 3_600, 60, 1)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_SHORTEST = 3
_LONGEST_DURATION = 3_650 * 86_400


@dataclass(frozen=True, slots=True)
class Every:
    """A freshness bound: the table is never older than this."""

    seconds: int


@dataclass(frozen=True, slots=True)
class Cron:
    """At the instants of a cron expression, in a time zone."""

    expression: str
    zone: str = "UTC"


@dataclass(frozen=True, slots=True)
class Downstream:
    """As fresh as the tables that read it need."""


@dataclass(frozen=True, slots=True)
class Manual:
    """Only when asked."""


@dataclass(frozen=True, slots=True)
class OnChange:
    """Whenever a source has a new version."""


Schedule = Every | Cron | Downstream | Manual | OnChange
_WORDS: dict[str, Schedule] = {"DOWNSTREAM": Downstream(), "MANUAL": Manual(), "ON CHANGE": OnChange()}


def parse_schedule(text: object) -> Schedule:
    """A duration, a cron expression with or without a time zone at its end, or one of three words."""
    if not isinstance(text, str):
        raise _bad(text, "")
    words = " ".join(text.split())
    if words.upper() in _WORDS:
        return _WORDS[words.upper()]
    duration = _DURATION.match(words.lower())
    if words and duration:
        seconds = sum(int(part or 0) * unit for part, unit in zip(duration.groups(), _UNITS, strict=True))
        if not 0 < seconds <= _LONGEST_DURATION:
            raise _bad(text, ": it must be longer than nothing and at most ten years")
        return Every(seconds)
    return _cron(text, words.split(" "))


def spelled(text: str) -> str:
    """A schedule in its canonical spelling."""
    words = " ".join(text.split())
    match parse_schedule(text):
        case Every():
            return words.lower()
        case Cron():
            return words
        case _:
            return words.upper()


def _cron(text: str, parts: list[str]) -> Cron:
    zone = "UTC"
    if len(parts) > 5 and re.fullmatch(r"[A-Za-z][\w+\-/]*", parts[-1]):
        *parts, zone = parts
    if len(parts) not in {5, 6}:
        raise _bad(text, "")
    try:
        ZoneInfo(zone)
    except (ZoneInfoNotFoundError, ValueError):
        raise _bad(text, f": there is no time zone `{zone}`") from None
    try:
        CronSim(" ".join(parts), _EPOCH)
    except CronSimError as error:
        raise _bad(text, f": {error}") from None
    return Cron(" ".join(parts), zone)


def _bad(text: object, why: str) -> DefinitionError:
    return DefinitionError(
        f"`{text}` is not a schedule{why}.",
        hint="Write a duration (30s, 5m, 1h30m), a cron expression, DOWNSTREAM, MANUAL or ON CHANGE.",
        code="INVALID_SCHEDULE",
    )


def period_of(bound: float) -> float:
    """The canonical period of a freshness bound: 48·2ⁿ seconds, at most half of it, at least three."""
    period = 48.0
    while period * 2 <= bound / 2:
        period *= 2
    while period > max(bound / 2, _SHORTEST):
        period /= 2
    return period


def aligned(now: datetime, period: float) -> datetime:
    """The last instant of a period."""
    elapsed = (now - _EPOCH).total_seconds()
    return _EPOCH + timedelta(seconds=elapsed // period * period)


def last_instant(schedule: Every | Cron, now: datetime) -> datetime | None:
    """The newest data timestamp that the schedule asks for; None when there has been none yet."""
    if isinstance(schedule, Every):
        return aligned(now, period_of(schedule.seconds))
    try:
        # The iterator goes back from the minute after, so that an instant that is just now counts.
        found = next(CronSim(schedule.expression, _after(now, schedule.zone), reverse=True))
    except StopIteration:
        return None
    return found.astimezone(UTC)


def next_instant(schedule: Every | Cron, now: datetime) -> datetime | None:
    """The next data timestamp that the schedule will ask for."""
    if isinstance(schedule, Every):
        period = period_of(schedule.seconds)
        return aligned(now, period) + timedelta(seconds=period)
    try:
        return next(CronSim(schedule.expression, now.astimezone(ZoneInfo(schedule.zone)))).astimezone(UTC)
    except StopIteration:
        return None


def _after(now: datetime, zone: str) -> datetime:
    return now.astimezone(ZoneInfo(zone)) + timedelta(seconds=1)
