"""Opening, transactions and what happens when the database cannot be used."""

from __future__ import annotations

import os
import socket
import sqlite3
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from sqlalchemy import create_engine, text

from spark_trickle.catalog import Catalog
from spark_trickle.catalog.schema import VERSION_TABLE
from spark_trickle.catalog.url import parse_url
from spark_trickle.errors import CatalogError
from tests.catalog.postgres import PostgresServer
from tests.catalog.racing import count_up, open_catalog, race_processes, race_threads
from tests.catalog.samples import dependency, stream_table


def refusal_of(url: str) -> CatalogError:
    with pytest.raises(CatalogError) as refusal:
        Catalog.open(url)
    assert refusal.value.hint
    assert "\n" not in refusal.value.message
    return refusal.value


def test_what_was_written_is_there_when_opened_again(url: str) -> None:
    with Catalog.open(url) as catalog, catalog.begin() as transaction:
        transaction.stream_tables.add(stream_table())
    with Catalog.open(url) as catalog, catalog.begin(write=False) as transaction:
        assert transaction.stream_tables.all() == [stream_table()]


def test_an_exception_undoes_the_whole_transaction(catalog: Catalog) -> None:
    with pytest.raises(ZeroDivisionError), catalog.begin() as transaction:
        transaction.stream_tables.add(stream_table())
        transaction.dependencies.replace(stream_table().id, [dependency(stream_table())])
        transaction.leases.acquire("totals", "ann", 60)
        _ = 1 / 0
    with catalog.begin(write=False) as transaction:
        assert transaction.stream_tables.all() == []
        assert transaction.dependencies.all() == []
        assert transaction.leases.holder("totals") is None


def test_a_reading_transaction_refuses_to_write(catalog: Catalog) -> None:
    with pytest.raises(CatalogError), catalog.begin(write=False) as transaction:
        transaction.stream_tables.add(stream_table())
    with catalog.begin() as transaction:
        transaction.stream_tables.add(stream_table())


def test_a_reading_transaction_sees_one_state_and_does_not_wait(catalog: Catalog) -> None:
    with catalog.begin(write=False) as reading:
        assert reading.stream_tables.all() == []
        with catalog.begin() as writing:
            writing.stream_tables.add(stream_table())
            assert reading.stream_tables.all() == []
        assert reading.stream_tables.all() == []


def test_writers_in_two_processes_take_turns(catalog: Catalog, url: str) -> None:
    with catalog.begin() as transaction:
        transaction.stream_tables.add(stream_table(id="counter"))
    assert race_processes(2, count_up, url) == ["done", "done"]
    with catalog.begin(write=False) as transaction:
        (row,) = transaction.stream_tables.all()
    assert row.sequence == 40


def test_two_processes_open_a_fresh_catalog_at_once(url: str) -> None:
    assert race_processes(2, open_catalog, url) == ["0 stream tables"] * 2


def test_eight_threads_open_a_fresh_catalog_at_once(url: str) -> None:
    assert race_threads(8, lambda number: open_catalog(url, number)) == ["0 stream tables"] * 8


def test_a_newer_schema_is_refused(url: str) -> None:
    Catalog.open(url).close()
    engine = create_engine(parse_url(url))
    with engine.begin() as connection:
        connection.execute(text(f"UPDATE {VERSION_TABLE} SET version_num = '9999'"))
    engine.dispose()
    refusal = refusal_of(url)
    assert refusal.code == "CATALOG_TOO_NEW"
    assert "`9999`" in refusal.message
    assert "upgrade" in refusal.hint


def test_sqlite_files_use_wal_and_foreign_keys(tmp_path: Path) -> None:
    with Catalog.open(f"sqlite:///{tmp_path}/c.db") as catalog, catalog._engine.connect() as connection:
        pragmas = {
            name: connection.connection.execute(f"PRAGMA {name}").fetchone()[0]
            for name in ("journal_mode", "foreign_keys", "busy_timeout")
        }
    assert pragmas == {"journal_mode": "wal", "foreign_keys": 1, "busy_timeout": 30_000}


