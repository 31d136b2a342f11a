"""The files of a version, told by those of an earlier one and the commits since. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from spark_trickle.storage.files import Content, DataFile, data_file


@dataclass(frozen=True, slots=True)
class Following:
    """A later version: what it has no longer, and what it has in addition, as the log has it."""

    files: Mapping[Content, DataFile]
    gone: tuple[DataFile, ...]
    added: tuple[str, ...]


def following(files: Mapping[Content, DataFile], commits: Iterable[str | None]) -> Following | None:
    """The files after some commits, given as the text of their files; None where those do not tell.

    That is so when a text is gone, when a file lies outside of the table, which has more than one name, and when a
    commit removes what is not there.
    """
    kept, gone = dict(files), list[DataFile]()
    added: dict[Content, str] = {}
    for text in commits:
        if text is None:
            return None
        for line in filter(str.strip, text.split("\n")):
            action = json.loads(line)
            comes = action.get("add") is not None
            raw = action.get("add") or action.get("remove")
            if raw is None:
                continue
            if urlsplit(raw["path"]).scheme or raw["path"].startswith("/"):
                return None
            file = data_file(raw if comes else raw | {"size": 0})
            before = kept.pop(file.content, None)
            known = added.pop(file.content, None)
            if before is not None and known is None:
                gone.append(before)
            if comes:
                # As Delta has the files of a version: that it is there changes nothing.
                added[file.content] = json.dumps({"add": raw | {"dataChange": False}})
                kept[file.content] = file
            elif before is None:
                return None
    return Following(kept, tuple(gone), tuple(added.values()))
