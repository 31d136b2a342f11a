"""The views a query reads, by their texts: a view may be redefined without any table changing."""

from __future__ import annotations

from spark_trickle.catalyst.analyze import all_plans
from spark_trickle.catalyst.plan import Plan, Planner, kind_of


def view_texts(planner: Planner, plan: Plan) -> dict[str, str]:
    """Every permanent view in an analyzed plan, with the text Spark has for it now."""
    names = {
        str(node.desc().identifier().quotedString()) for node in all_plans(plan) if kind_of(node) == "View"
    }
    return {name: planner.view_text(name) for name in names}
