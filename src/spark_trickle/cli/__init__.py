"""The command line: the verbs of `Trickle` for a shell, with the same names, defaults and errors.

place.py      which home and catalog, from options and environment
answers.py    what a command says: text for people, one JSON document for programs
progress.py   the spinner, and silence about everything else
failures.py   errors as sentences and exit codes
command.py    from a function over `Trickle` to a command with the options all share
define.py     create, alter, drop, suspend, resume
maintain.py   refresh, verify, sql
daemon.py     run
look.py       status, history, graph, snapshot, explain
groups.py     diamonds, cycles
doctor.py     doctor
app.py        the program
"""

from spark_trickle.cli.app import main

__all__ = ["main"]
