"""The address of the catalog: which database it means, and how it is shown without its password."""

from __future__ import annotations

import re
from pathlib import Path

from sqlalchemy import URL, make_url
from sqlalchemy.exc import ArgumentError

from spark_trickle.errors import CatalogError

_EXAMPLES = "Write `sqlite:////folder/catalog.db` or `postgresql://user@host/database`."


def parse_url(text: str) -> URL:
    """The URL with the driver we use and, for SQLite, an absolute path."""
    try:
        url = make_url(text)
        backend = url.get_backend_name()
    except (ArgumentError, ValueError):
        shown = re.sub(r":[^:@/]*@", ":***@", text)
        raise CatalogError(f"`{shown}` is not the URL of a database.", hint=_EXAMPLES) from None
    if backend in {"postgresql", "postgres"}:
        return url.set(drivername="postgresql+psycopg")
    if backend != "sqlite":
        raise CatalogError(f"The catalog cannot live in a database of the kind `{backend}`.", hint=_EXAMPLES)
    database = url.database or ":memory:"
    if database == ":memory:" or database.startswith("file:"):
        raise CatalogError(
            f"The catalog URL `{shown_url(url)}` does not name a file, and a catalog must outlive its process.",
            hint=_EXAMPLES,
        )
    return url.set(drivername="sqlite", database=str(Path(database).expanduser().absolute()))


def shown_url(url: URL) -> str:
    """For messages and logs: no password, no driver."""
    secret = {key: "***" for key in url.query if "password" in key}
    shown = url.update_query_dict(secret).set(drivername=url.get_backend_name())
    return shown.render_as_string(hide_password=True)
