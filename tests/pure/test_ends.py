"""How much of a change the driver holds."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from spark_trickle.config import Settings
from spark_trickle.refresh.ends import Moment, rows_to_hold


def source(size: int, rows: int) -> Any:
    return SimpleNamespace(counted=(size, rows))


@pytest.mark.parametrize(
    ("sources", "most"),
    [
        ([], 1000),
        ([source(0, 0)], 1000),
        ([source(10**9, 10**7)], 1000),
        ([source(2**30, 2**10)], 64),
        ([source(2**40, 2)], 1),
        ([source(2**30, 2**10), source(0, 7 * 2**10)], 512),
    ],
    ids=["nothing", "empty", "narrow", "wide", "very wide", "few of them wide"],
)
def test_fewer_rows_are_held_where_they_are_wide(sources: list[Any], most: int) -> None:
    snapshots = {str(number): one for number, one in enumerate(sources)}
    assert rows_to_hold(Settings(local_change_rows=1000), Moment(snapshots), Moment()) == most
