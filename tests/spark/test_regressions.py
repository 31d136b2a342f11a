"""Every query that once went wrong stays right."""

from __future__ import annotations

import pytest

from spark_trickle import Trickle
from tests.spark.random_regressions import Case, load
from tests.spark.random_replay import replay


@pytest.mark.parametrize("case", load(), ids=lambda case: case.name)
def test_regression(trickle: Trickle, case: Case) -> None:
    (watched,) = replay(trickle, case.initial, case.batches, [case.query])
    assert watched.failure is None
    assert len(watched.held) == len(case.batches) + 1
