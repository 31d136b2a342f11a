"""Groups with merged totals: which are continued, which are evaluated again."""

from __future__ import annotations

from dataclasses import dataclass

from spark_trickle.catalyst.plan import Attribute, Expression, Plan, Planner, output
from spark_trickle.catalyst.totals import RunningTotals


@dataclass(frozen=True)
class Groups:
    """The result of `RunningTotals.merged`. With `hides`, a group may exist that the table does not hold."""

    planner: Planner
    running: RunningTotals
    merged: Plan
    hides: bool

    def continued(self, aggregate: Plan) -> Plan:
        """What the aggregate gives for the groups whose totals tell; a group without rows is gone."""
        conditions = [self.planner.negation(self._unsure)]
        if self.running.grouped:
            none = self.planner.literal(0)
            conditions.append(
                self.planner.less(none, self._columns[len(self.running.keys) + self.running.rows])
            )
        condition = self.planner.all_of(conditions)
        return self.running.continued(aggregate, self.planner.filter(condition, self.merged))

    @property
    def again(self) -> Plan:
        """The groups to evaluate again, by their keys."""
        keys = self._columns[: len(self.running.keys)]
        unsure = self.planner.filter(self._unsure, self.merged)
        return self.planner.project([self.planner.alias(k, f"k{i}") for i, k in enumerate(keys)], unsure)

    @property
    def _columns(self) -> list[Attribute]:
        return output(self.merged)

    @property
    def _is_known(self) -> Expression:
        return self.planner.equal(self._columns[-2], self.planner.literal_int(1))

    @property
    def _unsure(self) -> Expression:
        doubtful = self._columns[-1]
        return (
            self.planner.any_of([doubtful, self.planner.negation(self._is_known)]) if self.hides else doubtful
        )
