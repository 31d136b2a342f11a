"""Commands that show what is refreshed together."""

from typing import TYPE_CHECKING

from spark_trickle.cli.answers import Answer, records, table
from spark_trickle.cli.command import command

if TYPE_CHECKING:
    from spark_trickle.api import Trickle


@command()
def diamonds(trickle: "Trickle") -> Answer:
    """Show stream tables that part from a common source and meet again."""
    found = records(trickle.diamond_groups())
    titles = ("Group", "Stream tables", "Meet in", "Made from", "Consistency")
    keys = ("group", "members", "ends", "sources", "consistency")
    none = "No diamonds: every stream table reaches its sources along one path."
    return Answer(found, table(titles, [[r[key] for key in keys] for r in found]) if found else none)


@command()
def cycles(trickle: "Trickle") -> Answer:
    """Show stream tables that read each other in a circle."""
    found = records(trickle.cycle_status())
    titles = ("Cycle", "Stream tables", "Status", "Iterations", "Last refresh", "Last error")
    keys = ("cycle", "members", "status", "iterations", "last_refresh", "last_error")
    none = "No cycles: no stream table reads itself, directly or not."
    return Answer(found, table(titles, [[r[key] for key in keys] for r in found]) if found else none)
