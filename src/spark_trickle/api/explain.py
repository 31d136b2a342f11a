"""What would happen, and why: the query's plan, the plan of its change, the decision."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from spark_trickle.algebra.relations import Loop, Relation, Scan, Top, Whole
from spark_trickle.algebra.render import render
from spark_trickle.algebra.repeatable import repeatability
from spark_trickle.algebra.traverse import sources_of, walk
from spark_trickle.incremental.maintain import (
    ByKey,
    ByWeight,
    Iterate,
    Recompute,
    TopRows,
    Totals,
    reason_of,
    recomputed_parts,
)
from spark_trickle.names import shown
from spark_trickle.refresh.choose import Decision

if TYPE_CHECKING:
    from spark_trickle.catalyst.definition import Definition

_KIND = {
    "Scan": "its change feed or the files that differ",
    "RowWise": "applied to the changed rows",
    "Concat": "changes added up",
    "InnerJoin": "changed rows joined with the other side",
    "LookupJoin": "rows that see a changed partner looked up again",
    "PerKey": "touched keys evaluated again",
    "Whole": "evaluated as a whole",
    "Top": "merged into the stored first rows",
    "Loop": "derived from the stored rows",
}


@dataclass(frozen=True, slots=True)
class Explanation:
    """The answer of `explain`; print it."""

    support: str
    """incremental, partly recomputed, or recomputed"""
    plan: str
    change_plan: str
    operators: tuple[str, ...]
    notes: tuple[str, ...]
    decision: Decision | None = None

    def __str__(self) -> str:
        parts = [f"Support: {self.support}"]
        if self.decision:
            parts.append(f"Next refresh: {self.decision.action.value}, because {self.decision.reason}")
        parts += [f"Note: {note}" for note in self.notes]
        parts.append("Operators:\n" + _indented("\n".join(self.operators)))
        parts.append("Plan:\n" + _indented(self.plan))
        parts.append("Change plan:\n" + _indented(self.change_plan))
        return "\n\n".join(parts)


def explain_definition(
    definition: Definition,
    sizes: Mapping[str, int],
    decision: Decision | None = None,
    notes: tuple[str, ...] = (),
) -> Explanation:
    """`sizes`: bytes of each source, by name; `notes`: what else is to be said."""
    parts = recomputed_parts(definition.relation, definition.maintenance)
    support = (
        f"recomputed: {definition.maintenance.reason}{_where(definition.maintenance.position)}"
        if isinstance(definition.maintenance, Recompute)
        else f"partly recomputed: {'; '.join(sorted({_why(p) for p in parts}))}"
        if parts
        else "incremental"
    )
    return Explanation(
        support,
        render(definition.relation),
        _change_plan(definition),
        _operators(definition.relation),
        (*notes, *_cost(definition, parts, sizes), *_notes(definition)),
        decision,
    )


def _change_plan(definition: Definition) -> str:
    maintenance = definition.maintenance
    match maintenance:
        case ByWeight(change=change):
            return "add this change to the table:\n" + render(change)
        case ByKey(new=new):
            on = _touched(definition.relation, maintenance)
            return f"replace the table's rows with touched {on} by:\n" + render(new)
        case Totals(change=change):
            return "add the totals of this change to the stored ones:\n" + render(change)
        case TopRows(top=top, competing=competing):
            return _merged(top, competing)
        case Iterate(base=base, step=step):
            first = "derive from this change and from the stored rows, until nothing is added:\n"
            return first + render(base) + "\n" + render(step)
        case Recompute(query=query):
            return "apply the difference between the table and:\n" + render(query)


def _merged(top: Top, competing: ByWeight | ByKey) -> str:
    into, unless = "into the stored first rows", "read on only if they are too few"
    match competing:
        case ByWeight(change=change):
            return f"merge this change {into}, {unless}:\n{render(change)}"
        case ByKey(new=new):
            return f"merge these rows {into} without touched {_touched(top, competing)}, {unless}:\n{render(new)}"


def _touched(relation: Relation, by_key: ByKey) -> str:
    """The key columns by which rows are replaced."""
    names = {c.id: c.name for c in relation.columns}
    every = f"[{', '.join(names[c] for c in by_key.columns)}]"
    if by_key.coarsely is None:
        return every
    some = ", ".join(names[c] for c in by_key.coarsely.columns)
    return f"{every}, or [{some}] as long as that is almost unique,"


def _operators(relation: Relation) -> tuple[str, ...]:
    counts: Counter[str] = Counter()
    for node in walk(relation):
        what = "Scan" if isinstance(node, Scan) else node.operator.label.split(" ")[0]
        counts[f"{type(node).__name__:<10} {what:<14} {_KIND[type(node).__name__]}"] += 1
    return tuple(f"{count} × {line}" for line, count in sorted(counts.items()))


def _cost(definition: Definition, parts: Sequence[Relation], sizes: Mapping[str, int]) -> tuple[str, ...]:
    """What has to be read for the parts that are evaluated in full."""
    whole = [definition.relation] if isinstance(definition.maintenance, Recompute) else parts
    names = sorted(frozenset[str]().union(*map(sources_of, whole)) & sizes.keys())
    listed = ", ".join(f"`{shown(name)}` ({_size(sizes[name])})" for name in names)
    return (f"evaluating in full reads {listed}",) if names else ()


def _size(count: int) -> str:
    size, units = float(count), iter(("bytes", "KiB", "MiB", "GiB", "TiB"))
    unit = next(units)
    while size >= 1024 and unit != "TiB":
        size, unit = size / 1024, next(units)
    return f"{size:.0f} {unit}" if unit == "bytes" else f"{size:.1f} {unit}"


def _notes(definition: Definition) -> tuple[str, ...]:
    notes = []
    doubtful = repeatability(definition.relation).columns
    names = [c.name for c in definition.relation.columns if c.id in doubtful]
    if names:
        listed = ", ".join(f"`{n}`" for n in names)
        notes.append(f"two evaluations may compute {listed} differently; stored values are compared by key")
    notes += [f"{what}, which the policy allows" for what in definition.volatile]
    if definition.uses_time:
        notes.append(
            "time functions give the time of the refresh; every refresh looks for rows that time has moved"
        )
    if definition.hidden.fields:
        notes.append(
            "the table has a hidden column `__st` with columns that refreshes need and the query does not project"
        )
    return tuple(notes)


def _why(part: Whole | Top | Loop) -> str:
    return reason_of(part) + _where(part.operator.position)


def _where(position: tuple[int, int] | None) -> str:
    """The place in the text; columns are counted from one."""
    return f" (line {position[0]}, column {position[1] + 1})" if position else ""


def _indented(text: str) -> str:
    return "\n".join("  " + line for line in text.split("\n"))
