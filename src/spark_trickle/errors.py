"""Every error a user can meet, with a stable code and a hint.

TrickleError
├── DefinitionError        the defining query or its options cannot be accepted
│   ├── QueryError         Spark refuses the query (syntax, names, types)
│   ├── UnsupportedQueryError  Spark accepts it, we cannot keep it up to date as asked
│   └── SourceError        a source is missing, replaced or not a Delta table
├── TableNameError         a name is malformed, taken or unknown
├── StateError             the stream table is in a state that forbids the verb
├── RefreshError           a refresh failed; table and frontier are as they were
│   └── IntegrityError     the table does not hold what its frontier says
├── CatalogError           the metadata database cannot be used
└── SetupError             Java, Spark or Delta are missing or misconfigured
"""

from __future__ import annotations


class TrickleError(Exception):
    """What went wrong with which thing, and what to do next."""

    code = "TRICKLE_ERROR"

    def __init__(self, message: str, *, hint: str = "", code: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        if code:
            self.code = code

    def __str__(self) -> str:
        hint = f"\nHint: {self.hint}" if self.hint else ""
        return f"[{self.code}] {self.message}{hint}"


class DefinitionError(TrickleError):
    code = "INVALID_DEFINITION"


class QueryError(DefinitionError):
    code = "INVALID_QUERY"


class UnsupportedQueryError(DefinitionError):
    code = "UNSUPPORTED_QUERY"


class SourceError(DefinitionError):
    code = "INVALID_SOURCE"


class TableNameError(TrickleError):
    code = "INVALID_NAME"


class StateError(TrickleError):
    code = "INVALID_STATE"


class RefreshError(TrickleError):
    code = "REFRESH_FAILED"


class IntegrityError(RefreshError):
    code = "TABLE_DIFFERS_FROM_FRONTIER"


class CatalogError(TrickleError):
    code = "CATALOG_UNAVAILABLE"


class SetupError(TrickleError):
    code = "ENVIRONMENT"
