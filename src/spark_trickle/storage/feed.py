"""The change feed of a few commits, read by the driver from the files that the commits name: no Spark job."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from spark_trickle.names import WEIGHT
from spark_trickle.storage.commits import Commit, Touched, commits_after
from spark_trickle.storage.direct import described_columns, path_of
from spark_trickle.storage.files import local_folder, vector_name
from spark_trickle.storage.parquet import Field, Positions, Reading, Source, TooMany, Unreadable, read_each
from spark_trickle.storage.tables import DeltaTables, Snapshot

_KIND = "_change_type"
_ADDED = pa.array(["insert", "update_postimage"])
_Part = tuple[Source, int]
"""A file, and the weight of its rows; 0 where each row tells its own."""


def read_feed(tables: DeltaTables, old: Snapshot, new: Snapshot, most: int) -> pa.Table | None:
    """What changed in all columns, weight last, not netted; None: ask Spark.

    The feed must be on at both versions, and their schemas must be the same.
    """
    if local_folder(new.place) is None or not tables.most_scanned or old.version > new.version:
        return None
    commits = list(commits_after(tables, new.place, old.version, new.version, new.table_id))
    fields = described_columns(new, {name: (name,) for name in new.schema.names})
    if fields is None or any(commit.gone or commit.changes_metadata for commit in commits):
        return None
    try:
        parts = [part for commit in commits for part in _parts(tables, new, commit)]
        told = [part for part in parts if not part[1]]
        plain = [part for part in parts if part[1]]
        own = [field for field, _ in fields]
        found = [*_told(told, own, most), *_weighed(plain, own, most)]
    except (Unreadable, TooMany):
        return None
    empty = pa.schema([(f.name, f.type) for f in own] + [(WEIGHT, pa.int64())]).empty_table()
    rows = pa.concat_tables([empty, *found])
    return rows if rows.num_rows <= most else None


def _told(parts: Sequence[_Part], fields: Sequence[Field], most: int) -> Iterator[pa.Table]:
    """Change rows, of which each says what became of it."""
    kind = Field(_KIND, (_KIND,), pa.string())
    for rows in read_each([source for source, _ in parts], Reading([*fields, kind], {}, most)):
        added = pc.is_in(rows.column(_KIND), value_set=_ADDED)
        weight = pc.if_else(added, pa.scalar(1, pa.int64()), pa.scalar(-1, pa.int64()))
        yield rows.drop_columns([_KIND]).append_column(WEIGHT, weight)


def _weighed(parts: Sequence[_Part], fields: Sequence[Field], most: int) -> Iterator[pa.Table]:
    """Rows of the table that were all added, or all removed."""
    for (_, weight), rows in zip(
        parts, read_each([source for source, _ in parts], Reading(fields, {}, most)), strict=True
    ):
        yield rows.append_column(WEIGHT, pa.repeat(pa.scalar(weight, pa.int64()), rows.num_rows))


def _parts(tables: DeltaTables, table: Snapshot, commit: Commit) -> Iterator[_Part]:
    """The files that tell what a commit has changed."""
    for path, partition in commit.feed:
        yield Source(path_of(table, path), "", partition), 0
    if commit.feed:
        return
    by_path: dict[str, list[Touched]] = defaultdict(list)
    for file in commit.touched:
        if file.changes_data:
            by_path[file.path].append(file)
    changing = (file for files in by_path.values() for file in files if file.vector)
    hidden = tables.positions(
        table, {vector_name(f.vector): partial(_descriptor, tables, f) for f in changing}
    )
    for path, files in by_path.items():
        place = path_of(table, path)
        if len(files) == 1:
            file = files[0]
            yield Source(place, "", file.partition, _hidden(hidden, file)), 1 if file.added else -1
            continue
        # The same file with another deletion vector: what it hides now was removed, what it hid before was added.
        before, after = sorted(files, key=lambda file: file.added)
        hid, hides = _hidden(hidden, before), _hidden(hidden, after)
        for one, other, weight in ((hides, hid, -1), (hid, hides, 1)):
            yield Source(place, "", after.partition, only=_only_in(one, other)), weight


def _hidden(hidden: Mapping[str, Positions], file: Touched) -> Positions | None:
    return hidden[vector_name(file.vector)] if file.vector else None


def _only_in(mine: Positions | None, theirs: Positions | None) -> Positions:
    if mine is None:
        return np.array([], dtype=np.int64)
    return mine if theirs is None else np.setdiff1d(mine, theirs, assume_unique=True)


def _descriptor(tables: DeltaTables, file: Touched) -> Any:
    text = json.dumps({"remove": {"path": "any", "dataChange": True, "deletionVector": dict(file.vector)}})
    return tables.jvm.org.apache.spark.sql.delta.actions.Action.fromJson(text).deletionVector()
