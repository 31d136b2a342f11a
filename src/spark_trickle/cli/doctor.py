"""The command that looks for trouble."""

from typing import TYPE_CHECKING, Annotated

import typer

from spark_trickle.cli.answers import Answer, records, table
from spark_trickle.cli.command import command

if TYPE_CHECKING:
    from spark_trickle.api import Trickle


@command(working="Examining…", creates=True)
def doctor(
    trickle: "Trickle",
    rebuild: Annotated[
        bool, typer.Option("--rebuild", help="First enter tables that the catalog has lost.")
    ] = False,
) -> Answer:
    """Show what is wrong, or soon will be, and what to do about it."""
    found = records(trickle.doctor(rebuild=rebuild))
    titles = ("Severity", "Table", "Finding", "What to do")
    drawn = table(titles, [[r[key] for key in ("severity", "subject", "what", "hint")] for r in found])
    bad = any(r["severity"] == "error" for r in found)
    return Answer(found, drawn if found else "Everything is fine.", exit_code=1 if bad else 0)
