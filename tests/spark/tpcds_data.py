"""A tiny TPC-DS database from a seed, and its files."""

from __future__ import annotations

import random
import re
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from tests.spark import tpcds_dimensions, tpcds_facts
from tests.spark.tpcds_rows import Row
from tests.spark.tpcds_schema import Columns, tables

_TYPES = {"BIGINT": pa.int64(), "INTEGER": pa.int32(), "VARCHAR": pa.string(), "DATE": pa.date32()}


def generate(seed: int) -> dict[str, list[Row]]:
    """The rows of all 24 tables; the same for the same seed."""
    schema, chance = tables(), random.Random(seed)
    dimensions = tpcds_dimensions.generate(schema, chance)
    return dimensions.tables | tpcds_facts.generate(schema, dimensions, chance)


def write(rows: dict[str, list[Row]], folder: Path) -> None:
    """One Parquet file per table, `folder/<table>.parquet`."""
    folder.mkdir(parents=True, exist_ok=True)
    for table, columns in tables().items():
        pq.write_table(_arrow(rows[table], columns), folder / f"{table}.parquet")


def _arrow(rows: list[Row], columns: Columns) -> pa.Table:
    arrays = {
        name: pa.array([_stored(row[name]) for row in rows], _type(kind)) for name, kind in columns.items()
    }
    return pa.table(arrays)


def _stored(value: object) -> object:
    return value.quantize(Decimal("0.01")) if isinstance(value, Decimal) else value


def _type(kind: str) -> pa.DataType:
    decimal = re.fullmatch(r"DECIMAL\((\d+),(\d+)\)", kind)
    return pa.decimal128(int(decimal[1]), int(decimal[2])) if decimal else _TYPES[kind]
