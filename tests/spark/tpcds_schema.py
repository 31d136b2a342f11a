"""The 24 tables and 99 query texts of TPC-DS, as DuckDB's extension ships them; nothing of them is kept here."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib.resources import as_file, files

import duckdb

Columns = Mapping[str, str]
"""The columns of a table in order, with their types in DuckDB's words."""


def connect() -> duckdb.DuckDBPyConnection:
    """DuckDB in memory with the extension, on one thread."""
    connection = duckdb.connect()
    connection.execute("SET threads = 1")
    # The package holds the extension as a file, so nothing is downloaded.
    with as_file(files("duckdb_extension_tpcds")) as package:
        (extension,) = package.rglob("tpcds.duckdb_extension")
    connection.execute(f"LOAD '{extension}'")
    return connection


@cache
def texts() -> dict[int, str]:
    """The queries by number, in DuckDB's dialect."""
    with connect() as connection:
        found = connection.execute("SELECT query_nr, query FROM tpcds_queries()").fetchall()
    return {number: text.strip().removesuffix(";").rstrip() for number, text in found}


@cache
def tables() -> dict[str, Columns]:
    with connect() as connection:
        connection.execute("CALL dsdgen(sf = 0)")
        found = connection.execute(
            "SELECT table_name, column_name, data_type FROM duckdb_columns() "
            "WHERE NOT internal ORDER BY table_name, column_index"
        ).fetchall()
    listed: dict[str, dict[str, str]] = {}
    for table, column, kind in found:
        listed.setdefault(table, {})[column] = kind
    return dict(listed)


def spark_columns(columns: Columns) -> str:
    """The column list of `CREATE TABLE` in Spark."""
    return ", ".join(f"{name} {kind.replace('VARCHAR', 'STRING')}" for name, kind in columns.items())
