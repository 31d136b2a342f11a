"""Functions that define stream tables, found by `module:function`."""

import sys
from pathlib import Path

import pytest

from spark_trickle.errors import QueryError
from spark_trickle.refresh.functions import find_function, reference_to
from tests.spark import frames


def test_a_function_of_a_module_is_found_again_by_its_reference() -> None:
    assert reference_to(frames.totals) == "tests.spark.frames:totals"
    assert find_function("tests.spark.frames:totals") is frames.totals


def test_modules_are_found_in_the_working_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "my_models.py").write_text("def orders(spark):\n    return spark.table('orders')\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    assert find_function("my_models:orders").__name__ == "orders"


@pytest.mark.parametrize(
    "reference",
    [
        "no_such_module:f",
        "tests.spark.frames:no_such",
        "tests.spark.frames",
        ":f",
        "tests.spark.frames:__doc__",
        "..x:f",
    ],
)
def test_what_is_no_function_is_refused_in_one_sentence(reference: str) -> None:
    with pytest.raises(QueryError) as refused:
        find_function(reference)
    assert refused.value.code == "FUNCTION_NOT_FOUND"
    assert reference in refused.value.message
    assert refused.value.hint


def test_a_function_that_another_process_could_not_find_is_refused() -> None:
    def local(spark: object) -> object:
        return spark

    for function in (local, lambda spark: spark):
        with pytest.raises(QueryError, match="cannot be found by another process"):
            reference_to(function)  # type: ignore[arg-type]
