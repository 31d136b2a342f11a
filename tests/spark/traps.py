"""The traps: adversarial queries with data, edits and Spark's own answers."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from spark_trickle import Trickle
from tests.spark.oracle import Bag, bag


@dataclass(frozen=True)
class Trap:
    id: str
    name: str
    tables: dict[str, dict[str, str]]
    query: str
    batches: list[dict[str, Any]]
    initial: list[list[Any]]

    def create_tables(self, trickle: Trickle) -> None:
        for table, content in self.tables.items():
            trickle.sql(f"CREATE TABLE {table} ({content['schema']}) USING delta")
            if content["values"].strip():
                trickle.sql(f"INSERT INTO {table} VALUES {content['values']}")


def load() -> list[Trap]:
    raw = json.loads((Path(__file__).parent / "traps.json").read_text())
    return [
        Trap(t["id"], t["name"], t["tables"], t["query"], t["batches"], t["expected_initial"]) for t in raw
    ]


def expected(rows: list[list[Any]]) -> Bag:
    """The recorded answer in the oracle's terms; infinities and NaN are recorded as text."""
    return bag([[_value(v) for v in row] for row in rows])


def _value(value: Any) -> Any:
    return (
        {"inf": float("inf"), "-inf": float("-inf"), "nan": float("nan")}.get(value, value)
        if isinstance(value, str)
        else value
    )
