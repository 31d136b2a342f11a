"""Table names: parsing, quoting and qualifying them as Spark does."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from dataclasses import dataclass

from spark_trickle.errors import TableNameError

PREFIX = "__st"
"""Hidden columns and folders of ours start with this."""
WEIGHT = f"{PREFIX}_weight"
"""The column of a change that says how often a row comes, or goes."""


def quote(part: str) -> str:
    """One identifier as SQL text; a backtick inside is doubled."""
    return "`" + part.replace("`", "``") + "`"


@dataclass(frozen=True, slots=True)
class TableName:
    """A fully qualified name: catalog, database and table."""

    catalog: str
    database: str
    table: str

    def __str__(self) -> str:
        return ".".join(p if _plain(p) else quote(p) for p in (self.catalog, self.database, self.table))

    @property
    def short(self) -> str:
        """The name as people say it: without the session catalog and the default database."""
        parts = [self.catalog, self.database, self.table]
        if self.catalog == "spark_catalog":
            parts = parts[1:] if self.database != "default" else parts[2:]
        return ".".join(p if _plain(p) else quote(p) for p in parts)

    @property
    def sql(self) -> str:
        return ".".join(quote(p) for p in (self.catalog, self.database, self.table))


def parse_name(text: str, catalog: str = "spark_catalog", database: str = "default") -> TableName:
    """`a`, `db.a` or `cat.db.a`, each part possibly in backticks, completed with the current namespace."""
    parts = split_identifier(text)
    if len(parts) > 3:
        raise TableNameError(
            f"`{text}` has {len(parts)} parts; a table name has at most three.",
            hint="Write `catalog.database.table`, with backticks around a part that contains a dot.",
        )
    for part in parts:
        if not part.strip():
            raise TableNameError(f"`{text}` has an empty part.", hint="Write `table` or `database.table`.")
        if part.lower().startswith(PREFIX):
            raise TableNameError(
                f"`{text}` starts with `{PREFIX}`, which is reserved for hidden columns and tables.",
                hint="Choose another name.",
            )
        if any(c in part for c in '/\\:*?"<>|\n\r\t\0') or part in {".", ".."}:
            raise TableNameError(
                f"`{text}` contains a character that cannot be part of a table's folder.",
                hint="Use letters, digits, `_`, `-` and spaces.",
            )
    full = [catalog, database, *parts][-3:] if len(parts) < 3 else parts
    if len(parts) == 2:
        full = [catalog, *parts]
    return TableName(full[0].lower(), full[1].lower(), full[2].lower())


def check_new_name(name: TableName) -> None:
    """Spark's session catalog takes letters, digits and `_` in the names of new tables."""
    for part in (name.database, name.table):
        if not re.fullmatch(r"[a-z0-9_]+", part):
            raise TableNameError(
                f"`{part}` cannot be the name of a new table.", hint="Use letters, digits and `_` only."
            )


def shown(name: str) -> str:
    """A full name, or the path of a nameless table, as people say it."""
    return name if name.startswith("delta.") else parse_name(name).short


def split_identifier(text: str) -> list[str]:
    """The parts of a dotted identifier; inside backticks dots are ordinary and `` is one backtick."""
    if not isinstance(text, str) or not text.strip():
        raise TableNameError("A stream table needs a name.", hint="Write `table` or `database.table`.")
    parts: list[str] = []
    part, quoted, was_quoted, i = "", False, False, 0
    text = text.strip()
    while i < len(text):
        c = text[i]
        if quoted:
            if c == "`" and text[i + 1 : i + 2] == "`":
                part, i = part + "`", i + 1
            elif c == "`":
                quoted = False
            else:
                part += c
        elif c == "`" and not part and not was_quoted:
            quoted = was_quoted = True
        elif c == ".":
            parts.append(part)
            part, was_quoted = "", False
        elif c == "`" or was_quoted:
            raise TableNameError(
                f"`{text}` has a misplaced backtick.", hint="Quote a whole part: `my table`."
            )
        else:
            part += c
        i += 1
    if quoted:
        raise TableNameError(
            f"`{text}` has an unclosed backtick.", hint="Close it, or double it inside a name."
        )
    return [*parts, part]


def did_you_mean(wrong: str, known: Iterable[str]) -> str:
    """A hint naming the closest known name, or nothing."""
    close = difflib.get_close_matches(wrong, list(known), n=1, cutoff=0.6)
    return f"Did you mean `{close[0]}`?" if close else ""


def _plain(part: str) -> bool:
    return part.replace("_", "a").isalnum() and not part[0].isdigit()
