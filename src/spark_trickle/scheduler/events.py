"""What the daemon tells: events for those who listen, and alerts among them that go out by themselves."""

from __future__ import annotations

import json
import queue
import threading
import urllib.request
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from spark_trickle.errors import TrickleError
from spark_trickle.names import shown
from spark_trickle.refresh.results import RefreshResult

Kind = Literal[
    "started", "refreshed", "skipped", "failed", "suspended", "stale", "retention", "tidied", "trouble"
]

ALERTS: dict[Kind, str] = {
    "failed": "refresh_failed",
    "suspended": "auto_suspended",
    "stale": "stale",
    "retention": "retention",
}
"""The kinds that somebody should look at, by the names they go out under."""

_TIMEOUT = 10


@dataclass(frozen=True, slots=True)
class Event:
    """Something that people may want to know; trouble is the daemon's own and has no name."""

    kind: Kind
    name: str
    at: datetime
    result: RefreshResult | None = None
    error: TrickleError | None = None
    message: str = ""

    @property
    def alert(self) -> dict[str, str] | None:
        """What goes out, if it is an alert."""
        if self.kind not in ALERTS:
            return None
        text = self.error.message if self.error else self.message
        code = self.error.code if self.error else ""
        named = {"alert": ALERTS[self.kind], "stream_table": shown(self.name), "at": self.at.isoformat()}
        return {**named, "message": text, "code": code}


class Webhook:
    """Posts alerts as JSON to a URL, in a thread of its own: nobody waits for it, and nothing fails with it."""

    def __init__(self, url: str, on_problem: Callable[[str], None]) -> None:
        self._url = url
        self._on_problem = on_problem
        self._waiting: queue.Queue[dict[str, str] | None] = queue.Queue(maxsize=1000)
        self._thread = threading.Thread(target=self._work, name="alerts", daemon=True)
        self._thread.start()

    def send(self, alert: dict[str, str]) -> None:
        try:
            self._waiting.put_nowait(alert)
        except queue.Full:
            self._on_problem(f"An alert was dropped, because {self._url} does not take them: {alert}")

    def close(self) -> None:
        """Send what waits, for a few seconds at most."""
        with suppress(queue.Full):
            self._waiting.put(None, timeout=_TIMEOUT)
            self._thread.join(_TIMEOUT)

    def _work(self) -> None:
        while (alert := self._waiting.get()) is not None:
            body = json.dumps(alert).encode()
            request = urllib.request.Request(  # noqa: S310 - the setting admits http and https only
                self._url, body, {"Content-Type": "application/json"}
            )
            try:
                with urllib.request.urlopen(request, timeout=_TIMEOUT):  # noqa: S310
                    pass
            except Exception as error:
                self._on_problem(f"An alert could not be sent to {self._url} ({error}): {alert}")
