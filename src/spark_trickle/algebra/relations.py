"""The nine kinds of relation, and the change nodes that the rules build from them.

A relation evaluates to a bag of rows; a change evaluates to rows with a signed integer weight.
Nodes are compared and memoised by identity: two equal-looking nodes are two nodes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from spark_trickle.algebra.comparisons import Comparison


@dataclass(frozen=True, slots=True)
class Column:
    """One output column. The id is the planner's: it stays the same in every version of a node."""

    id: int
    name: str
    type: str
    comparable: bool = True
    """SQL equality is defined on the type, so the column may be a key."""


@dataclass(frozen=True, slots=True, eq=False)
class Operator:
    """What the calculus may know of an operator; the payload itself is opaque to every rule."""

    payload: object
    label: str
    passes: Mapping[int, int] = field(default_factory=dict)
    """Output columns that carry an input column unchanged."""
    reads: Mapping[int, frozenset[int]] = field(default_factory=dict)
    """Input columns from which an output column is computed."""
    decides: frozenset[int] = frozenset()
    """Input columns that decide which rows come out, or which rows meet in a join of any kind."""
    unrepeatable: frozenset[int] = frozenset()
    """Output columns that may differ between two evaluations on equal input."""
    keeps_rows: bool = False
    """Exactly one row comes out for each row that goes in, or for each left row of a join."""
    drops_rows: bool = False
    """At most one row comes out for each row that goes in."""
    position: tuple[int, int] | None = None
    """Line and column in the defining query, where the planner knows it."""
    grows_with: frozenset[int] = frozenset()
    """The inputs of which another row never takes an output row away."""


@dataclass(frozen=True, slots=True, eq=False)
class Scan:
    """A source table."""

    columns: tuple[Column, ...]
    source: str
    operator: Operator
    only: tuple[Comparison, ...] = ()
    """Conditions that the relation above asks of every row: those that fail one may be left out."""


@dataclass(frozen=True, slots=True, eq=False)
class RowWise:
    """f(R) where every output row comes from one input row: project, filter, generate, expand, sort."""

    columns: tuple[Column, ...]
    child: Node
    operator: Operator


@dataclass(frozen=True, slots=True, eq=False)
class Concat:
    """UNION ALL; children correspond to the output by position."""

    columns: tuple[Column, ...]
    children: tuple[Node, ...]
    operator: Operator


@dataclass(frozen=True, slots=True, eq=False)
class InnerJoin:
    """L ⋈ R; `keys` are the pairs of columns its condition equates, if any."""

    columns: tuple[Column, ...]
    left: Node
    right: Node
    keys: tuple[tuple[int, int], ...]
    operator: Operator


@dataclass(frozen=True, slots=True, eq=False)
class LookupJoin:
    """J(L, R), linear in L: every left row looks at the right side and yields its own output rows."""

    columns: tuple[Column, ...]
    left: Node
    right: Node
    keys: tuple[tuple[int, int], ...]
    operator: Operator


@dataclass(frozen=True, slots=True, eq=False)
class PerKey:
    """Q whose output for a key depends only on the input rows of that key; `keys[i]` belong to child i."""

    columns: tuple[Column, ...]
    children: tuple[Node, ...]
    keys: tuple[tuple[int, ...], ...]
    operator: Operator

    def __post_init__(self) -> None:
        if len(self.children) != len(self.keys) or len({len(k) for k in self.keys}) != 1:
            raise ValueError("a PerKey needs equally many key columns for each of its children")
        if not self.keys[0]:
            raise ValueError("a PerKey without key columns is a Whole")


@dataclass(frozen=True, slots=True, eq=False)
class Whole:
    """Q of which nothing is known but its inputs; with no children, a constant."""

    columns: tuple[Column, ...]
    children: tuple[Node, ...]
    operator: Operator
    reason: str


@dataclass(frozen=True, slots=True, eq=False)
class Top:
    """The rows of the child from `offset` on, at most `limit` of them, in an order that its operator knows."""

    columns: tuple[Column, ...]
    child: Relation
    limit: int | None
    offset: int
    operator: Operator


