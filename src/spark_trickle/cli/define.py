"""Commands that define stream tables."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from spark_trickle.cli.answers import Answer, refresh_line
from spark_trickle.cli.command import Name, command
from spark_trickle.errors import DefinitionError

if TYPE_CHECKING:
    from spark_trickle.api import Trickle
    from spark_trickle.refresh.functions import Build

_SCHEDULES = "A duration (30s, 5m, 1h30m), a cron expression, DOWNSTREAM, MANUAL or ON CHANGE."
_CONSISTENCY = "none, or atomic: a failure takes the other members of its diamond back."
_MODES = "AUTO, DIFFERENTIAL or FULL."


@command(working="Creating `{name}`…", creates=True)
def create(
    trickle: "Trickle",
    name: Name,
    query: Annotated[str | None, typer.Argument(metavar="QUERY", help="The defining SELECT.")] = None,
    file: Annotated[
        Path | None, typer.Option(exists=True, dir_okay=False, help="A file with the SELECT.")
    ] = None,
    function: Annotated[
        str | None,
        typer.Option(help="module:function, which is given a Spark session and returns a DataFrame."),
    ] = None,
    schedule: Annotated[str, typer.Option(help=_SCHEDULES)] = "1m",
    mode: Annotated[str, typer.Option(help=_MODES)] = "AUTO",
    diamond_consistency: Annotated[str | None, typer.Option(help=_CONSISTENCY)] = None,
    no_initialize: Annotated[
        bool, typer.Option("--no-initialize", help="Leave it empty until its first refresh.")
    ] = False,
    or_replace: Annotated[bool, typer.Option("--or-replace", help="Define it anew if it exists.")] = False,
    if_not_exists: Annotated[bool, typer.Option("--if-not-exists", help="Keep it if it exists.")] = False,
) -> Answer:
    """Define a stream table by a SELECT or a function, and fill it."""
    result = trickle.create_stream_table(
        name,
        _query(query, file, function),
        schedule,
        mode,
        not no_initialize,
        diamond_consistency=diamond_consistency,
        or_replace=or_replace,
        if_not_exists=if_not_exists,
    )
    if result is not None:
        return Answer(result, f"Created {refresh_line(result)}")
    filled = f"Fill it: trickle refresh {name}"
    text = f"`{name}` exists." if if_not_exists else f"Created `{name}`; it is not filled yet.\n{filled}"
    return Answer({"name": name, "action": None}, text)


@command(working="Changing `{name}`…")
def alter(
    trickle: "Trickle",
    name: Name,
    schedule: Annotated[str | None, typer.Option(help=_SCHEDULES)] = None,
    mode: Annotated[str | None, typer.Option(help=_MODES)] = None,
    status: Annotated[str | None, typer.Option(help="ACTIVE or SUSPENDED.")] = None,
    diamond_consistency: Annotated[str | None, typer.Option(help=_CONSISTENCY)] = None,
) -> Answer:
    """Change the schedule, refresh mode, status or consistency."""
    asked = {
        "schedule": schedule,
        "refresh_mode": mode,
        "status": status,
        "diamond_consistency": diamond_consistency,
    }
    changes = {key: value for key, value in asked.items() if value is not None}
    trickle.alter_stream_table(name, **changes)
    listed = ", ".join(f"{key.replace('_', ' ')} {value}" for key, value in changes.items())
    return Answer({"name": name, **changes}, f"`{name}` has {listed} now.")


@command(working="Dropping `{name}`…")
def drop(
    trickle: "Trickle",
    name: Name,
    cascade: Annotated[bool, typer.Option("--cascade", help="Drop those that read it, too.")] = False,
) -> Answer:
    """Remove a stream table, its Delta table and its history."""
    trickle.drop_stream_table(name, cascade=cascade)
    others = " and all that read it" if cascade else ""
    return Answer({"name": name, "dropped": True}, f"Dropped `{name}`{others}.")


@command()
def suspend(trickle: "Trickle", name: Name) -> Answer:
    """Stop refreshing a stream table until it is resumed."""
    trickle.suspend(name)
    return Answer({"name": name, "status": "SUSPENDED"}, f"`{name}` is suspended.")


@command()
def resume(trickle: "Trickle", name: Name) -> Answer:
    """Refresh a suspended or failed stream table again."""
    trickle.resume(name)
    return Answer({"name": name, "status": "ACTIVE"}, f"`{name}` is active again.")


def _query(query: str | None, file: Path | None, function: str | None) -> "str | Build":
    if [query, file, function].count(None) != 2:
        raise DefinitionError(
            "A stream table needs one query.",
            hint="Give the SELECT as the second argument or in a file with --file, or a function with --function.",
            code="INVALID_OPTION",
        )
    if query is not None:
        return query
    if function is not None:
        from spark_trickle.refresh.functions import find_function

        return find_function(function)
    assert file is not None  # noqa: S101 - one of the three was given
    try:
        return file.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise DefinitionError(
            f"`{file}` is not text in UTF-8.", hint="Save it as UTF-8.", code="INVALID_QUERY"
        ) from None
