"""A plan over rows at hand, evaluated by the calling thread: no job.

A job sends its rows to a task and back, each by itself, and waits for its turn: for a few thousand rows that takes
several times as long as the work. Spark's operators ask for a task around them only for its memory and its locks, so
they get one: that is what `rows.java` is for.
"""

from __future__ import annotations

import itertools
from functools import partial

from spark_trickle.catalyst.guard import stopped_by
from spark_trickle.catalyst.later import later
from spark_trickle.catalyst.plan import Plan, Planner, of_kind

_NUMBERS = itertools.count(2**20)
"""Of our tasks, taken as negative: no task has such a number, nor do those stand for something that Spark knows."""


def evaluated(planner: Planner, plan: Plan, most: int, *, analyzed: bool) -> Plan | int | None:
    """The rows of a plan as a relation, or how many they are, if more than `most`.

    None where that needs a job, or where some of its rows are not at hand.
    """
    rows, number = planner.driver.rows, -next(_NUMBERS)
    with stopped_by(partial(rows.stop, number)):
        count = int(later(rows).count(plan, analyzed, most, number))
    if count < 0:
        return None
    return count if count > most else of_kind("LocalRelation", later(rows).relation(number))


def projected(planner: Planner, plan: Plan) -> Plan | None:
    """The same for a plan that does nothing but project, filter and limit rows at hand; None for others."""
    rows, number = planner.driver.rows, -next(_NUMBERS)
    count = int(later(rows).countOfProjection(plan, number))
    return None if count < 0 else of_kind("LocalRelation", later(rows).relation(number))
