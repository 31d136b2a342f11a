"""What the log says of a file, and which files keys can reach."""

from __future__ import annotations

import json

import pytest

from spark_trickle.storage.files import DataFile, described


def file(low: object = None, high: object = None, **more: object) -> DataFile:
    """A file of one column `c` with these ends."""
    stats = {"numRecords": 10, "minValues": {"c": low}, "maxValues": {"c": high}}
    (found,) = described(json.dumps([{"path": "a", "size": 7, "stats": json.dumps(stats), **more}]))
    return found


@pytest.mark.parametrize(
    ("low", "high", "ranges", "reached"),
    [
        (5, 9, [(9, 12)], True),
        (5, 9, [(1, 5)], True),
        (5, 9, [(6, 7)], True),
        (5, 9, [(1, 20)], True),
        (5, 9, [(1, 4), (10, 12)], False),
        (5, 9, [(1, 4), (7, 7)], True),
        (-(2**63), 2**63 - 1, [(0, 0)], True),
        ("1970-01-02", "1970-01-10", [(9, 9)], True),
        ("1970-01-02", "1970-01-10", [(0, 0), (10, 10)], False),
        (None, None, [(1, 1)], True),
        (5, None, [(1, 1)], True),
        ("not a day", "nor this", [(1, 1)], True),
        ("+12345-01-01", "+12345-01-02", [(1, 1)], True),
        (True, True, [(5, 5)], True),
        ("1582-10-04", "1582-10-04", [(0, 0)], True),
        ("20200101", "20200102", [(0, 0)], True),
        (1.5, 2.5, [(7, 7)], True),
    ],
)
def test_a_file_is_left_out_only_if_its_ends_are_known(
    low: object, high: object, ranges: list[tuple[int, int]], reached: bool
) -> None:
    assert file(low, high).may_hold("c", ranges) is reached
    assert file(low, high).may_hold("another", ranges)


def test_rows_are_those_that_no_vector_hides() -> None:
    vector = {"storageType": "u", "pathOrInlineDv": "xyz", "offset": 1, "sizeInBytes": 3, "cardinality": 4}
    marked, plain = file(deletionVector=vector), file()
    assert (marked.rows, plain.rows) == (6, 10)
    assert marked.content != plain.content
    assert file(deletionVector={**vector, "offset": 2}).content != marked.content


@pytest.mark.parametrize(
    "stats",
    [None, "", "{", "[]", "{}", '{"minValues": null, "maxValues": [1]}', '{"numRecords": "many"}'],
)
def test_a_file_without_statistics_may_hold_anything(stats: str | None) -> None:
    found = file(stats=stats)
    assert found.rows is None
    assert found.may_hold("c", [(1, 1)])


def test_files_keep_their_places() -> None:
    text = json.dumps([{"path": p, "size": 1} for p in "abc"])
    assert [f.path for f in described(text)] == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("rows", "values", "found"),
    [
        (100_000, [0], (1, 5)),
        (100_000, [0, 1, 2, 999], (2, 5)),
        (100_000, [0, 200, 400, 600, 800], (5, 5)),
        (100_000, [-5, 1000], (0, 5)),
        (100_001, [500], (1, 6)),
        (10, [1, 5, 500], (1, 1)),
        (100_000, [], (0, 5)),
    ],
)
def test_pages_that_hold_a_value_if_the_file_is_sorted(
    rows: int, values: list[int], found: tuple[int, int]
) -> None:
    stats = json.dumps({"numRecords": rows, "minValues": {"c": 0}, "maxValues": {"c": 999}})
    (one,) = described(json.dumps([{"path": "a", "size": 7, "stats": stats}]))
    assert one.pages_with("c", values) == found
    assert one.pages_with("another", values) == (found[1], found[1])
