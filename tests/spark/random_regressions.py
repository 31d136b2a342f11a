"""Queries that once went wrong, with the data and the edits that showed it: one JSON file each."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

FOLDER = Path(__file__).parent / "regressions"


@dataclass(frozen=True)
class Case:
    name: str
    query: str
    initial: list[str]
    """Statements that fill the tables of `shapes`."""
    batches: list[list[str]]
    """Statements, with a refresh after each batch."""
    why: str = ""

    def save(self, folder: Path = FOLDER) -> Path:
        folder.mkdir(exist_ok=True)
        path = folder / f"{self.name}.json"
        content = {key: value for key, value in asdict(self).items() if key != "name"}
        path.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        return path


def load(folder: Path = FOLDER) -> list[Case]:
    return [
        Case(name=path.stem, **json.loads(path.read_text(encoding="utf-8")))
        for path in sorted(folder.glob("*.json"))
    ]
