"""Rows for tests, and a clock that stands still until told otherwise."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from spark_trickle.catalog import Dependency, StreamTable
from spark_trickle.frontier import Frontier, SourceVersion

NOON = datetime(2025, 3, 30, 12, 0, 0, 123456, tzinfo=UTC)


class FakeClock:
    def __init__(self, now: datetime = NOON) -> None:
        self.now = now

    def __call__(self) -> datetime:
        return self.now

    def advance(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)


def stream_table(name: str = "spark_catalog.default.totals", **fields: Any) -> StreamTable:
    defaults: dict[str, Any] = {
        "id": f"id-of-{name}"[-32:],
        "name": name,
        "location": f"/tables/{name}",
        "query": "SELECT city, sum(amount) FROM orders GROUP BY city",
        "definition_kind": "sql",
        "catalog_name": "spark_catalog",
        "database_name": "default",
        "schedule": "5m",
        "refresh_mode": "AUTO",
        "fingerprint": "f00d",
        "created_at": NOON,
        "updated_at": NOON,
    }
    return StreamTable(**defaults | fields)


def dependency(of: StreamTable, source_name: str = "spark_catalog.default.orders") -> Dependency:
    return Dependency(of.id, source_name, "delta", "delta-1", "/tables/orders", (("city", "string"),))


def frontier(version: int = 7) -> Frontier:
    orders = {"spark_catalog.default.orders": SourceVersion("delta-1", version)}
    return Frontier(orders, orders, NOON)
