"""Simple conditions on the columns of a source, known as data: whoever reads it may leave out what fails them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from enum import Enum

Value = int | str | Decimal | date


class Check(Enum):
    """How a column is compared; NULL passes none of them."""

    EQUAL = "="
    LESS = "<"
    AT_MOST = "<="
    MORE = ">"
    AT_LEAST = ">="
    ONE_OF = "in"
    STARTS_WITH = "starts with"
    PRESENT = "is not null"


@dataclass(frozen=True, slots=True)
class Comparison:
    """A condition on one column, by its name. The query itself asks it again of every row that is read."""

    column: str
    check: Check
    values: tuple[Value, ...] = ()
