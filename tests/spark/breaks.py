"""Negative controls: a rule that is wrong on purpose, for every harness to notice.

`--break join` and the like; a run that notices ends with 0, one that does not with 1.
"""

from __future__ import annotations

import argparse

from spark_trickle.incremental import maintain
from spark_trickle.incremental.rules import inner_join, lookup_join
from tests.pure import mutations

BREAKS = {
    "join": (inner_join, "change", mutations.inner_join_forgets_changes_on_the_right),
    "per_key": (maintain, "at_least", mutations.per_key_takes_keys_from_added_rows_only),
    "lookup": (lookup_join, "change", mutations.lookup_join_does_not_look_again),
}


def add_option(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--break", choices=BREAKS, dest="broken", help="make a rule wrong; the run must notice"
    )


def break_rule(options: argparse.Namespace) -> None:
    if options.broken:
        setattr(*BREAKS[options.broken])


def exit_code(options: argparse.Namespace, *, found: bool) -> int:
    """0 when nothing was found, or when something was that had to be."""
    return int(found != bool(options.broken))
