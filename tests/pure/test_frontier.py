"""A frontier survives being written down."""

import json
from datetime import UTC, datetime

import pytest

from spark_trickle.frontier import Frontier, SourceVersion

ORDERS, BIG = SourceVersion("6c1f", 7), SourceVersion("a0b2", 2**40)


@pytest.mark.parametrize(
    "frontier",
    [
        Frontier(),
        Frontier({"orders": ORDERS}),
        Frontier({"sums": BIG}, {"orders": ORDERS, "näme.`x`": BIG}),
        Frontier({"orders": ORDERS}, {}, datetime(2024, 2, 29, 12, 30, 0, 123456, tzinfo=UTC)),
    ],
    ids=["empty", "inputs", "bases", "timestamp"],
)
def test_a_frontier_read_back_is_the_same(frontier: Frontier) -> None:
    assert Frontier.from_json(frontier.to_json()) == frontier


def test_equal_frontiers_are_written_alike_whatever_their_order() -> None:
    one = Frontier({"a": ORDERS, "b": BIG})
    other = Frontier({"b": BIG, "a": ORDERS})
    assert one.to_json() == other.to_json()


def test_the_text_is_plain_json() -> None:
    assert json.loads(Frontier({"orders": ORDERS}).to_json()) == {
        "inputs": {"orders": ["6c1f", 7]},
        "bases": {},
        "data_timestamp": None,
        "through": {},
    }


def test_a_version_is_never_negative() -> None:
    with pytest.raises(ValueError, match="never negative, got -1"):
        SourceVersion("6c1f", -1)
