"""Which values pass a condition of the query."""

from datetime import date
from decimal import Decimal

import pyarrow as pa
import pytest

from spark_trickle.algebra.comparisons import Check, Comparison, Value
from spark_trickle.storage.passing import filtered, passing

NUMBERS = pa.chunked_array([pa.array([1, None, 3], pa.int32()), pa.array([4], pa.int32())])
TEXTS = pa.chunked_array([pa.array(["forest green", None, "Forest", "for"])])
DAYS = pa.chunked_array([pa.array([date(1995, 1, 1), None, date(1996, 1, 1)])])
MONEY = pa.chunked_array([pa.array([Decimal("1.50"), None, Decimal("2.00")], pa.decimal128(15, 2))])


@pytest.mark.parametrize(
    ("column", "test", "values", "expected"),
    [
        (NUMBERS, Check.EQUAL, (3,), [False, False, True, False]),
        (NUMBERS, Check.LESS, (3,), [True, False, False, False]),
        (NUMBERS, Check.AT_MOST, (3,), [True, False, True, False]),
        (NUMBERS, Check.MORE, (3,), [False, False, False, True]),
        (NUMBERS, Check.AT_LEAST, (3,), [False, False, True, True]),
        (NUMBERS, Check.ONE_OF, (4, 1), [True, False, False, True]),
        (NUMBERS, Check.PRESENT, (), [True, False, True, True]),
        (TEXTS, Check.STARTS_WITH, ("forest",), [True, False, False, False]),
        (TEXTS, Check.EQUAL, ("for",), [False, False, False, True]),
        (DAYS, Check.AT_LEAST, (date(1995, 6, 1),), [False, False, True]),
        (MONEY, Check.MORE, (Decimal("1.5"),), [False, False, True]),
    ],
)
def test_null_passes_nothing(
    column: pa.ChunkedArray, test: Check, values: tuple[Value, ...], expected: list[bool]
) -> None:
    assert passing(Comparison("c", test, values), column).tolist() == expected


@pytest.mark.parametrize(
    ("column", "value"), [(MONEY, Decimal("1.505")), (NUMBERS, 2**40), (DAYS, "1995-01-01"), (NUMBERS, "x")]
)
def test_a_value_without_exact_form_in_the_columns_type_drops_nothing(
    column: pa.ChunkedArray, value: Value
) -> None:
    assert passing(Comparison("c", Check.LESS, (value,)), column).all()


def test_rows_pass_all_conditions_on_columns_that_are_there() -> None:
    rows = pa.table({"n": NUMBERS, "t": TEXTS})
    only = (
        Comparison("n", Check.LESS, (4,)),
        Comparison("t", Check.PRESENT),
        Comparison("gone", Check.PRESENT),
    )
    assert filtered(rows, only).to_pydict() == {"n": [1, 3], "t": ["forest green", "Forest"]}
