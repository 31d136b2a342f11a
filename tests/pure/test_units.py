"""What is refreshed together or not at all."""

from spark_trickle.graph.dependencies import Dependencies
from spark_trickle.graph.units import Unit, in_order, units_of

DIAMOND = {"b": ["t"], "c": ["t"], "d": ["b", "c"], "e": ["d"], "alone": ["t"]}
CYCLE = {"a": ["src", "b"], "b": ["a"], "reader": ["b"]}


def members(units: list[Unit]) -> list[tuple[str, ...]]:
    return [unit.members for unit in units]


def test_a_diamond_is_a_unit_only_if_a_member_is_atomic() -> None:
    graph = Dependencies(DIAMOND)
    assert units_of(graph, frozenset()) == []
    assert units_of(graph, {"alone"}) == []
    for atomic in ("b", "c", "d"):
        assert members(units_of(graph, {atomic})) == [("b", "c", "d")]


def test_a_cycle_is_a_unit_of_one_step() -> None:
    graph = Dependencies(CYCLE)
    (unit,) = units_of(graph, frozenset())
    assert unit == Unit(("a", "b"), (frozenset({"a", "b"}),))
    assert unit.steps() == [("a", "b")]


def test_units_that_share_a_table_are_one_and_a_cycle_in_it_is_one_step() -> None:
    graph = Dependencies({**CYCLE, "c": ["src"], "d": ["b", "c"]})
    (unit,) = units_of(graph, {"d"})
    assert set(unit.members) == {"a", "b", "c", "d"}
    assert ("a", "b") in unit.steps()
    assert unit.steps()[-1] == ("d",)


def test_what_lies_between_two_members_is_a_member() -> None:
    """Two diamonds share `d`; `x` lies on a path from one to the other, in neither of them."""
    reads = {
        "b": ["t"], "c": ["t"], "d": ["b", "c"],
        "f": ["u", "d"], "g": ["u", "x"], "x": ["b"], "h": ["f", "g"],
    }  # fmt: skip
    for unit in units_of(Dependencies(reads), {"d", "h"}):
        inside = set(unit.members)
        for table in reads.keys() - inside:
            graph = Dependencies(reads)
            assert not (graph.ancestors(table) & inside and set(graph.downstream(table)) & inside)


def test_units_that_read_each_other_crosswise_are_one() -> None:
    reads = {
        "a1": ["s"], "b2": ["t"], "a2": ["s", "b2"], "aend": ["a1", "a2"], "b1": ["t", "a1"], "bend": ["b1", "b2"],
    }  # fmt: skip
    graph = Dependencies(reads)
    (unit,) = units_of(graph, set(reads))
    assert set(unit.members) == set(reads)
    assert members(in_order(graph, ["bend"], [unit])) == [unit.members]


def test_one_table_takes_along_what_it_reads_and_what_is_refreshed_with_that() -> None:
    graph = Dependencies(DIAMOND)
    units = units_of(graph, {"d"})
    assert members(in_order(graph, ["b"], units)) == [("b", "c", "d")]
    assert members(in_order(graph, ["e"], units)) == [("b", "c", "d"), ("e",)]
    assert members(in_order(graph, ["e"], [])) == [("b",), ("c",), ("d",), ("e",)]
    assert members(in_order(graph, ["alone"], units)) == [("alone",)]
    cycle = Dependencies(CYCLE)
    assert members(in_order(cycle, ["reader"], units_of(cycle, frozenset()))) == [("a", "b"), ("reader",)]
