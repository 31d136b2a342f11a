"""Calls into the JVM that are put off and carried out together.

A call takes a tenth of a millisecond or two, nearly all of it waiting; a refresh makes over a thousand, most of which
put plans and expressions together out of others. While calls are put off, those only note what is to be done. All of it
is done, in order and in one call, as soon as something is asked that has an answer here.

Only what does nothing but give an object is put off, or what fills a collection that was made for it.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any

from py4j.clientserver import ClientServer
from py4j.java_gateway import JavaMember, JavaObject
from py4j.protocol import get_return_value
from pyspark.sql import SparkSession

from spark_trickle.catalyst.compiled import new

_WORD, _LINE = "\1", "\2"
_CAN_WAIT = frozenset(
    [
        "addAll",
        "aggregateExpressions",
        "aggregateFunction",
        "appended",
        "appendedAll",
        "apply",
        "asNullable",
        "child",
        "children",
        "clone",
        "collectLeaves",
        "copy",
        "create",
        "data",
        "dataType",
        "deletionVector",
        "distinct",
        "drop",
        "exprId",
        "fromJson",
        "getAccessor",
        "getBatchesFromStream",
        "getClass",
        "groupingExpressions",
        "hint",
        "init",
        "last",
        "load",
        "map",
        "nCopies",
        "newChannel",
        "newExprId",
        "of",
        "output",
        "projectList",
        "put",
        "queryExecution",
        "relation",
        "schema",
        "take",
        "toAggregateExpression",
        "toArray",
        "toAttribute",
        "toScalaMap",
        "toSeq",
        "toSet",
        "transformUp",
        "transformUpWithSubqueries",
        "tupled",
        "unsafeWrapArray",
        "withDataType",
        "withNewChildren",
        "withNullability",
        "zip",
    ]
)
"""Methods of plans, expressions, deletion vectors and collections of them."""
_MADE_LATER = ("org.apache.spark.sql.catalyst.", "java.util.", "scala.")
"""Packages of such classes."""


class Later:
    """An object of the JVM that may not be there yet."""

    __slots__ = ("_calls", "_number", "_place", "kind")

    def __init__(self, calls: Calls, number: int, kind: str) -> None:
        self._calls = calls
        self._number = number
        self._place = ""
        self.kind = kind
        """The name of the class that it was made of; empty where that is not known."""

    def made(self) -> None:
        """It is there from now on; raises what keeps it from being made."""
        self._get_object_id()

    def _get_object_id(self) -> str:
        """py4j asks this of whatever is handed over."""
        if not self._place and self._calls is active():
            self._calls.send()
        if not self._place:
            raise RuntimeError(
                "this was never made: a call before it failed, or its thread has not come to it"
            )
        return self._place

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return Method(self, name, partial(self._call_now, name))

    def _call_now(self, name: str, *arguments: Any) -> Any:
        return JavaMember(name, None, self._get_object_id(), self._calls.client)(*arguments)

    def __del__(self) -> None:
        if self._place:
            self._calls.gone.append(self._place)

    def _is_no_value(self, *_: object) -> Any:
        """Whoever takes it for a number or a text must not get a wrong one."""
        raise TypeError("an object of the JVM has no value here; ask one of its methods")

    def __eq__(self, other: object) -> bool:
        return self is other or bool(self._is_no_value())

    __hash__ = object.__hash__
    __str__ = __int__ = __index__ = __float__ = __format__ = _is_no_value


class Method:
    """A method of an object or of a class, called later where that can be."""

    __slots__ = ("_name", "_now", "_target")

    def __init__(self, target: Later | JavaObject | str, name: str, now: Callable[..., Any]) -> None:
        self._target, self._name, self._now = target, name, now

    def __call__(self, *arguments: Any) -> Any:
        calls = active()
        if calls is not None and can_be_noted(arguments):
            return calls.call(self._target, self._name, arguments)
        return self._now(*arguments)


class _Bound:
    """An object that is there, whose methods may wait."""

    __slots__ = ("_object",)

    def __init__(self, of: JavaObject) -> None:
        self._object = of

    def __getattr__(self, name: str) -> Any:
        return Method(self._object, name, getattr(self._object, name))


class Calls:
    """What one thread has put off."""

    def __init__(self, client: Any, runner: JavaObject, gone: deque[str]) -> None:
        self.client = client
        self._runner = runner
        self.gone = gone
        """Objects that nobody here needs any more."""
        self._lines: list[str] = []
        self._results: list[Later | None] = []
        self._used: list[Any] = []
        """Objects that the calls need: they must stay until then."""

    def made(self, class_name: str, arguments: Sequence[Any]) -> Later:
        """A new object of a class, which does nothing but hold what it is given."""
        return self.noted(class_name, "", *arguments, kind=class_name.rpartition(".")[2])

    def call(self, target: Later | JavaObject | str, name: str, arguments: Sequence[Any]) -> Any:
        """A method of an object or a class: done later if that can wait, else now."""
        noted = self.noted(target, name, *arguments)
        if name in _CAN_WAIT:
            return noted
        self._results[-1] = None  # the answer is handed out as py4j would
        return get_return_value(f"y{self.send()}", self.client, "", name)

    def noted(self, target: Later | JavaObject | str, name: str, *arguments: Any, kind: str = "") -> Later:
        """A call that is done later, whatever it gives."""
        whom = target if isinstance(target, str) else _word(target, self).removeprefix("r")
        words = [whom, name, *(_word(argument, self) for argument in arguments)]
        found = Later(self, len(self._lines) + 1, kind)
        self._lines.append(_WORD.join(words))
        self._results.append(found)
        self._used += [target, *arguments]
        return found

    def awaits(self, result: Later) -> bool:
        """It is what one of the calls noted so far will give; the number alone may be one of an earlier list."""
        return result._number <= len(self._results) and self._results[result._number - 1] is result

    def send(self) -> str:
        """Do all that was put off; the last answer, as py4j writes it."""
        self.gone.extend(_released(self.client))
        text = _LINE.join([_WORD.join(_drained(self.gone)), *self._lines])
        results, used = self._results, self._used
        self._lines, self._results, self._used = [], [], []
        places, _, last = str(self._runner.run(text)).partition(_LINE)
        for result, place in zip(results, places.split(_WORD), strict=False):
            if result is not None:
                result._place = place
        used.clear()
        return last


def _released(client: Any) -> Iterator[str]:
    """Objects of py4j's own that nobody here needs any more: its thread would tell so of each by a call of its own."""
    released: deque[Any] = client.finalizer_deque
    others = []
    with suppress(IndexError):
        while True:
            task = released.pop()
            if isinstance(task, tuple) and task[0] is client:
                yield task[1]
            else:
                others.append(task)
    for task in others:
        released.append(task)


