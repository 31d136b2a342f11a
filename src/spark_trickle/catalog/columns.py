"""Column types that read back exactly what was written, in SQLite and in PostgreSQL."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import JSON, DateTime, Dialect, Text, TypeDecorator

from spark_trickle.frontier import Frontier


class UtcDateTime(TypeDecorator[datetime]):
    """A moment, to the microsecond.

    PostgreSQL answers in the time zone of its session and SQLite, which keeps text, in none at all.
    """

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, _dialect: Dialect) -> datetime | None:
        if value is None:
            return None
        if value.tzinfo is None:
            raise ValueError(f"a moment needs a time zone, got {value}")
        return value.astimezone(UTC)

    def process_result_value(self, value: datetime | None, _dialect: Dialect) -> datetime | None:
        if value is None:
            return None
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


class FrontierText(TypeDecorator[Frontier]):
    """A frontier in its own JSON."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: Frontier | None, _dialect: Dialect) -> str | None:
        return None if value is None else value.to_json()

    def process_result_value(self, value: str | None, _dialect: Dialect) -> Frontier | None:
        return None if value is None else Frontier.from_json(value)


class JsonMapping(TypeDecorator[Mapping[str, Any]]):
    """Any mapping, not only a dict."""

    impl = JSON
    cache_ok = True

    def process_bind_param(self, value: Mapping[str, Any] | None, _dialect: Dialect) -> dict[str, Any] | None:
        return None if value is None else dict(value)


class JsonPairs(TypeDecorator[tuple[tuple[str, str], ...]]):
    """Pairs of strings; JSON would give lists back."""

    impl = JSON
    cache_ok = True

    def process_result_value(
        self, value: Sequence[Sequence[str]] | None, _dialect: Dialect
    ) -> tuple[tuple[str, str], ...] | None:
        return None if value is None else tuple((name, type_) for name, type_ in value)


class Message(TypeDecorator[str]):
    """Text from elsewhere, such as an error of Spark.

    PostgreSQL refuses NUL and neither database takes half a surrogate pair. Losing one character
    is better than losing the message.
    """

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: str | None, _dialect: Dialect) -> str | None:
        if value is None:
            return None
        return value.replace("\0", "\ufffd").encode("utf-8", "replace").decode("utf-8")
