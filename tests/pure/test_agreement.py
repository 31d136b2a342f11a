"""What several sources have read below them, and whether they agree."""

from __future__ import annotations

from spark_trickle.frontier import Frontier, SourceVersion
from spark_trickle.refresh.vector import Agreement


def at(version: int) -> SourceVersion:
    return SourceVersion("id", version)


def test_base_tables_and_stream_tables_below_are_collected() -> None:
    agreement = Agreement()
    agreement.read("base", at(3), None)
    agreement.read("b", at(7), Frontier({}, {"base": at(3)}, through={"a": at(2)}))
    assert agreement.problem == ""
    assert agreement.bases == {"base": at(3)}
    assert agreement.through == {"a": at(2), "b": at(7)}


def test_a_base_table_read_twice_must_be_one_version() -> None:
    agreement = Agreement()
    agreement.read("base", at(4), None)
    agreement.read("b", at(7), Frontier({}, {"base": at(3)}))
    assert "versions 4 and 3 of `base`" in agreement.problem


def test_a_stream_table_read_directly_and_through_another_must_be_one_version() -> None:
    agreement = Agreement()
    agreement.read("a", at(8), Frontier({}, {"base": at(3)}))
    agreement.read("b", at(7), Frontier({}, {"base": at(3)}, through={"a": at(7)}))
    assert "of `a`" in agreement.problem
