"""The files of a version, from those of an earlier one and the commits since."""

import json

from spark_trickle.storage.files import data_file
from spark_trickle.storage.following import following


def added(path: str, vector: str = "") -> dict[str, object]:
    found: dict[str, object] = {"path": path, "size": 10, "stats": '{"numRecords": 3}', "dataChange": True}
    if vector:
        found["deletionVector"] = {
            "storageType": "u",
            "pathOrInlineDv": vector,
            "offset": 1,
            "cardinality": 1,
        }
    return found


def removed(path: str, vector: str = "") -> dict[str, object]:
    found = added(path, vector)
    return {key: value for key, value in found.items() if key in {"path", "dataChange", "deletionVector"}}


def commit(*actions: dict[str, object]) -> str:
    return "\n".join(map(json.dumps, ({"commitInfo": {"operation": "WRITE"}}, *actions)))


BEFORE = {file.content: file for file in (data_file(added(path)) for path in "abc")}


def paths(*commits: str | None) -> list[tuple[str, str]] | None:
    found = following(BEFORE, commits)
    return None if found is None else [(path, vector) for path, vector in found.files]


def test_files_are_added_behind_those_that_stay() -> None:
    found = following(BEFORE, [commit({"remove": removed("b")}, {"add": added("d")})])
    assert found is not None
    assert [path for path, _ in found.files] == ["a", "c", "d"]
    assert [file.path for file in found.gone] == ["b"]
    assert [json.loads(text)["add"]["dataChange"] for text in found.added] == [False]


def test_another_deletion_vector_is_another_file() -> None:
    first = commit({"remove": removed("a")}, {"add": added("a", "v1")})
    second = commit({"add": added("a", "v2")}, {"remove": removed("a", "v1")})
    assert paths(first, second) == [("b", ""), ("c", ""), ("a", "u@v2@1")]


def test_what_came_and_went_is_neither_gone_nor_added() -> None:
    found = following(BEFORE, [commit({"add": added("d")}), commit({"remove": removed("d")})])
    assert found is not None
    assert list(found.files) == list(BEFORE)
    assert not found.gone
    assert not found.added


def test_a_file_that_is_added_again_has_its_new_description() -> None:
    found = following(BEFORE, [commit({"add": added("a") | {"size": 11}})])
    assert found is not None
    assert found.files["a", ""].size == 11
    assert [file.size for file in found.gone] == [10]


def test_commits_that_do_not_tell() -> None:
    assert paths(commit({"add": added("d")}), None) is None
    assert paths(commit({"remove": removed("z")})) is None
    assert paths(commit({"add": added("file:/elsewhere/d")})) is None
    assert paths(commit({"add": added("/elsewhere/d")})) is None


def test_commits_without_files_change_nothing() -> None:
    assert paths(commit({"metaData": {"id": "x"}})) == list(BEFORE)
