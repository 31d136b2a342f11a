"""The spinner, and silence about everything else."""

import logging
import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.status import Status


class Spinner:
    """Turns on stderr while something slow runs, if somebody is watching."""

    def __init__(self, doing: str, first: str = "Starting Spark…") -> None:
        self._doing = doing
        self._first = first
        self._stack = ExitStack()
        self._status: Status | None = None
        self._console: Console | None = None

    def say(self, line: str) -> None:
        """A line that stays, above the spinner if it turns."""
        if self._console is not None:
            self._console.print(line, soft_wrap=True)
        else:
            sys.stderr.write(f"{line}\n")
            sys.stderr.flush()

    def show(self, doing: str) -> None:
        """What the spinner says from now on."""
        self._doing = doing
        self.step("")

    def step(self, _name: str) -> None:
        """The first step of a verb means that Spark is there."""
        if self._status is not None:
            self._status.update(self._doing)

    def __enter__(self) -> Self:
        if self._doing and sys.stderr.isatty():
            # Spark's start points descriptor 2 at a log file; a copy of it stays the terminal.
            terminal = self._stack.enter_context(os.fdopen(os.dup(sys.stderr.fileno()), "w"))
            self._console = Console(file=terminal, markup=False, highlight=False)
            self._status = self._stack.enter_context(self._console.status(self._first))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._status = self._console = None
        self._stack.close()


@contextmanager
def quiet() -> Iterator[None]:
    """Without the log lines and warnings of the libraries below: what matters comes as an error."""
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(before)
