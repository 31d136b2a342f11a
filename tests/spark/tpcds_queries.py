"""The 99 queries in Spark SQL: DuckDB's texts, but for names in quotes and four meaningless limits.

No query gives two columns the same name, so none needs an alias.
"""

from __future__ import annotations

import re

from tests.spark.tpcds_schema import texts

_LIMIT = re.compile(r"\s+LIMIT\s+\d+$", re.IGNORECASE)

_UNORDERED = frozenset({28, 32, 38, 97})
"""`LIMIT` without `ORDER BY`, which is refused as it may take any rows. Each of these answers has a single row."""


def queries(without_limit: bool = False) -> dict[int, str]:
    """The queries by number; on request without the `LIMIT` at their end, which would need all rows."""
    return {n: _in_spark(text, without_limit or n in _UNORDERED) for n, text in texts().items()}


def _in_spark(text: str, without_limit: bool) -> str:
    # Names in double quotes are texts in Spark; no query has a text in double quotes.
    text = re.sub(r'"([^"]*)"', r"`\1`", text)
    return _LIMIT.sub("", text) if without_limit else text
