"""Diamonds, and versions that belong together."""

from __future__ import annotations

from itertools import product
from random import Random

import pytest

from spark_trickle.errors import StateError
from spark_trickle.frontier import Frontier, SourceVersion
from spark_trickle.graph.dependencies import Dependencies
from spark_trickle.graph.diamonds import DiamondGroup, diamond_groups
from spark_trickle.graph.vectors import Point, common_points


def groups(**reads: str) -> list[DiamondGroup]:
    return diamond_groups(Dependencies({name: sources.split() for name, sources in reads.items()}))


def test_two_paths_that_meet_are_a_diamond() -> None:
    assert groups(b="a", c="a", d="b c", e="d") == [DiamondGroup(("b", "c", "d"), ("d",), ("a",))]


def test_a_chain_and_a_fan_are_none() -> None:
    assert groups(b="a", c="b", d="b", e="c") == []


def test_a_base_table_read_directly_and_through_another_is_one() -> None:
    assert groups(b="a", c="a b") == [DiamondGroup(("b", "c"), ("c",), ("a",))]


def test_nested_and_overlapping_diamonds_are_one_group() -> None:
    nested = groups(b="a", c="a", d="b c", e="a", f="d e")
    assert nested == [DiamondGroup(("b", "c", "d", "e", "f"), ("d", "f"), ("a",))]
    sharing = groups(b="a", c="a x", e="x", d="b c", f="c e")
    assert sharing == [DiamondGroup(("b", "c", "d", "e", "f"), ("d", "f"), ("a", "x"))]


def test_separate_diamonds_are_separate_groups() -> None:
    assert len(groups(b="a", c="a", d="b c", p="x", q="x", r="p q")) == 2


def point(version: int, bases: dict[str, int], inputs: dict[str, int] | None = None) -> Point:
    def versions(of: dict[str, int]) -> dict[str, SourceVersion]:
        return {name: SourceVersion(f"id of {name}", v) for name, v in of.items()}

    return Point(version, Frontier(versions((inputs or {}) | {}), versions(bases)))


def test_the_newest_points_that_agree_are_chosen() -> None:
    history = {
        "b": [point(7, {"a": 5}), point(6, {"a": 4}), point(5, {"a": 3})],
        "c": [point(9, {"a": 4, "x": 2}), point(8, {"a": 3, "x": 1})],
    }
    assert {n: p.version for n, p in common_points(history).items()} == {"b": 6, "c": 9}


def test_a_reader_goes_with_the_version_it_has_read() -> None:
    repaired = [point(8, {"a": 4}), point(7, {"a": 4})]
    reader = [point(3, {"a": 4}, {"b": 7})]
    assert common_points({"b": repaired, "d": reader})["b"].version == 7
    assert common_points({"d": reader, "b": repaired})["b"].version == 7


def test_readers_agree_on_the_stream_tables_between_too() -> None:
    """No base has changed, but the table above them has, as after midnight: its two readers must not be mixed."""

    def through(version: int, above: int) -> Point:
        frontier = Frontier({}, {"a": SourceVersion("id", 1)}, through={"above": SourceVersion("id", above)})
        return Point(version, frontier)

    chosen = common_points({"b": [through(7, 4), through(6, 3)], "c": [through(2, 3)]})
    assert {name: point.version for name, point in chosen.items()} == {"b": 6, "c": 2}


def test_what_has_nothing_in_common_is_named() -> None:
    with pytest.raises(StateError, match=r"`b`.*`c`") as failed:
        common_points({"b": [point(2, {"a": 5})], "c": [point(1, {"a": 3})]})
    assert failed.value.code == "NO_COMMON_VERSION"
    with pytest.raises(StateError, match="never filled"):
        common_points({"b": []})


@pytest.mark.parametrize("seed", range(40))
def test_no_newer_agreement_is_passed_over(seed: int) -> None:
    """Against trying every combination, on random histories."""
    rng = Random(seed)
    history = {}
    for name in "bcd"[: rng.randint(2, 3)]:
        bases = rng.sample(["x", "y", "z"], rng.randint(1, 3))
        now, points = dict.fromkeys(bases, 0), []
        for version in range(rng.randint(1, 6)):
            now = {base: v + rng.choice([0, 0, 1, 2]) for base, v in now.items()}
            points.append(point(version, now))
        history[name] = points[::-1]
    best = None
    for combined in product(*history.values()):
        known: dict[str, SourceVersion] = {}
        if all(known.setdefault(b, v) == v for p in combined for b, v in p.frontier.bases.items()):
            best = best or combined
            assert all(p.version <= q.version for p, q in zip(combined, best, strict=True))
    if best is None:
        with pytest.raises(StateError):
            common_points(history)
    else:
        assert tuple(common_points(history).values()) == best
