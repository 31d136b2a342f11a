"""Small files and hidden rows: when a table has too many of them, and Delta's own compaction."""

from __future__ import annotations

from collections.abc import Collection

from spark_trickle.names import quote
from spark_trickle.storage.files import DataFile
from spark_trickle.storage.tables import DeltaTables

_LARGE = 128 * 2**20
_SMALL = _LARGE // 4
_MOST_HIDDEN = 0.3
_FEW_ROWS = 10_000
_SESSION = {
    "spark.databricks.delta.optimize.minFileSize": str(_SMALL),
    "spark.databricks.delta.optimize.maxFileSize": str(_LARGE),
    "spark.databricks.delta.optimize.maxDeletedRowsRatio": str(_MOST_HIDDEN),
}


def is_untidy(files: Collection[DataFile], most_files: int) -> bool:
    """So many small files, or so many hidden rows, that reading them costs more than writing them anew. Pure."""
    small = sum(file.size < _SMALL for file in files)
    hidden = sum(file.hidden_rows for file in files)
    written = sum(file.written_rows or 0 for file in files)
    return small >= most_files or hidden > max(_FEW_ROWS, _MOST_HIDDEN * written)


def compact(tables: DeltaTables, location: str) -> None:
    """Small files become large ones, and rows that vectors hide are left out: a commit that changes no row."""
    session = tables.spark.newSession()
    for name, value in _SESSION.items():
        session.conf.set(name, value)
    session.sql(f"OPTIMIZE delta.{quote(location)}")
