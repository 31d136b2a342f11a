"""What a command says: text for people, one JSON document for programs."""

import json
import math
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from datetime import date, datetime, time
from typing import TYPE_CHECKING, Any

from rich.box import SIMPLE_HEAD
from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    import pandas as pd

    from spark_trickle.api import RefreshResult

Record = dict[str, Any]

_UNFOLDED = 10_000
"""The width of a line that no terminal folds: `grep` wants whole ones."""


@dataclass(frozen=True, slots=True)
class Answer:
    data: object
    text: RenderableType
    exit_code: int = 0

    def show(self, *, as_json: bool) -> None:
        if as_json:
            sys.stdout.write(
                json.dumps(plain(self.data), ensure_ascii=False, indent=2, allow_nan=False) + "\n"
            )
        else:
            width = None if sys.stdout.isatty() else _UNFOLDED
            Console(width=width, markup=False, highlight=False, emoji=False, soft_wrap=True).print(self.text)
        sys.stdout.flush()


def refresh_line(result: "RefreshResult") -> str:
    """One refresh in one line."""
    parts = [result.action.value]
    if result.rows_inserted or result.rows_deleted:
        parts.append(f"{rows_changed(result.rows_inserted, result.rows_deleted)} rows")
    if result.version is not None:
        parts.append(f"version {result.version}")
    parts.append(f"{result.seconds:.2f} s")
    return f"{result.name}: {', '.join(parts)} — because {result.reason}"


def rows_changed(inserted: int, deleted: int) -> str:
    signed = [f"+{inserted:,}" if inserted else "", f"−{deleted:,}" if deleted else ""]
    return " ".join(s for s in signed if s)


def counted(count: int, noun: str) -> str:
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def records(frame: "pd.DataFrame") -> list[Record]:
    """The rows of a frame as the values they were before pandas turned them into its own."""
    missing: Any = None
    rows = frame.astype(object).where(frame.notna(), missing).to_dict("records")
    return [{str(name): _unpacked(name, value) for name, value in row.items()} for row in rows]


def _unpacked(name: object, value: Any) -> Any:
    if name == "version" and value is not None:  # a float, if another row has none
        return int(value)
    return value.to_pydatetime() if hasattr(value, "to_pydatetime") else value


def table(titles: Sequence[str], rows: Iterable[Sequence[object]], *, missing: str = "") -> Table:
    """Rows under titles; columns of numbers are aligned to the right."""
    cells = [list(row) for row in rows]
    drawn = Table(box=SIMPLE_HEAD, pad_edge=False, show_edge=False, header_style="bold")
    for i, title in enumerate(titles):
        values = [row[i] for row in cells if row[i] is not None]
        numbers = bool(values) and all(isinstance(v, int | float) and not isinstance(v, bool) for v in values)
        drawn.add_column(Text(title), justify="right" if numbers else "left", overflow="fold")
    for row in cells:
        drawn.add_row(*[Text(missing, "dim") if v is None else Text(_cell(v)) for v in row])
    return drawn


def plain(value: Any) -> Any:
    """A value as JSON has it: times in ISO, exact decimals and what has no JSON form as text."""
    match value:
        case None | bool() | int():
            return value
        case str():
            return str(value)
        case float():
            return value if math.isfinite(value) else str(value)
        case date() | time():
            return value.isoformat()
        case bytes() | bytearray():
            return value.hex()
        case Mapping():
            return {str(plain(k)): plain(v) for k, v in value.items()}
        case _ if hasattr(value, "asDict"):
            return plain(value.asDict())
        case list() | tuple():
            return [plain(v) for v in value]
        case _ if is_dataclass(value):
            return {f.name: plain(getattr(value, f.name)) for f in fields(value)}
    return str(value)


def _cell(value: object) -> str:
    match value:
        case datetime(tzinfo=zone) if zone is not None:
            return f"{value.astimezone():%Y-%m-%d %H:%M:%S}"
        case bool():
            return str(value).lower()
        case list() | tuple() | dict():
            return json.dumps(plain(value), ensure_ascii=False)
    return str(value)
