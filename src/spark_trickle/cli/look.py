"""Commands that look. All but `explain` and `snapshot` answer from the catalog, without Spark."""

import json
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Group, RenderableType
from rich.tree import Tree

from spark_trickle.cli.answers import Answer, Record, records, rows_changed, table
from spark_trickle.cli.command import command
from spark_trickle.errors import DefinitionError

if TYPE_CHECKING:
    from spark_trickle.api import Trickle

_NONE_YET = 'No stream tables yet.\nDefine one: trickle create NAME "SELECT …"'


@command()
def status(trickle: "Trickle") -> Answer:
    """List the stream tables and how they are doing."""
    found = records(trickle.status())
    titles = ("Stream table", "Status", "Mode", "Schedule", "Last refresh", "Action", "Version", "Problem")
    keys = (
        "name",
        "status",
        "refresh_mode",
        "schedule",
        "last_refresh",
        "last_action",
        "version",
        "last_error",
    )
    drawn = table(titles, [[record[key] for key in keys] for record in found])
    return Answer(found, drawn if found else _NONE_YET)


@command()
def history(
    trickle: "Trickle",
    name: Annotated[str | None, typer.Argument(metavar="NAME", help="Of this stream table only.")] = None,
    limit: Annotated[int, typer.Option(min=1, help="Show at most this many.")] = 20,
) -> Answer:
    """List past refreshes, newest first."""
    found = records(trickle.refresh_history(name, limit))
    for record in found:
        record["frontier"] = json.loads(record["frontier"]) if record["frontier"] else None
    titles = ("Id", "Stream table", "Started", "Status", "Action", "Rows", "Version", "Seconds", "Why")
    drawn = table(titles, [_refresh_cells(record) for record in found])
    return Answer(found, drawn if found else "No refreshes yet.")


@command()
def graph(trickle: "Trickle") -> Answer:
    """Show who reads what."""
    found = records(trickle.graph())
    return Answer(found, _forest(found) if found else _NONE_YET)


@command(working="Looking for versions that belong together…")
def snapshot(
    trickle: "Trickle",
    names: Annotated[list[str], typer.Argument(metavar="NAME...", help="Stream tables.")],
) -> Answer:
    """Show the newest versions of several stream tables that belong together."""
    found = trickle.snapshot(names)
    data = {"versions": dict(found.versions), "sources": dict(found.sources)}
    rows = [(name, version, "stream table") for name, version in found.versions.items()]
    rows += [(name, version, "source") for name, version in found.sources.items()]
    reading = "\n".join(f"SELECT * FROM {name} VERSION AS OF {v};" for name, v in found.versions.items())
    return Answer(data, Group(table(("Table", "Version", "Kind"), rows), reading))


@command(working="Explaining…")
def explain(
    trickle: "Trickle",
    name: Annotated[str | None, typer.Argument(metavar="NAME", help="A stream table.")] = None,
    query: Annotated[str | None, typer.Option(help="A SELECT that is not a stream table yet.")] = None,
) -> Answer:
    """Show the plans, and what the next refresh would do."""
    if (name is None) == (query is None):
        raise DefinitionError(
            "One thing can be explained: a stream table or a query.",
            hint='trickle explain NAME, or trickle explain --query "SELECT …"',
            code="INVALID_OPTION",
        )
    explanation = trickle.explain(name or query or "")
    return Answer(explanation, str(explanation))


def _refresh_cells(record: Record) -> list[object]:
    keys = ("id", "name", "started_at", "status", "action")
    rows = rows_changed(record["rows_inserted"], record["rows_deleted"])
    why = record["error"] or record["reason"]
    return [*(record[key] for key in keys), rows, record["version"], record["seconds"], why]


def _forest(edges: list[Record]) -> RenderableType:
    """A tree per base table. What hangs from several places is drawn in full at the first."""
    readers: dict[str, list[str]] = {}
    for edge in edges:
        readers.setdefault(edge["source"], []).append(edge["stream_table"])
    drawn: set[str] = set()

    def grow(tree: Tree, name: str) -> None:
        again = name in drawn
        drawn.add(name)
        for reader in readers.get(name, []):
            if again:
                tree.label = f"{tree.label} (see above)"
                return
            grow(tree.add(reader), reader)

    read = {edge["stream_table"] for edge in edges}
    trees = []
    for root in [name for name in readers if name not in read]:
        trees.append(Tree(root, highlight=False))
        grow(trees[-1], root)
    return Group(*trees)
