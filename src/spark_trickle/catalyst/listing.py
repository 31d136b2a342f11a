"""Few key values as a condition, a list of them; and the ranges they lie in, by which files are skipped.

Unlike a join, a list needs no job, and Spark hands it to the files, of a long one its ends. The ranges are no part of the condition:
as literals they would be part of the generated code, which would then be compiled for every refresh.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from spark_trickle.catalyst import held
from spark_trickle.catalyst.plan import Expression, Plan, Planner, items, kind_of, output

Ranges = Sequence[tuple[int, int]]
"""Ranges of whole numbers, both ends included; a day is its number since 1970."""
Within = Mapping[str, Ranges]
"""Ranges by column; a column without ranges may hold anything."""


@dataclass(frozen=True)
class Values:
    """The values of a key column, each once: whole numbers, days as their numbers, or text."""

    type: str
    """The column's, as SQL names it."""
    known: Sequence[int | str]
    with_null: bool
    found: dict[str, Any] = field(default_factory=dict, compare=False, repr=False)
    """What was made of them already, by whoever looks for them."""


_MOST_VALUES = 10_000
_MOST_RANGES = 32
_PARTS = 16
_MOST_IN_PARTS = _PARTS * 256
"""A part must not be longer than what Spark hands over in full (`inFilterThreshold`, see `sessions`)."""
_WHOLE = frozenset({"IntegerType", "LongType", "DateType"})
_COUNTED = frozenset({"ByteType", "ShortType", "IntegerType", "LongType"})
_LISTED = frozenset(
    {"ByteType", "ShortType", "IntegerType", "LongType", "DateType", "TimestampType", "TimestampNTZType"}
    | {"BooleanType", "DecimalType"}
)
"""Types in which a value is found in a list exactly where SQL calls it equal; text is another, if not collated."""


def one_of(
    planner: Planner, value: Expression, keys: Plan, place: int, *, by_page: bool = False
) -> Expression | None:
    """The value is one of those in a column of held rows, NULL among them; None where a list cannot tell.

    With `by_page`, pages of files are left out that hold none of them.
    """
    data_type = value.dataType()
    if not 0 < held.count(keys) <= _MOST_VALUES or not _is_listed(data_type):
        return None
    values = held.values_at(planner, keys, place).toSet()
    listed = planner.expressions.InSet(value, values)
    if values.contains(None):
        return planner.any_of([listed, planner.is_null(value)])
    return planner.both(listed, _in_parts(planner, value, values)) if by_page else listed


def _in_parts(planner: Planner, value: Expression, values: Any) -> Expression:
    """The same list in parts. Spark hands only the ends of a long list to the files, but all of a short one.

    There are as many parts each time, as the generated code depends on their number; and they are a tree, because
    Parquet goes through them by recursion. Few rows get here: the whole list is asked first.
    """
    count = int(values.size())
    size = max(1, -(-count // _PARTS))
    parts = [
        planner.expressions.InSet(value, part.toSet()) for part in items(values.toSeq().grouped(size).toSeq())
    ]
    level: list[Expression] = parts + parts[-1:] * (_PARTS - len(parts))
    while len(level) > 1:
        level = [
            planner.expressions.Or(one, other) for one, other in zip(level[::2], level[1::2], strict=True)
        ]
    return level[0]


def _is_listed(data_type: Any) -> bool:
    kind = kind_of(data_type)
    return kind in _LISTED or (kind == "StringType" and bool(data_type.isUTF8BinaryCollation()))


def values_of(planner: Planner, keys: Plan, place: int) -> Values | None:
    """The values of a column of held rows; None for types that have more than one form of a value, or many."""
    column = output(keys)[place]
    kind, name = kind_of(column.dataType()), str(column.dataType().catalogString())
    if kind in _COUNTED:
        found = held.values_at(planner, keys, place).distinct()
        with_null = bool(found.contains(None))
        numbers = [int(n) for n in str(found.mkString(",")).split(",") if n != "null"]
        return Values(name, sorted(numbers), with_null)
    if name == "string":
        rows = planner.frame(planner.project([column], keys)).collect()
        texts = {row[0] for row in rows}
        return Values(name, [text for text in texts if text is not None], None in texts)
    return None


def whole_numbers(planner: Planner, keys: Plan, place: int) -> Sequence[int]:
    """The values of a column of held rows in order, each once; none where they are no whole numbers.

    A day counts as its number. NULL is none, so with a NULL there are none either.
    """
    if kind_of(output(keys)[place].dataType()) not in _WHOLE or not held.count(keys):
        return []
    found = held.values_at(planner, keys, place).distinct()
    return [] if found.contains(None) else sorted(map(int, str(found.mkString(",")).split(",")))


def ranges_of(values: Sequence[int]) -> Ranges:
    """Ranges that hold all of these values."""
    return ranges(values, _MOST_RANGES)


def ranges_of_values(values: Values) -> Ranges:
    """The same; none where they are no whole numbers, or NULL is among them."""
    if values.with_null or values.type not in {"int", "bigint", "date"}:
        return []
    return ranges_of([value for value in values.known if isinstance(value, int)])


def can_go_by_page(values: Sequence[int]) -> bool:
    """There are some, and few enough for a list in parts."""
    return 0 < len(values) <= _MOST_IN_PARTS


def ranges(values: Sequence[int], most: int) -> list[tuple[int, int]]:
    """At most so many ranges that cover all values, with the widest gaps left out."""
    ordered = sorted(set(values))
    gaps = sorted(range(1, len(ordered)), key=lambda i: ordered[i] - ordered[i - 1], reverse=True)
    starts = [0, *sorted(gaps[: most - 1])]
    ends = [*(start - 1 for start in starts[1:]), len(ordered) - 1]
    return [(ordered[low], ordered[high]) for low, high in zip(starts, ends, strict=True)] if ordered else []