def test_a_relative_path_means_the_folder_at_opening(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with Catalog.open("sqlite:///here.db") as catalog:
        monkeypatch.chdir("/")
        assert catalog.url == f"sqlite:///{tmp_path}/here.db"
        with catalog.begin(write=False) as transaction:
            assert transaction.stream_tables.all() == []


@pytest.mark.parametrize(
    "wrong",
    [
        "",
        "catalog.db",
        "/tmp/catalog.db",
        "mysql://host/x",
        "sqlite://",
        "sqlite:///:memory:",
        "postgresql://h:x/d",
    ],
)
def test_a_wrong_url_is_refused(wrong: str) -> None:
    assert "sqlite:///" in refusal_of(wrong).hint


def test_a_password_is_never_shown() -> None:
    assert "secret" not in str(refusal_of("postgresql:/ann:secret@host/db"))
    assert "secret" not in str(refusal_of("mysql://ann:secret@host/db"))
    assert "secret" not in str(refusal_of("postgresql://ann:secret@127.0.0.1:1/db"))
    assert "secret" not in str(refusal_of("postgresql://ann@127.0.0.1:1/db?password=secret"))


def test_an_unreachable_server() -> None:
    with socket.socket() as bound:  # bound, but nobody listens
        bound.bind(("127.0.0.1", 0))
        refusal = refusal_of(f"postgresql://ann@127.0.0.1:{bound.getsockname()[1]}/db")
    assert "`postgresql://ann@127.0.0.1" in refusal.message
    assert "cannot be reached" in refusal.message


def test_a_missing_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)  # as Python does for a module that is not there
    assert refusal_of("postgresql://ann@host/db").hint == "pip install 'spark-trickle[postgres]'"


@pytest.mark.postgres
def test_a_database_that_does_not_exist(postgres_server: PostgresServer) -> None:
    assert "nowhere" in refusal_of(postgres_server.url("nowhere")).message


@pytest.mark.postgres
def test_a_user_who_may_not_create_tables(postgres_server: PostgresServer) -> None:
    postgres_server.execute("CREATE ROLE guest LOGIN")
    postgres_server.execute("REVOKE CREATE ON SCHEMA public FROM PUBLIC")
    assert "GRANT" in refusal_of(postgres_server.url(user="guest")).hint


@pytest.mark.postgres
@pytest.mark.parametrize("scheme", ["postgresql", "postgres", "postgresql+psycopg"])
def test_spellings_of_postgresql(postgres_server: PostgresServer, scheme: str) -> None:
    rest = postgres_server.fresh_database().removeprefix("postgresql")
    with Catalog.open(scheme + rest) as catalog:
        assert catalog.url.startswith("postgres")
        assert "+psycopg" not in catalog.url


def garbage(path: Path) -> None:
    path.write_bytes(b"this is not a database, whatever its name says\n" * 100)


def no_schema_but_damaged(path: Path) -> None:
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE t AS SELECT 1")
    connection.commit()
    connection.close()
    content = bytearray(path.read_bytes())
    content[100:4096] = b"\xff" * (4096 - 100)
    path.write_bytes(bytes(content))


@pytest.mark.parametrize("spoil", [garbage, no_schema_but_damaged, Path.mkdir])
def test_a_path_that_is_no_database(tmp_path: Path, spoil: Callable[[Path], object]) -> None:
    path = tmp_path / "catalog.db"
    spoil(path)
    assert str(path) in refusal_of(f"sqlite:///{path}").message


def test_a_file_in_place_of_the_folder(tmp_path: Path) -> None:
    (tmp_path / "home").write_text("")
    refusal = refusal_of(f"sqlite:///{tmp_path}/home/catalog.db")
    assert str(tmp_path / "home") in refusal.message


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_may_not_be_written(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    assert "cannot be opened" in refusal_of(f"sqlite:///{tmp_path}/catalog.db").message
    assert "cannot be created" in refusal_of(f"sqlite:///{tmp_path}/home/catalog.db").message
