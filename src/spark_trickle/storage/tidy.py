"""Small files, hidden rows, keys that lie anywhere: when a table has too many of them, and Delta's own remedies."""

from __future__ import annotations

from collections.abc import Collection

from spark_trickle.names import quote
from spark_trickle.storage.files import DataFile
from spark_trickle.storage.tables import DeltaTables

_LARGE = 128 * 2**20
_SMALL = _LARGE // 4
_MOST_HIDDEN = 0.3
_FEW_ROWS = 10_000
_FEW_FILES = 4
"""With fewer large files there is not much to leave out."""
_CROWDED = 0.5
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


def is_scattered(files: Collection[DataFile], column: str) -> bool:
    """A value of a column, by its name in the files, may lie in most of the large ones: looking for it spares none. Pure.

    Files of a single value are as good as they can be. Where the ends are not known, nothing is.
    """
    ends = [file.ends(column) for file in files if file.size >= _SMALL]
    known = [pair for pair in ends if pair is not None]
    wide = [(low, high) for low, high in known if low < high]
    if len(known) < len(ends) or len(wide) < _FEW_FILES:
        return False
    middles = [(low + high) // 2 for low, high in wide]
    met = sum(low <= middle <= high for middle in middles for low, high in wide)
    return met > _CROWDED * len(wide) ** 2


def compact(tables: DeltaTables, location: str, by: str = "") -> None:
    """Small files become large ones, and rows that vectors hide are left out: a commit that changes no row.

    With `by`, all files are written anew, each with values of that column that hardly any other has.
    """
    session = tables.spark.newSession()
    for name, value in _SESSION.items():
        session.conf.set(name, value)
    session.sql(f"OPTIMIZE delta.{quote(location)}" + (f" ZORDER BY ({quote(by)})" if by else ""))
