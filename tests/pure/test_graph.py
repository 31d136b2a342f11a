"""The dependency graph: order, upstream, downstream, cycles."""

from __future__ import annotations

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


def test_a_cycle_is_found_with_its_path_and_stands_side_by_side() -> None:
    graph = Dependencies({"a": ["b", "t"], "b": ["c"], "c": ["a"], "z": ["t"], "d": ["c"]})
    assert graph.cycles() == [{"a", "b", "c"}]
    path = graph.path_of_cycle()
    assert (len(path), path[0]) == (4, path[-1])
    assert graph.order() == ["a", "b", "c", "d", "z"]
    assert set(graph.upstream("a")) == {"b", "c"}
    assert graph.upstream("d") == ["a", "b", "c"]
    assert (DIAMOND.cycles(), DIAMOND.path_of_cycle()) == ([], [])
