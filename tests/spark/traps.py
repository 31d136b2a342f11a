"""The traps: adversarial queries with data, edits and Spark's own answers."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from spark_trickle import Trickle
from spark_trickle.algebra.traverse import sources_of, walk
from spark_trickle.catalyst.definition import Definition
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


def strategies() -> dict[str, str]:
    """How each trap is to be maintained, reviewed one by one: a construct must not drift to Whole unnoticed."""
    return json.loads((Path(__file__).parent / "strategies.json").read_text())


def strategy(definition: Definition) -> str:
    """The way of maintenance, and the kinds of relation from the root down, each once."""
    kinds = dict.fromkeys(type(node).__name__ for node in walk(definition.relation) if sources_of(node))
    hidden = " with __st" if definition.hidden.fields else ""
    return f"{type(definition.maintenance).__name__}{hidden}: {' '.join(kinds)}"


def expected(rows: list[list[Any]]) -> Bag:
    """The recorded answer in the oracle's terms; infinities and NaN are recorded as text."""
    return bag([[_value(v) for v in row] for row in rows])


def _value(value: Any) -> Any:
    return (
        {"inf": float("inf"), "-inf": float("-inf"), "nan": float("nan")}.get(value, value)
        if isinstance(value, str)
        else value
    )
