"""Functions that build DataFrames, remembered by where they are defined: `module:function`."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from spark_trickle.errors import QueryError

Build = Callable[[SparkSession], DataFrame]


def reference_to(function: Build) -> str:
    """`module:function`, checked: another process must find the same function there."""
    module, name = getattr(function, "__module__", ""), getattr(function, "__qualname__", "")
    reference = f"{module}:{name}"
    if module == "__main__" or not name.isidentifier():
        raise QueryError(
            f"`{reference}` cannot be found by another process.",
            hint="Define the function at the top of a module that can be imported.",
            code="FUNCTION_NOT_FOUND",
        )
    if find_function(reference) is not function:
        raise QueryError(
            f"`{reference}` is another function than the one given.",
            hint="Give the function itself, not a decorated or replaced one.",
            code="FUNCTION_NOT_FOUND",
        )
    return reference


def find_function(reference: str) -> Build:
    """The function that a reference names. Modules are looked for in the working directory as well."""
    module, _, name = reference.partition(":")
    if not module or not name:
        raise QueryError(
            f"`{reference}` does not name a function.",
            hint="Write module:function.",
            code="FUNCTION_NOT_FOUND",
        )
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.append(here)
    try:
        found = getattr(importlib.import_module(module), name)
    except Exception as error:  # a module of the user's may raise anything while it is imported
        raise QueryError(
            f"The function `{reference}` cannot be imported: {type(error).__name__}: {error}.",
            hint="Run from the folder that holds the module, or install the package that has it.",
            code="FUNCTION_NOT_FOUND",
        ) from error
    if not callable(found):
        raise QueryError(
            f"`{reference}` is not a function.", hint="Write module:function.", code="FUNCTION_NOT_FOUND"
        )
    return found  # type: ignore[no-any-return]


def call(reference: str, spark: SparkSession) -> DataFrame:
    """The DataFrame that a function builds in a session."""
    frame = find_function(reference)(spark)
    if not isinstance(frame, DataFrame):
        raise QueryError(
            f"`{reference}` gave {type(frame).__name__}, not a DataFrame.",
            hint="Return the DataFrame: def orders_by_city(spark): return spark.table(…)….",
            code="NOT_A_DATAFRAME",
        )
    if frame.sparkSession is not spark:
        raise QueryError(
            f"`{reference}` used another session than the one it was given.",
            hint="Build the DataFrame from the argument: def orders_by_city(spark): return spark.table(…)….",
            code="NOT_A_DATAFRAME",
        )
    return frame
