"""What a Sort sorts by, as Spark compares it."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812 - the name everybody knows

from spark_trickle.catalyst.plan import Expression, Plan, items, kind_of


@dataclass(frozen=True)
class SortKey:
    """One expression of an ORDER BY."""

    value: Expression
    ascending: bool
    nulls_first: bool

    def before(self, one: Column, two: Column) -> Column:
        """True where `one` comes before `two`; never NULL."""
        smaller = one < two if self.ascending else one > two
        missing, present = (one, two) if self.nulls_first else (two, one)
        return F.coalesce(smaller, F.lit(False)) | (missing.isNull() & present.isNotNull())

    def not_before(self, column: Column, literal: Column) -> Column:
        """True where a column does not come before a value that is not NULL, in a form that scans understand."""
        met = column >= literal if self.ascending else column <= literal
        return met if self.nulls_first else met | column.isNull()

    def not_after(self, column: Column, literal: Column) -> Column:
        """The same for the other side."""
        met = column <= literal if self.ascending else column >= literal
        return met | column.isNull() if self.nulls_first else met

    def reversed(self, column: Column) -> Column:
        """The column as a sort expression of the opposite order."""
        if self.ascending:
            return column.desc_nulls_last() if self.nulls_first else column.desc_nulls_first()
        return column.asc_nulls_last() if self.nulls_first else column.asc_nulls_first()


def sort_keys(plan: Plan) -> list[SortKey]:
    """The keys of the first Sort at or below a plan."""
    while kind_of(plan) != "Sort":
        plan = plan.child()
    return [
        SortKey(o.child(), kind_of(o.direction()) == "Ascending", kind_of(o.nullOrdering()) == "NullsFirst")
        for o in items(plan.order())
    ]
