"""The command that keeps everything fresh by itself."""

import signal
import threading
from collections import Counter
from types import FrameType
from typing import TYPE_CHECKING, Annotated

import typer

from spark_trickle.cli.answers import Answer, counted, refresh_line
from spark_trickle.cli.command import command
from spark_trickle.cli.progress import Spinner
from spark_trickle.clock import system_clock
from spark_trickle.errors import TrickleError
from spark_trickle.names import shown

if TYPE_CHECKING:
    from spark_trickle.api import Trickle
    from spark_trickle.scheduler.events import Event
    from spark_trickle.scheduler.overview import Overview


@command(working="Watching…", talks=True)
def run(
    trickle: "Trickle",
    spinner: Spinner,
    seconds: Annotated[
        int | None, typer.Option("--for", min=1, metavar="SECONDS", help="Stop after so many seconds.")
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print failures only.")] = False,
) -> Answer:
    """Refresh what is due, until stopped; what has begun is finished."""
    stop, seen = threading.Event(), Counter[str]()

    def tell(event: "Event") -> None:
        seen[event.kind] += 1
        line = _line(event)
        if line and not (quiet and event.kind == "refreshed"):
            spinner.say(f"{system_clock().astimezone():%Y-%m-%d %H:%M:%S}  {line}")

    def end(_number: int, _frame: FrameType | None) -> None:
        spinner.say("Stopping: what has begun is finished.")
        stop.set()

    def reread(_number: int, _frame: FrameType | None) -> None:
        try:
            trickle.reload_settings()
        except TrickleError as error:
            spinner.say(f"The settings stay as they were: {error.message}")
        else:
            spinner.say("The settings were read again.")

    def watch(overview: "Overview") -> None:
        if seconds and not timer.is_alive() and not stop.is_set():
            timer.start()  # now, as Spark has started
        spinner.show(_status_line(overview))

    timer = threading.Timer(seconds or 0, stop.set)
    before = {number: signal.signal(number, end) for number in (signal.SIGTERM, signal.SIGINT)}
    before[signal.SIGHUP] = signal.signal(signal.SIGHUP, reread)
    try:
        trickle.run(stop, tell, watch)
    finally:
        timer.cancel()
        for number, handler in before.items():
            signal.signal(number, handler)
    done = {kind: seen[kind] for kind in ("refreshed", "failed", "suspended")}
    return Answer(done, f"Stopped: {seen['refreshed']:,} refreshed, {counted(seen['failed'], 'failure')}.")


def _line(event: "Event") -> str:
    match event.kind:
        case "refreshed" if event.result is not None:
            # A table without news is checked again and again.
            return "" if event.result.action.value == "NO_DATA" else refresh_line(event.result)
        case "skipped" if event.result is not None:
            return f"{shown(event.name)}: skipped — because {event.result.reason}"
        case "failed" if event.error is not None:
            return f"{shown(event.name)}: failed — {event.error.message}"
        case "suspended":
            return f"{shown(event.name)}: suspended after repeated failures; mend it, then `trickle resume`"
        case "stale" | "retention":
            return f"{shown(event.name)}: {event.message}"
        case "tidied":
            return f"{shown(event.name)}: small files compacted"
        case "trouble":
            return event.message
    return ""


def _status_line(overview: "Overview") -> str:
    """What is running, how far, what waits, and what is next."""
    running = [f"{shown(r.name)} ({r.step}, {r.seconds:.0f} s)" for r in overview.running]
    parts = [f"Refreshing {', '.join(running)}" if running else "Watching"]
    if overview.waiting:
        parts.append(f"{len(overview.waiting)} waiting, {shown(overview.waiting[0])} first")
    elif overview.next_at is not None:
        parts.append(f"next: {shown(overview.next_name)} at {overview.next_at.astimezone():%H:%M:%S}")
    return " · ".join(parts)
