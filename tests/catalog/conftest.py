from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from spark_trickle.catalog import Catalog
from tests.catalog.postgres import PostgresServer, postgres_server
from tests.catalog.samples import FakeClock

__all__ = ["postgres_server"]


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of a database that does not exist yet, or is empty."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/home/catalog.db"
    server: PostgresServer = request.getfixturevalue("postgres_server")
    return server.fresh_schema()


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def catalog(url: str, clock: FakeClock) -> Iterator[Catalog]:
    with Catalog.open(url, clock) as catalog:
        yield catalog
