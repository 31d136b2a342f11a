"""What a version of a stream table has read: the exact version of every source."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime


@dataclass(frozen=True, slots=True)
class SourceVersion:
    """One version of one table. The id tells a re-created table from the one it replaced."""

    table_id: str
    version: int

    def __post_init__(self) -> None:
        if self.version < 0:
            raise ValueError(f"a table version is never negative, got {self.version}")


@dataclass(frozen=True, slots=True)
class Frontier:
    """What was read, by name: `inputs` directly; below, transitively, `bases` and, `through` them, stream tables."""

    inputs: Mapping[str, SourceVersion] = field(default_factory=dict)
    bases: Mapping[str, SourceVersion] = field(default_factory=dict)
    data_timestamp: datetime | None = None
    through: Mapping[str, SourceVersion] = field(default_factory=dict)

    @property
    def ancestors(self) -> Mapping[str, SourceVersion]:
        """Everything below that two readers must agree on."""
        return {**self.through, **self.bases}

    def to_json(self) -> str:
        def versions(of: Mapping[str, SourceVersion]) -> dict[str, list[str | int]]:
            return {name: [v.table_id, v.version] for name, v in sorted(of.items())}

        stamp = self.data_timestamp.isoformat() if self.data_timestamp else None
        return json.dumps(
            {
                "inputs": versions(self.inputs),
                "bases": versions(self.bases),
                "data_timestamp": stamp,
                "through": versions(self.through),
            }
        )

    @classmethod
    def from_json(cls, text: str) -> Frontier:
        raw = json.loads(text)

        def versions(of: dict[str, list[str | int]]) -> dict[str, SourceVersion]:
            return {name: SourceVersion(str(v[0]), int(v[1])) for name, v in of.items()}

        stamp = raw.get("data_timestamp")
        return cls(
            versions(raw["inputs"]),
            versions(raw["bases"]),
            datetime.fromisoformat(stamp) if stamp else None,
            versions(raw.get("through", {})),
        )
