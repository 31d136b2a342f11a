"""The dependency graph: order, upstream, downstream, cycles."""

from __future__ import annotations

import pytest

from spark_trickle.errors import DefinitionError
from spark_trickle.graph.dependencies import Dependencies

DIAMOND = Dependencies({"b": ["a"], "c": ["a", "x"], "d": ["b", "c"], "e": ["d"]})


def test_upstream_comes_in_the_order_to_refresh() -> None:
    assert DIAMOND.upstream("e") == ["b", "c", "d"]
    assert DIAMOND.upstream("b") == []


def test_bases_are_the_tables_that_are_not_stream_tables() -> None:
    assert DIAMOND.bases("e") == ["a", "x"]


def test_dependents_are_direct_and_downstream_is_not() -> None:
    assert DIAMOND.dependents("a") == ["b", "c"]
    assert DIAMOND.downstream("b") == ["d", "e"]
    assert DIAMOND.dependents("unknown") == []
    assert DIAMOND.downstream("unknown") == []


def test_another_definition_replaces_what_a_table_reads() -> None:
    assert DIAMOND.sources("d") == ["b", "c"]
    assert DIAMOND.reading("d", ["a"]).sources("d") == ["a"]
    assert DIAMOND.reading("new", ["d"]).upstream("new")[-1] == "d"


def test_a_cycle_is_refused_with_its_path() -> None:
    with pytest.raises(DefinitionError) as refused:
        Dependencies({"a": ["b"], "b": ["c"], "c": ["a"]}).check_acyclic()
    assert refused.value.code == "CYCLE"
    assert refused.value.message.count("→") == 3
    DIAMOND.check_acyclic()
