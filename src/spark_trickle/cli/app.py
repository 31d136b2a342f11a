"""The program: options before the command's name, and every way it can end."""

import io
import sys
from typing import Annotated

import typer

from spark_trickle.cli import daemon, define, doctor, groups, look, maintain
from spark_trickle.cli.command import app
from spark_trickle.cli.failures import INTERRUPTED, report
from spark_trickle.cli.place import CatalogOption, Given, HomeOption, JsonOption
from spark_trickle.cli.progress import quiet

__all__ = ["app", "daemon", "define", "doctor", "groups", "look", "main", "maintain"]


@app.callback(invoke_without_command=True)
def start(
    context: typer.Context,
    home: HomeOption = None,
    catalog: CatalogOption = None,
    json: JsonOption = False,
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
    context.obj = Given(home, catalog, json)
    if version:
        from spark_trickle import __version__

        typer.echo(f"spark-trickle {__version__}")
        raise typer.Exit
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


def main(arguments: list[str] | None = None) -> int:
    """Run one command; returns its exit code."""
    arguments = sys.argv[1:] if arguments is None else arguments
    as_json = "--json" in arguments
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal that lacks `−` shows something else instead
    try:
        with quiet():
            code = app(arguments, prog_name="trickle", standalone_mode=False)
    except (Exception, KeyboardInterrupt) as error:
        return report(error, as_json=as_json)
    if code == INTERRUPTED:  # Typer has caught it
        return report(KeyboardInterrupt(), as_json=as_json)
    return code if isinstance(code, int) else 0
