"""The metadata database: what stream tables exist, what they have read, and who is refreshing them.

Reading order:

rows            the four kinds of rows, as values
columns         how times, frontiers and mappings are stored alike in SQLite and PostgreSQL
schema          the five tables
stream_tables   one repository per table …
dependencies
refreshes
leases
epochs
transaction     … and the transaction they share
url             which database, and how its address is shown
engine          connections: pragmas, pools, how a transaction begins
failures        database errors in our words
migrate         bring a database to this version's schema
upgrade         Alembic's part of it, imported only when there is something to do
migrations/     the steps it runs
catalog         `Catalog`: open, begin, close
"""

from __future__ import annotations

from spark_trickle.catalog.catalog import Catalog
from spark_trickle.catalog.rows import (
    Action,
    DefinitionKind,
    Dependency,
    DiamondConsistency,
    Lease,
    Refresh,
    RefreshMode,
    RefreshStatus,
    SourceKind,
    Status,
    StreamTable,
)
from spark_trickle.catalog.transaction import CatalogTransaction

__all__ = [
    "Action",
    "Catalog",
    "CatalogTransaction",
    "DefinitionKind",
    "Dependency",
    "DiamondConsistency",
    "Lease",
    "Refresh",
    "RefreshMode",
    "RefreshStatus",
    "SourceKind",
    "Status",
    "StreamTable",
]