@dataclass(frozen=True, slots=True, eq=False)
class Recursion:
    """R = base + step(R), linear in R, which the step reads as the source `itself`.

    The last column of R counts levels from one; a query with more than `most_levels` fails, if that is not negative.
    """

    base: Relation
    step: Relation
    itself: str
    most_levels: int = -1


@dataclass(frozen=True, slots=True, eq=False)
class Loop:
    """A recursive query over its inputs; `recursion` takes it apart, unless `reason` says why that cannot be."""

    columns: tuple[Column, ...]
    children: tuple[Node, ...]
    operator: Operator
    recursion: Recursion | None = None
    reason: str = ""


class Version(Enum):
    """The two ends of a refresh interval."""

    OLD = "old"
    NEW = "new"


OLD, NEW = Version.OLD, Version.NEW


@dataclass(frozen=True, slots=True, eq=False)
class Changes:
    """What changed in a source: its rows with weights, netted."""

    scan: Scan

    @property
    def columns(self) -> tuple[Column, ...]:
        return self.scan.columns


@dataclass(frozen=True, slots=True, eq=False)
class At:
    """A relation evaluated on one version of all its sources."""

    relation: Node
    version: Version

    @property
    def columns(self) -> tuple[Column, ...]:
        return self.relation.columns


@dataclass(frozen=True, slots=True, eq=False)
class KeysOf:
    """The distinct keys found in several changes, each with its own columns for them."""

    parts: tuple[tuple[Node, tuple[int, ...]], ...]


@dataclass(frozen=True, slots=True, eq=False)
class Matching:
    """The rows whose `on` columns are found in `keys` (null-safe). `on` pairs a key position with a column."""

    child: Node
    on: tuple[tuple[int, int], ...]
    keys: KeysOf
    needed: bool = True
    """Otherwise it only saves reading: whoever reads the rows drops the others, so it may be left out."""

    @property
    def columns(self) -> tuple[Column, ...]:
        return self.child.columns


@dataclass(frozen=True, slots=True, eq=False)
class Partners:
    """The rows of `left` that the condition of `join` connects with some row of a change to its right.

    With `swayed`, others than those may be left out about which that filter above the join decides otherwise with the
    new right side than with the old one, as `sides` has them. `left` then need not have all columns of the join's own.
    """

    left: Node
    change: Node
    join: LookupJoin
    swayed: RowWise | None = None
    sides: tuple[Node, ...] = ()

    @property
    def columns(self) -> tuple[Column, ...]:
        return self.left.columns


@dataclass(frozen=True, slots=True, eq=False)
class Held:
    """The same rows, evaluated once and kept at hand if they are few; `keys` narrow them down, if given."""

    child: Node
    keys: KeysOf | None = None

    @property
    def columns(self) -> tuple[Column, ...]:
        return self.child.columns


@dataclass(frozen=True, slots=True, eq=False)
class Signed:
    """A relation as a change: every row once with the sign, or as often as it is there."""

    child: Node
    sign: int

    @property
    def columns(self) -> tuple[Column, ...]:
        return self.child.columns


@dataclass(frozen=True, slots=True, eq=False)
class Sum:
    """Changes added up; all have the same columns."""

    changes: tuple[Node, ...]

    @property
    def columns(self) -> tuple[Column, ...]:
        return self.changes[0].columns


@dataclass(frozen=True, slots=True, eq=False)
class Net:
    """A change with the weights of identical rows summed and zeros dropped."""

    change: Node

    @property
    def columns(self) -> tuple[Column, ...]:
        return self.change.columns


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """The rows that a netted change adds, or those that it removes, with their weights."""

    change: Node
    sign: int

    @property
    def columns(self) -> tuple[Column, ...]:
        return self.change.columns


@dataclass(frozen=True, slots=True, eq=False)
class Kept:
    """The rows of a relation without those that a change removes."""

    rows: Node
    removed: Node

    @property
    def columns(self) -> tuple[Column, ...]:
        return self.rows.columns


Relation = Scan | RowWise | Concat | InnerJoin | LookupJoin | PerKey | Whole | Top | Loop
Node = Relation | Changes | At | Matching | Partners | Held | Signed | Sum | Net | Part | Kept
