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

    full_refresh_threshold: float = 0.5
    """AUTO recomputes when more than this share of the sources' bytes was added or removed."""

    full_refresh_min_bytes: int = 16 * 1024 * 1024
    """AUTO never recomputes for fewer changed bytes than this: the files of small tables are rewritten whole."""

    lease_seconds: int = 60
    """How long a refresh may go without a sign of life before another process takes over."""

    local_change_rows: int = 20_000
    """Changes and key sets up to this many rows are held by the driver; larger ones stay distributed."""

    max_concurrent_refreshes: int = 4
    """How many stream tables the daemon refreshes at once."""

    max_consecutive_errors: int = 3
    """After so many failures in a row the daemon suspends a stream table."""

    min_schedule_seconds: int = 6
    """No freshness bound may be shorter than this."""

    scheduler_interval_ms: int = 1000
    """How often the daemon looks for work."""

    volatile_function_policy: str = "reject"
    """What becomes of queries with `rand()` and the like: reject, warn (recompute) or allow."""

    def __post_init__(self) -> None:
        if not 0 < self.full_refresh_threshold <= 1:
            raise _invalid("full_refresh_threshold", self.full_refresh_threshold, "above 0 and at most 1")
        if self.full_refresh_min_bytes < 0:
            raise _invalid("full_refresh_min_bytes", self.full_refresh_min_bytes, "at least 0")
        if self.lease_seconds < 1:
            raise _invalid("lease_seconds", self.lease_seconds, "at least 1")
        if self.local_change_rows < 1:
            raise _invalid("local_change_rows", self.local_change_rows, "at least 1")
        if self.max_concurrent_refreshes < 1:
            raise _invalid("max_concurrent_refreshes", self.max_concurrent_refreshes, "at least 1")
        if self.max_consecutive_errors < 1:
            raise _invalid("max_consecutive_errors", self.max_consecutive_errors, "at least 1")
        if self.min_schedule_seconds < 1:
            raise _invalid("min_schedule_seconds", self.min_schedule_seconds, "at least 1")
        if self.scheduler_interval_ms < 10:
            raise _invalid("scheduler_interval_ms", self.scheduler_interval_ms, "at least 10")
        if self.volatile_function_policy not in {"reject", "warn", "allow"}:
            policy = self.volatile_function_policy
            raise _invalid("volatile_function_policy", policy, "reject, warn or allow")


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
    if isinstance(value, wanted) and not isinstance(value, bool):
        return value
    if wanted is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    try:
        if isinstance(value, str):
            return wanted(value)
    except ValueError:
        pass
    meant = {int: "a whole number", float: "a number", str: "text"}[wanted]
    raise _invalid(name, value, meant + (f", {origin}" if origin else ""))


def _invalid(name: str, value: object, expected: str) -> DefinitionError:
    return DefinitionError(
        f"Setting `{name}` is {value!r}; it must be {expected}.",
        hint="See docs/configuration.md.",
        code="INVALID_SETTING",
    )
