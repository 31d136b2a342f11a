"""Carry out what was decided: compute the rows and commit them."""

from __future__ import annotations

from dataclasses import replace

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from spark_trickle.catalog import StreamTable
from spark_trickle.catalyst.guard import TookTooLong, time_limit
from spark_trickle.catalyst.spark_errors import condition_of, is_data_error, sentence_of
from spark_trickle.errors import IntegrityError, RefreshError
from spark_trickle.names import parse_name, shown
from spark_trickle.refresh.attempt import Attempt
from spark_trickle.refresh.choose import Action, Decision
from spark_trickle.refresh.compute import Computation, layout_of
from spark_trickle.refresh.described import properties_of
from spark_trickle.refresh.ends import Moment
from spark_trickle.refresh.recursion import NotConverged
from spark_trickle.storage.apply import Written, add_change, overwrite
from spark_trickle.storage.commits import Stamp
from spark_trickle.storage.locks import write_lock
from spark_trickle.storage.warehouse import create_table

_MEMORY = ("UNABLE_TO_ACQUIRE_MEMORY", "AGGREGATE_OUT_OF_MEMORY", "SPILL_OUT_OF_MEMORY")
GONE = ("FAILED_READ_FILE.FILE_NOT_EXIST", "DELTA_FILE_NOT_FOUND", "DELTA_CHANGE_DATA_FILE_NOT_FOUND")


def carry_out(attempt: Attempt, decision: Decision) -> tuple[Decision, Written | None]:
    """Carry out the decision; where it turns out impossible, the next safer one, with the reason."""
    if decision.action is Action.NO_DATA:
        return decision, None
    if decision.action is Action.DIFFERENTIAL:
        try:
            return _write_differentially(attempt, decision)
        except IntegrityError as error:
            decision = Decision(Action.REINITIALIZE, error.message)
        except NotConverged as error:
            decision = Decision(Action.FULL, f"{error}; {decision.reason}")
        except TookTooLong as error:
            attempt.steps.give_up()
            decision = Decision(
                Action.FULL, f"{decision.reason}, but {error} and was given up", decision.predicted
            )
        except (PySparkException, Py4JError) as error:
            decision = _safer(attempt.table, decision, error)
        refuse_silent_full(attempt.table, decision)
    if decision.action is Action.FULL and attempt.table.frontier and _has_dependents(attempt):
        return decision, _write_change(attempt, decision)
    return decision, _write_all(attempt, decision)


def refuse_silent_full(table: StreamTable, decision: Decision) -> None:
    """The mode DIFFERENTIAL never recomputes, whatever the reason: it fails and says why."""
    if table.refresh_mode == "DIFFERENTIAL" and decision.action is Action.FULL and table.frontier is not None:
        raise RefreshError(
            f"`{shown(table.name)}` cannot be refreshed differentially: {decision.reason}.",
            hint="Set refresh_mode to AUTO or FULL to allow recomputing.",
            code="NOT_DIFFERENTIAL",
        )


def _write_differentially(attempt: Attempt, decision: Decision) -> tuple[Decision, Written | None]:
    """The change in its short form; where rows that never met fail it, in the form that evaluates none of them."""
    try:
        return decision, _write_change(attempt, decision)
    except (PySparkException, Py4JError) as error:
        if not is_data_error(error):
            raise
        why = (
            f"{decision.reason}; {condition_of(error)} on rows that may never have met, so without such pairs"
        )
    decision = replace(decision, reason=why)
    return decision, _write_change(attempt, decision, careful=True)


def _safer(table: StreamTable, decision: Decision, error: BaseException) -> Decision:
    """What to do when a differential evaluation fails: the full query may well succeed, if it is allowed to run."""
    condition = condition_of(error)
    if condition.startswith(GONE):
        return Decision(Action.REINITIALIZE, f"files of the version read last are gone: {sentence_of(error)}")
    if table.refresh_mode == "AUTO" and condition in _MEMORY:
        why = f"the change needs more memory than there is ({condition}); {decision.reason}"
        return Decision(Action.FULL, why)
    if table.refresh_mode == "AUTO" and is_data_error(error):
        why = f"{condition} on rows that the query itself may never meet; {decision.reason}"
        return Decision(Action.FULL, why)
    raise error


def _write_change(attempt: Attempt, decision: Decision, *, careful: bool = False) -> Written | None:
    table, prepared, steps, runtime = attempt.table, attempt.prepared, attempt.steps, attempt.runtime
    stored = runtime.tables.latest_snapshot(table.location)
    old, new = _ends(attempt)
    with Computation(prepared, runtime.tables, old, new, runtime.settings, runtime.groups) as computation:
        with steps.step("compute"), time_limit(runtime.spark, decision.limit):
            full = decision.action is Action.FULL
            change = computation.difference(stored) if full else computation.change(stored, careful=careful)
            steps.changed_rows = computation.changed_rows
        if change is None:
            return None
        with steps.step("write"), write_lock(runtime.locks, table.id):
            stamp = stamp_of(attempt, decision)
            written = add_change(runtime.tables, stored, layout_of(prepared.definition), change, stamp)
            runtime.on_step("committed")
            return written


def _write_all(attempt: Attempt, decision: Decision) -> Written:
    table, prepared, steps, runtime = attempt.table, attempt.prepared, attempt.steps, attempt.runtime
    if not runtime.tables.exists(table.location):
        layout = layout_of(prepared.definition)
        location = create_table(runtime.spark, parse_name(table.name), layout, properties_of(table))
        with runtime.catalog.begin() as catalog:
            table = catalog.stream_tables.update(table.id, location=location, table_version=None)
    _, new = _ends(attempt)
    with Computation(prepared, runtime.tables, Moment(), new, runtime.settings) as computation:
        with steps.step("compute"):
            rows = computation.query()
        with steps.step("write"), write_lock(runtime.locks, table.id):
            stamp = stamp_of(attempt, decision)
            written = overwrite(runtime.tables, table.location, layout_of(prepared.definition), rows, stamp)
            runtime.on_step("committed")
            return written


def _ends(attempt: Attempt) -> tuple[Moment, Moment]:
    """Both ends of the interval for every source; an unchanged source is one snapshot twice."""
    interval, runtime, sources = attempt.interval, attempt.runtime, attempt.prepared.definition.sources
    new = {n: runtime.tables.snapshot(sources[n].location, v) for n, v in interval.new.inputs.items()}
    before = interval.old.data_timestamp if interval.old else None
    return (
        Moment({**new, **interval.old_snapshots}, before),
        Moment({**new, **interval.new_snapshots}, interval.new.data_timestamp),
    )


def stamp_of(attempt: Attempt, decision: Decision) -> Stamp:
    """What the commit of a refresh carries."""
    return Stamp(
        stream_table_id=attempt.table.id,
        sequence=attempt.table.sequence + 1,
        action=decision.action.value,
        reason=decision.reason,
        fingerprint=attempt.prepared.definition.fingerprint,
        frontier=attempt.interval.new,
    )


def _has_dependents(attempt: Attempt) -> bool:
    with attempt.runtime.catalog.begin(write=False) as catalog:
        return bool(catalog.dependencies.dependents_of(attempt.table.name))
