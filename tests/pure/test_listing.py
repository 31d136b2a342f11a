"""Ranges of key values: they cover all keys, and leave out what lies far from any."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_trickle.catalyst.listing import ranges


@pytest.mark.parametrize(
    ("values", "most", "expected"),
    [
        ([], 3, []),
        ([5], 3, [(5, 5)]),
        ([3, 1, 2, 3], 1, [(1, 3)]),
        ([1, 2, 100, 101, 5000], 2, [(1, 101), (5000, 5000)]),
        ([1, 2, 100, 101, 5000], 3, [(1, 2), (100, 101), (5000, 5000)]),
        ([1, 2, 100], 9, [(1, 1), (2, 2), (100, 100)]),
    ],
)
def test_the_widest_gaps_are_left_out(values: list[int], most: int, expected: list[tuple[int, int]]) -> None:
    assert ranges(values, most) == expected


@given(st.lists(st.integers(-(2**63), 2**63 - 1)), st.integers(1, 40))
def test_every_value_is_covered_and_ranges_do_not_meet(values: list[int], most: int) -> None:
    found = ranges(values, most)
    assert len(found) <= most
    assert all(sum(low <= value <= high for low, high in found) == 1 for value in values)
    assert all(end in values for ends in found for end in ends)
