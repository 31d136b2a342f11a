"""Settings, validated where they enter."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path

from spark_trickle.errors import DefinitionError
from spark_trickle.names import did_you_mean

FILE = "trickle.toml"


@dataclass(frozen=True, slots=True)
class Settings:
    """Knobs with their defaults; every one is documented in `docs/configuration.md`."""

    alert_webhook: str = ""
    """A URL that the daemon posts its alerts to, as JSON; empty for none."""

    allow_circular: bool = False
    """Whether stream tables may read each other in a circle, as a fixpoint."""

    diamond_consistency: str = "none"
    """What a new stream table gets: none, or atomic (a failure takes the other members of its diamond back)."""

    driver_cache_bytes: int = 1024**3
    """So much of what the driver has read of the sources' files is kept in memory for the next refresh; 0 for nothing."""

    driver_scan_rows: int = 100_000_000
    """Few rows are read and written by the driver itself if they are among no more than so many; 0 leaves it to Spark."""

    full_refresh_threshold: float = 0.5
    """AUTO recomputes when more than this share of the sources' bytes was added or removed."""

    full_refresh_min_bytes: int = 16 * 1024 * 1024
    """Sources smaller than this are not worth weighing recomputing against the change, unless many rows changed."""

    full_refresh_min_rows: int = 1000
    """More changed rows than this are worth weighing, however small the sources are."""

    kept_groups: int = 250_000
    """Up to so many groups inside a query are kept in memory from one refresh to the next; 0 for none."""

    lease_seconds: int = 60
    """How long a refresh may go without a sign of life before another process takes over."""

    local_change_rows: int = 100_000
    """Changes and key sets up to this many rows are held by the driver; larger ones stay distributed."""

    max_concurrent_refreshes: int = 4
    """How many stream tables the daemon refreshes at once."""

    max_fixpoint_iterations: int = 100
    """How often the queries of a cycle may be evaluated until nothing is new."""

    max_consecutive_errors: int = 3
    """After so many failures in a row the daemon suspends a stream table."""

    min_schedule_seconds: int = 6
    """No freshness bound may be shorter than this."""

    scheduler_interval_ms: int = 1000
    """How often the daemon looks for work."""

    tidy_files: int = 50
    """The daemon compacts a stream table that has so many small files; 0 for never."""

    volatile_function_policy: str = "reject"
    """What becomes of queries with `rand()` and the like: reject, warn (recompute) or allow."""

    whole_read_bytes: int = 4 * 1024 * 1024
    """Sources up to this size are read whole where larger ones are read by the keys of the change."""

    def __post_init__(self) -> None:
        if not 0 < self.full_refresh_threshold <= 1:
            raise _invalid("full_refresh_threshold", self.full_refresh_threshold, "above 0 and at most 1")
        for name, least in _LEAST.items():
            if getattr(self, name) < least:
                raise _invalid(name, getattr(self, name), f"at least {least}")
        for name, choices in _CHOICES.items():
            if getattr(self, name) not in choices:
                *first, last = choices
                raise _invalid(name, getattr(self, name), f"{', '.join(first)} or {last}")
        if self.alert_webhook and not self.alert_webhook.startswith(("http://", "https://")):
            raise _invalid("alert_webhook", self.alert_webhook, "a URL that begins with http:// or https://")


_LEAST = {
    "driver_cache_bytes": 0,
    "driver_scan_rows": 0,
    "full_refresh_min_bytes": 0,
    "full_refresh_min_rows": 0,
    "kept_groups": 0,
    "lease_seconds": 1,
    "local_change_rows": 1,
    "max_concurrent_refreshes": 1,
    "max_consecutive_errors": 1,
    "max_fixpoint_iterations": 1,
    "min_schedule_seconds": 1,
    "scheduler_interval_ms": 10,
    "tidy_files": 0,
    "whole_read_bytes": 0,
}
_CHOICES = {
    "diamond_consistency": ("none", "atomic"),
    "volatile_function_policy": ("reject", "warn", "allow"),
}


_TRUTH = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}


def load_settings(
    home: Path, environment: Mapping[str, str], given: Mapping[str, object] | None = None
) -> Settings:
    """The defaults, changed by `trickle.toml` in the home, then by the environment, then by what is given."""
    values: dict[str, object] = {}
    for origin, found in (
        (f"in {home / FILE}", _from_file(home / FILE)),
        ("in the environment", _from_environment(environment)),
        ("", dict(given or {})),
    ):
        for name, value in found.items():
            values[name] = _typed(name, value, origin)
    return Settings(**values)  # type: ignore[arg-type]


def _from_file(path: Path) -> dict[str, object]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except (OSError, ValueError) as error:
        raise DefinitionError(
            f"The settings in `{path}` cannot be read: {error}",
            hint="Write one `name = value` a line, as in TOML.",
            code="INVALID_SETTING",
        ) from None


def _from_environment(environment: Mapping[str, str]) -> dict[str, object]:
    """`TRICKLE_` and the name in capitals; an empty variable counts as unset."""
    named = {f"TRICKLE_{field.name.upper()}": field.name for field in fields(Settings)}
    return {name: environment[key] for key, name in named.items() if environment.get(key)}


def _typed(name: str, value: object, origin: str) -> object:
    """The value in the type of the setting; text is read as a number where a number is meant."""
    types: dict[str, type] = {field.name: type(field.default) for field in fields(Settings)}
    where = f" {origin}" if origin else ""
    if name not in types:
        raise DefinitionError(
            f"There is no setting `{name}`, which was given{where}.",
            hint=did_you_mean(name, types) or "See docs/configuration.md.",
            code="INVALID_SETTING",
        )
    wanted = types[name]
    if isinstance(value, wanted) and (wanted is bool or not isinstance(value, bool)):
        return value
    if wanted is bool and isinstance(value, str) and value.lower() in _TRUTH:
        return _TRUTH[value.lower()]
    if wanted is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    try:
        if isinstance(value, str) and wanted is not bool:
            return wanted(value)
    except ValueError:
        pass
    meant = {int: "a whole number", float: "a number", str: "text", bool: "true or false"}[wanted]
    raise _invalid(name, value, meant + (f", {origin}" if origin else ""))


def _invalid(name: str, value: object, expected: str) -> DefinitionError:
    return DefinitionError(
        f"Setting `{name}` is {value!r}; it must be {expected}.",
        hint="See docs/configuration.md.",
        code="INVALID_SETTING",
    )
