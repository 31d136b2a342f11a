"""Which values of a column pass a condition of the query; rows that do not need not be read. Pure."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from spark_trickle.algebra.comparisons import Check, Comparison

Mask = np.ndarray[Any, np.dtype[np.bool_]]
_COMPARED = {
    Check.EQUAL: pc.equal,
    Check.LESS: pc.less,
    Check.AT_MOST: pc.less_equal,
    Check.MORE: pc.greater,
    Check.AT_LEAST: pc.greater_equal,
}


def passing(comparison: Comparison, column: pa.ChunkedArray) -> Mask:
    """One truth value for each; all pass where a value of the condition has no exact form in the column's type."""
    found = _passing(comparison, column)
    if found is None:
        return np.ones(len(column), dtype=np.bool_)
    return np.asarray(pc.fill_null(found, False), dtype=np.bool_)


def filtered(rows: pa.Table, only: tuple[Comparison, ...]) -> pa.Table:
    """The rows that pass all conditions."""
    for comparison in only:
        if comparison.column in rows.column_names:
            rows = rows.filter(pa.array(passing(comparison, rows.column(comparison.column))))
    return rows


def _passing(comparison: Comparison, column: pa.ChunkedArray) -> pa.ChunkedArray | None:
    if comparison.check is Check.PRESENT:
        return pc.is_valid(column)
    try:
        values = pa.array(comparison.values, column.type)
    except (pa.ArrowException, OverflowError):
        return None
    if comparison.check is Check.ONE_OF:
        return pc.is_in(column, value_set=values)
    if comparison.check is Check.STARTS_WITH:
        return pc.starts_with(column, pattern=str(comparison.values[0]))
    return _COMPARED[comparison.check](column, values[0])
