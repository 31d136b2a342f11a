"""A row that makes no sense cannot be made."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest

from spark_trickle.catalog import Dependency, Lease, Refresh
from tests.catalog.samples import NOON, stream_table

NAIVE = datetime(2025, 1, 1)  # noqa: DTZ001 - the mistake under test


@pytest.mark.parametrize(
    "wrong",
    [
        {"name": ""},
        {"status": "active"},
        {"refresh_mode": "MANUAL"},
        {"definition_kind": "python"},
        {"sequence": -1},
        {"table_version": -1},
        {"created_at": NAIVE},
    ],
    ids=str,
)
def test_stream_table(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(wrong))):
        stream_table(**wrong)


@pytest.mark.parametrize(
    "wrong",
    [
        {"status": "DONE"},
        {"action": "GUESS"},
        {"rows_inserted": -1},
        {"started_at": NAIVE},
        {"status": "COMPLETED"},
        {"finished_at": NOON},
    ],
    ids=str,
)
def test_refresh(wrong: dict[str, Any]) -> None:
    fields: dict[str, Any] = {
        "id": 1,
        "stream_table_id": "x",
        "sequence": 1,
        "status": "RUNNING",
        "started_at": NOON,
        "owner": "me",
    }
    Refresh(**fields)
    with pytest.raises(ValueError, match=r"`\w+`|cannot have finished"):
        Refresh(**fields | wrong)


def test_dependency_and_lease() -> None:
    with pytest.raises(ValueError, match="source_kind"):
        Dependency("x", "orders", "csv", "1", "/orders")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="owner"):
        Lease("x", "", NOON, NOON)
