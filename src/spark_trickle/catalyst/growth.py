"""Of which inputs an operator only ever wants more: another input row never takes an output row away."""

from __future__ import annotations

from spark_trickle.catalyst.plan import Plan, children, kind_of

_JOINS = {
    "Inner": {0, 1},
    "Cross": {0, 1},
    "LeftSemi": {0, 1},
    "LeftOuter": {0},
    "LeftAnti": {0},
    "LeftSingle": {0},
    "ExistenceJoin": {0},
}
_OTHERS = {
    "Distinct": {0},
    "Except": {0},
    "Expand": {0},
    "Filter": {0},
    "Generate": {0},
    "Intersect": {0, 1},
    "Project": {0},
    "Sort": {0},
}


def grows_with(plan: Plan) -> frozenset[int]:
    """The positions of such inputs; an operator that is not known has none."""
    kind = kind_of(plan)
    if kind == "Join":
        return frozenset(_JOINS.get(kind_of(plan.joinType()), ()))
    if kind == "Union":
        return frozenset(range(len(children(plan))))
    return frozenset(_OTHERS.get(kind, ()))
