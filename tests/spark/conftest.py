"""One Spark session and one home per pytest process; every test gets a database of its own."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from spark_trickle import Trickle
from tests.spark.session import start

_NUMBERS = itertools.count(1)


@pytest.fixture(scope="session")
def trickle(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Trickle]:
    home: Path = tmp_path_factory.mktemp("home")
    spark = start(home)
    with Trickle(spark, home=home) as opened:
        yield opened
    spark.stop()


@pytest.fixture
def database(trickle: Trickle, request: pytest.FixtureRequest) -> Iterator[str]:
    """A fresh database, current while the test runs."""
    name = re.sub(r"\W+", "_", request.node.name).lower().strip("_")[:50] + f"_{next(_NUMBERS)}"
    trickle.sql(f"CREATE DATABASE {name}")
    trickle.sql(f"USE {name}")
    yield name
    trickle.sql("USE default")


@pytest.fixture
def own(trickle: Trickle, database: str, tmp_path: Path) -> Iterator[Trickle]:
    """A catalog of its own over the same Spark: what looks at all stream tables sees only those of the test."""
    with Trickle(trickle.spark, home=tmp_path) as opened:
        yield opened