def _drained(places: deque[str]) -> Iterator[str]:
    """All of them; other threads take some at the same time."""
    with suppress(IndexError):
        while True:
            yield places.popleft()


def _word(value: Any, calls: Calls) -> str:
    """An argument, or the target of a call, as the other side reads it."""
    match value:
        case None:
            return "n"
        case bool():
            return f"b{value}"
        case int():
            return f"i{value}"
        case str():
            return f"s{value}"
        case Later() if calls.awaits(value):
            return f"#{value._number}"
    return f"r{value._get_object_id()}"


def can_be_made_later(class_name: str, arguments: Sequence[Any]) -> bool:
    """An object of the class does nothing but hold what it is given."""
    return class_name.startswith(_MADE_LATER) and can_be_noted(arguments)


def can_be_noted(arguments: Sequence[Any]) -> bool:
    """All of them can be written down."""
    return all(
        value is None
        or isinstance(value, bool | Later | JavaObject)
        or (isinstance(value, int) and -(2**31) <= value < 2**31)
        or (isinstance(value, str) and _WORD not in value and _LINE not in value)
        for value in arguments
    )


_THREAD = threading.local()
_GUARD = threading.Lock()
_RUNNERS: dict[int, tuple[ClientServer, JavaObject, deque[str]]] = {}
"""By gateway: there is one as long as its JVM lives."""


def active() -> Calls | None:
    """Where this thread notes its calls, while it puts them off."""
    return getattr(_THREAD, "calls", None)


def texts(of: Sequence[Any], *methods: str) -> list[str]:
    """What the methods, one after the other, give for each of several objects: short words, told by one call."""
    calls = active()
    if calls is None or not of:
        return [str(_through(one, methods)) for one in of]
    listed = calls.made("java.util.ArrayList", [])
    for one in of:
        word = one
        for name in methods:
            word = calls.noted(word, name)
        calls.noted(listed, "add", word)
    return str(listed.toString())[1:-1].split(", ")


def _through(found: Any, methods: Sequence[str]) -> Any:
    for name in methods:
        found = getattr(found, name)()
    return found


def later(found: Any) -> Any:
    """An object whose methods may wait, if this thread puts calls off."""
    return _Bound(found) if isinstance(found, JavaObject) and active() is not None else found


@contextmanager
def calls_put_off(spark: SparkSession) -> Iterator[None]:
    """This thread puts off calls until it needs an answer, at the latest to the end of the block."""
    gateway: Any = spark.sparkContext._gateway
    # Other gateways have several threads of the JVM for one of ours.
    if active() is not None or not isinstance(gateway, ClientServer):
        yield
        return
    _THREAD.calls = calls = Calls(gateway._gateway_client, *_runner(gateway))
    try:
        yield
        calls.send()
    finally:
        _THREAD.calls = None


def _runner(gateway: ClientServer) -> tuple[JavaObject, deque[str]]:
    with _GUARD:
        known = _RUNNERS.get(id(gateway))
        if known is None:
            _RUNNERS.clear()
            runner = new(gateway, "Calls", gateway.java_gateway_server.getGateway())
            known = _RUNNERS[id(gateway)] = (gateway, runner, deque())
        return known[1:]
