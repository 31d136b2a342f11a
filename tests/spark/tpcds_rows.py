"""Rows as mappings from column to value, and conditions that choose among them."""

from __future__ import annotations

import datetime
import random
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

from tests.spark.tpcds_schema import Columns

Row = dict[str, Any]
Where = Mapping[str, Any]
"""By column: a value, a set of values, or a pair that bounds the value."""


class NoSuchRowError(LookupError):
    """A story asks for a dimension row that the generator does not make."""


def matching(rows: Sequence[Row], where: Where) -> Sequence[Row]:
    """The rows that meet every condition; NULL meets none."""
    if not where:
        return rows
    found = [row for row in rows if all(_meets(row[column], wanted) for column, wanted in where.items())]
    if not found:
        raise NoSuchRowError(f"no row with {dict(where)}")
    return found


def part(where: Where, *prefixes: str) -> Where:
    """The conditions on the columns of one table."""
    return {column: wanted for column, wanted in where.items() if column.split("_")[0] in prefixes}


def _meets(value: Any, wanted: Any) -> bool:
    if value is None:
        return False
    if isinstance(wanted, set | frozenset):
        return value in wanted
    if isinstance(wanted, tuple):
        low, high = wanted
        return bool(low <= value <= high)
    return bool(value == wanted)


def between(first: str, last: str) -> tuple[datetime.date, datetime.date]:
    return datetime.date.fromisoformat(first), datetime.date.fromisoformat(last)


def cents(value: float) -> Decimal:
    return Decimal(round(value * 100)) / 100


def completed(rows: Sequence[Row], columns: Columns, chance: random.Random) -> list[Row]:
    """All columns in order. What no query asks for gets any value of its type, NULL one time in ten."""
    return [
        {
            column: row[column] if column in row else _any(column, kind, number, chance)
            for column, kind in columns.items()
        }
        for number, row in enumerate(rows, start=1)
    ]


def _any(column: str, kind: str, number: int, chance: random.Random) -> Any:
    if chance.random() < 0.1:
        return None
    if kind == "VARCHAR":
        return f"{column.split('_', 1)[1]} {number}"
    if kind == "DATE":
        return datetime.date(1997, 3, 13) + datetime.timedelta(days=chance.randrange(1500))
    if kind.startswith("DECIMAL"):
        return cents(chance.uniform(0, 12))
    return chance.randint(1, 100)
