"""Errors of the database in our words. By error code, never by searching the text."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy.exc import DBAPIError, OperationalError, TimeoutError

from spark_trickle.errors import CatalogError, StateError

BUSY_SECONDS = 30
"""How long a transaction on SQLite waits for that of another process."""

_SQLITE = {
    sqlite3.SQLITE_NOTADB: (
        "is not an SQLite database",
        "Point the catalog URL at another file, or move this one away.",
    ),
    sqlite3.SQLITE_CORRUPT: ("is damaged", "Restore the file from a backup, or move it away."),
    sqlite3.SQLITE_CANTOPEN: ("cannot be opened", "The path must name a file in a folder you may write to."),
    sqlite3.SQLITE_PERM: ("cannot be opened", "The path must name a file in a folder you may write to."),
    sqlite3.SQLITE_READONLY: ("cannot be written", "Make the file and its folder writable."),
    sqlite3.SQLITE_FULL: ("cannot grow because its disk is full", "Make room on the disk and try again."),
    sqlite3.SQLITE_BUSY: (
        f"has been locked by another process for {BUSY_SECONDS} seconds",
        "End the process that has the file open, or try again.",
    ),
}
"""By primary result code: https://www.sqlite.org/rescode.html"""

_REACH = "Check that the server runs and that host, port, database, user and password in the URL are right."

_POSTGRES = {
    "08": ("cannot be reached", _REACH),
    "28": ("does not let us in", _REACH),
    "3D": ("does not exist", "Create the database, or correct its name in the URL."),
    "53": ("has no resources left on its server", "Make room on the server and try again."),
    "57": ("was shut down or stopped our statement", "Try again when the server runs."),
    "40": ("was changed by another process at the same moment", "Try again."),
    "55": ("is locked by another process", "End the process that uses the catalog, or try again."),
    "25006": ("can only be read", "Point the URL at the primary server, with a user who may write."),
    "42501": (
        "does not permit this user to do that",
        "Let the user create tables: GRANT USAGE, CREATE ON SCHEMA public TO the_user",
    ),
}
"""By SQLSTATE or its class: https://www.postgresql.org/docs/current/errcodes-appendix.html"""


@contextmanager
def translated(shown: str) -> Iterator[None]:
    """What the database raises inside comes out as CatalogError; all else passes through."""
    try:
        yield
    except DBAPIError as error:
        said, hint = _explain(error)
        raise CatalogError(f"The catalog `{shown}` {said}.", hint=hint) from error
    except TimeoutError as error:
        raise CatalogError(
            f"The catalog `{shown}` has no free connection.", hint="Use fewer threads at once."
        ) from error


def dropped(what: str) -> StateError:
    """Somebody removed the stream table that the caller still works on."""
    return StateError(
        f"The catalog no longer has `{what}`; its stream table was dropped meanwhile.",
        hint="List the stream tables that exist, or create it again.",
        code="STREAM_TABLE_DROPPED",
    )


def _explain(error: DBAPIError) -> tuple[str, str]:
    foreign = error.orig
    detail = next(iter(str(foreign).splitlines()), type(foreign).__name__).rstrip(".")
    if isinstance(foreign, sqlite3.Error):
        code = getattr(foreign, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF
        return _SQLITE.get(code, (f"answers with an error: {detail}", "Check the file and its disk."))
    state = getattr(foreign, "sqlstate", None)
    if state is None and isinstance(error, OperationalError):
        # libpq has no code for a connection that fails, only the sentence.
        return f"cannot be reached: {detail}", _REACH
    known = _POSTGRES.get(state or "") or _POSTGRES.get((state or "")[:2])
    if known is None:
        return f"answers with an error: {detail}", "Check the server's log."
    return f"{known[0]}: {detail}", known[1]
