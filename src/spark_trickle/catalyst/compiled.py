"""The classes of this package that are written in Java, compiled once for each JVM.

Janino compiles them: Spark brings it along for the code that it generates.
"""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

from py4j.java_gateway import JavaGateway, JavaObject

_GUARD = threading.Lock()
_COMPILED: dict[tuple[int, str], tuple[JavaGateway, JavaObject]] = {}
"""By gateway and name: there is one gateway as long as its JVM lives."""


def new(gateway: JavaGateway, name: str, *arguments: Any) -> JavaObject:
    """An object of a class, whose file has its name in small letters."""
    given = gateway.new_array(gateway.jvm.java.lang.Object, len(arguments))
    for i, argument in enumerate(arguments):
        given[i] = argument
    return _constructor(gateway, name).newInstance(given)


def _constructor(gateway: JavaGateway, name: str) -> Any:
    with _GUARD:
        key = (id(gateway), name)
        if key not in _COMPILED:
            for known in [known for known in _COMPILED if known[0] != id(gateway)]:
                del _COMPILED[known]
            _COMPILED[key] = (gateway, _loaded(gateway, name).getConstructors()[0])
        return _COMPILED[key][1]


def _loaded(gateway: JavaGateway, name: str) -> Any:
    jvm = gateway.jvm
    compiler = jvm.org.codehaus.janino.SimpleCompiler()
    compiler.setParentClassLoader(jvm.java.lang.Thread.currentThread().getContextClassLoader())
    compiler.cook(Path(__file__).with_name(f"{name.lower()}.java").read_text(encoding="utf-8"))
    return compiler.getClassLoader().loadClass(name)
