"""Commands that refresh, prove and query."""

from typing import TYPE_CHECKING, Annotated

import typer

from spark_trickle.cli.answers import Answer, counted, refresh_line, table
from spark_trickle.cli.command import Name, command
from spark_trickle.cli.failures import FAILED
from spark_trickle.errors import DefinitionError

if TYPE_CHECKING:
    from rich.console import RenderableType

    from spark_trickle.api import Trickle, VerifyResult


@command(working="Refreshing `{name}`…")
def refresh(trickle: "Trickle", name: Name) -> Answer:
    """Bring a stream table up to date, and first what it reads."""
    result = trickle.refresh_stream_table(name)
    return Answer(result, refresh_line(result))


@command(working="Verifying `{name}`…")
def verify(
    trickle: "Trickle",
    name: Name,
    as_of: Annotated[
        int | None, typer.Option(metavar="ID", help="A past refresh: its id in `trickle history`.")
    ] = None,
    repair: Annotated[bool, typer.Option("--repair", help="Recompute the table if it differs.")] = False,
) -> Answer:
    """Compare with the query; exit code 1 if they differ."""
    if repair and as_of is not None:
        raise DefinitionError(
            "`--repair` mends the table as it is now, not as of a past refresh.",
            hint="Leave out --as-of or --repair.",
            code="INVALID_OPTION",
        )
    result = trickle.verify(name, as_of, repair=repair)
    return Answer(result, _verdict(result, repair), 0 if result.equal else FAILED)


@command(working="Running…", creates=True)
def sql(
    trickle: "Trickle",
    statement: Annotated[str, typer.Argument(metavar="STATEMENT", help="Any statement of Spark SQL.")],
    limit: Annotated[int, typer.Option(min=1, help="Print at most this many rows.")] = 50,
) -> Answer:
    """Run a SQL statement in the home and print its rows."""
    frame = trickle.sql(statement)
    rows = [tuple(row) for row in frame.take(limit + 1)]
    more, rows = len(rows) > limit, rows[:limit]
    titles = frame.columns
    data = [dict(zip(_distinct(titles), row, strict=True)) for row in rows]
    return Answer(data, _result(titles, rows, more))


def _verdict(result: "VerifyResult", repair: bool) -> str:
    compared = (
        f" (not compared exactly: {', '.join(f'`{c}`' for c in result.not_compared)})"
        if result.not_compared
        else ""
    )
    if result.equal:
        return f"{result.name}: equal to its query at version {result.version}{compared}"
    counts = f"{counted(result.missing, 'row')} missing, {result.unexpected:,} unexpected"
    lines = [f"{result.name}: differs from its query at version {result.version}: {counts}{compared}"]
    lines += [f"  {example}" for example in result.examples]
    lines.append("It was recomputed." if repair else f"Mend it: trickle verify {result.name} --repair")
    return "\n".join(lines)


def _result(titles: list[str], rows: list[tuple[object, ...]], more: bool) -> "RenderableType":
    from rich.console import Group

    if not titles:
        return "Done."
    said = counted(len(rows), "row") + (", and more: --limit shows them" if more else "")
    return Group(table(titles, rows, missing="NULL"), said)


def _distinct(titles: list[str]) -> list[str]:
    """Two columns may share a name; two keys of an object may not."""
    return [f"{t} ({titles[: i + 1].count(t)})" if t in titles[:i] else t for i, t in enumerate(titles)]
