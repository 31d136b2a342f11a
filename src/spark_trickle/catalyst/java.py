"""Java's names, each looked up once: py4j asks the JVM for every part of every dotted name."""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Any

from py4j.java_gateway import JavaClass, JavaMember, JavaPackage
from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

from spark_trickle.catalyst.later import Method, active, can_be_made_later

_AT_ONCE = 10


class _Names:
    """A package or a class. What is found in it stays the same as long as the JVM lives."""

    def __init__(self, target: Any) -> None:
        self._target = target

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._target, name)
        if isinstance(found, JavaPackage | JavaClass):
            found = _Names(found)
        elif isinstance(found, JavaMember):
            found = Method(found.target_id, name, found)
        setattr(self, name, found)
        return found

    def __call__(self, *arguments: Any) -> Any:
        """A new object of the class."""
        calls = active()
        if calls is not None and can_be_made_later(self._target._fqn, arguments):
            return calls.made(self._target._fqn, arguments)
        return self._target(*arguments)


def java(spark: SparkSession) -> Any:
    """The names of the JVM that a session runs in."""
    _answer_at_once(spark)
    jvm = spark.sparkContext._jvm
    if id(jvm) not in _KNOWN:
        _KNOWN.clear()
        _KNOWN[id(jvm)] = _Names(jvm)
    return _KNOWN[id(jvm)]


def _answer_at_once(spark: SparkSession) -> None:
    """Let the JVM send long answers to this thread without waiting for signs of life between two pieces of them.

    By default each answer of more than 8 kB is held up by 40 ms: one side waits for more, the other for a receipt.
    """
    gateway: Any = spark.sparkContext._gateway
    if getattr(_PROMPT, "gateway", None) is gateway:
        return
    _PROMPT.gateway = gateway
    with suppress(Py4JError, AttributeError, OSError):  # another kind of gateway: slower, that is all
        client = gateway.java_gateway_server.getCallbackClient()
        client.getPerThreadConnection().getSocket().setTcpNoDelay(True)
        own = gateway._gateway_client.get_thread_connection().socket
        own.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)


def scala_seq(jvm: Any, values: Iterable[Any]) -> Any:
    """A Scala sequence of these objects."""
    return jvm.org.apache.spark.api.python.PythonUtils.toSeq(java_list(jvm, values))


def java_list(jvm: Any, values: Iterable[Any]) -> Any:
    """A list of these objects, with as few calls as can be: Java lists up to ten objects in one."""
    every = list(values)
    if len(every) <= _AT_ONCE:
        return jvm.java.util.List.of(*every)
    listed = jvm.java.util.ArrayList(len(every))
    for i in range(0, len(every), _AT_ONCE):
        listed.addAll(jvm.java.util.List.of(*every[i : i + _AT_ONCE]))
    return listed


def scala_object(package: Any, name: str) -> Any:
    """The object of that name."""
    return getattr(getattr(package, f"{name}$"), "MODULE$")


def scala_longs(spark: SparkSession, values: Sequence[int]) -> Any:
    """A Scala sequence of BIGINTs, handed over in one piece."""
    context, jvm = spark.sparkContext, java(spark)
    gateway: Any = context._gateway
    numbers = gateway.new_array(gateway.jvm.long, len(values))
    jvm.java.nio.ByteBuffer.wrap(struct.pack(f">{len(values)}q", *values)).asLongBuffer().get(numbers)
    return jvm.scala.collection.immutable.ArraySeq.unsafeWrapArray(numbers)


_KNOWN: dict[int, _Names] = {}
_PROMPT = threading.local()
