"""From a function over `Trickle` to a command: the options all share, the spinner, the answer."""

import inspect
import os
from collections.abc import Callable
from typing import Annotated, Any, TypeVar

import typer

from spark_trickle.cli import place as places
from spark_trickle.cli.answers import Answer
from spark_trickle.cli.place import CatalogOption, Given, HomeOption, JsonOption, Place
from spark_trickle.cli.progress import Spinner

app = typer.Typer(
    name="trickle",
    help="Stream tables for Spark and Delta Lake: a SELECT kept up to date as a Delta table.",
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)

Name = Annotated[str, typer.Argument(metavar="NAME", help="The stream table: `table` or `database.table`.")]

Verb = TypeVar("Verb", bound=Callable[..., Answer])


def command(*, working: str = "", creates: bool = False, talks: bool = False) -> Callable[[Verb], Verb]:
    """Register a function whose first parameter is a `Trickle` and whose others are options.

    `working` is what the spinner says, `creates` whether a missing home is made. A function that `talks` while it
    works has the spinner as its second parameter.
    """

    def register(verb: Verb) -> Verb:
        def run(
            context: typer.Context,
            home: HomeOption = None,
            catalog: CatalogOption = None,
            json: JsonOption = False,
            **options: Any,
        ) -> int:
            given = Given(home, catalog, json).over(context.obj or Given())
            spinner = Spinner(working.format(**options))
            place = Place.of(given, os.environ)
            with places.open_trickle(place, spinner.step, creates=creates) as trickle:
                with spinner:
                    answer = verb(trickle, *([spinner] if talks else []), **options)
                answer.show(as_json=given.json)
            return answer.exit_code

        own = list(inspect.signature(verb).parameters.values())[2 if talks else 1 :]
        *shared, _ = inspect.signature(run).parameters.values()
        parameters = [p.replace(kind=inspect.Parameter.KEYWORD_ONLY) for p in (*own, *shared)]
        setattr(run, "__signature__", inspect.Signature(parameters))  # noqa: B010 - mypy knows no such attribute
        run.__annotations__ = {p.name: p.annotation for p in parameters}
        run.__doc__ = verb.__doc__
        app.command(verb.__name__)(run)
        return verb

    return register
