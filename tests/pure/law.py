"""The law: the change of a query is its new answer minus its old answer, and applying it gives the new answer."""

import itertools
from collections import Counter
from collections.abc import Iterator, Set
from dataclasses import replace

from spark_trickle.algebra import restrict
from spark_trickle.algebra.relations import (
    NEW,
    OLD,
    At,
    InnerJoin,
    LookupJoin,
    Matching,
    Node,
    Relation,
    Scan,
)
from spark_trickle.algebra.repeatable import repeatability
from spark_trickle.algebra.traverse import sources_of, walk
from spark_trickle.incremental import differentiate, maintain, prune
from spark_trickle.incremental.maintain import ByKey, ByWeight, Iterate, Maintenance, TopRows
from tests.pure.cases import Case
from tests.pure.interpreter import Bag, Database, Interpreter, Row, add, minus, net, pick, places_of


def difference(case: Case) -> Bag:
    full = Interpreter(case.database)
    return minus(full.evaluate(case.plan, NEW), full.evaluate(case.plan, OLD))


def check_change(case: Case) -> None:
    """The differentiated plan evaluates to new − old, whether or not parts of it are netted or narrowed on the way."""
    for change in changes(case):
        for netting, narrowing in ((False, True), (True, True), (False, False)):
            run = Interpreter(case.database, netting=netting, narrowing=narrowing)
            assert net(run.evaluate(change)) == difference(case)


def changes(case: Case) -> list[Node]:
    """In the short form and in the one without mixed pairs."""
    return [differentiate.differentiate(case.plan, only_real_pairs=real) for real in (False, True)]


def check_pruned_change(case: Case) -> None:
    """Without the branches of unchanged sources it evaluates to the same, whether keys or all rows are read."""
    for change, small in itertools.product(changes(case), small_sources(case)):
        pruned = prune.Pruner(case.changed, small).node(change)
        found = Interpreter(case.database).evaluate(pruned) if pruned else Counter()
        assert net(found) == difference(case)


def small_sources(case: Case) -> list[Set[str]]:
    """None, each alone, all."""
    every = sources_of(case.plan)
    return [frozenset(), *({source} for source in sorted(every)), every]


def check_pairs(case: Case) -> None:
    """In the form without mixed pairs, rows meet that also meet when the query is evaluated, and no others."""
    plan = maintain.maintain(case.plan, only_real_pairs=True)
    if isinstance(plan, ByWeight | ByKey):
        stored = Interpreter(case.database).evaluate(case.plan, OLD)
        apply(plan, case, stored, run=Chaperone(case))


class Chaperone(Interpreter):
    """Lets two rows meet in a join only if they are there together in one of the versions."""

    def __init__(self, case: Case) -> None:
        super().__init__(case.database)
        joins = [node for node in walk(case.plan) if isinstance(node, InnerJoin | LookupJoin)]
        self._sides = {id(join.operator): (join.left, join.right) for join in joins}
        self._full = Interpreter(case.database)

    def meet(self, join: InnerJoin | LookupJoin, row: Row, other: Row) -> bool:
        met = super().meet(join, row, other)
        left, right = self._sides[id(join.operator)]
        ends = (OLD, NEW)
        together = any(
            row in self._full.evaluate(left, v) and other in self._full.evaluate(right, v) for v in ends
        )
        assert together or not met, "two rows that were never there together"
        return met


def check_maintained(case: Case) -> None:
    """The stored old answer becomes the new answer, up to columns no two evaluations agree on."""
    chosen = (maintain.maintain(case.plan, only_real_pairs=real) for real in (False, True))
    plans = [form for plan in chosen for form in forms_of(plan)]
    pruners = [None, *(prune.Pruner(case.changed, small) for small in small_sources(case))]
    for plan, pruner in itertools.product(plans, pruners):
        stored = Interpreter(case.database).evaluate(case.plan, OLD)
        refreshed = apply(plan, case, stored, pruner)
        assert all(count > 0 for count in refreshed.values())
        expected = Interpreter(case.database).evaluate(case.plan, NEW)
        assert certain(case.plan, refreshed) == certain(case.plan, expected)


def forms_of(plan: Maintenance) -> Iterator[Maintenance]:
    """The plan, and the same by fewer keys."""
    yield plan
    if isinstance(plan, ByKey) and plan.coarsely:
        yield plan.coarsely
    if isinstance(plan, TopRows) and isinstance(plan.competing, ByKey) and plan.competing.coarsely:
        yield replace(plan, competing=plan.competing.coarsely)


def check_restriction(case: Case) -> None:
    """Keys pushed down drop no row that the keys ask for."""
    pairs = tuple(enumerate(case.on))
    for version in (OLD, NEW):
        run = Interpreter(case.database)
        wanted = run.evaluate(Matching(At(case.plan, version), pairs, case.keys))
        pushed = restrict.restrict(case.plan, version, dict(pairs), case.keys)
        assert run.evaluate(Matching(pushed, pairs, case.keys)) == wanted
        assert run.evaluate(restrict.matching(case.plan, version, case.on, case.keys)) == wanted


def check_all(case: Case) -> None:
    for check in (check_change, check_pruned_change, check_maintained, check_pairs, check_restriction):
        check(case)


def apply(
    plan: Maintenance,
    case: Case,
    stored: Bag,
    pruner: prune.Pruner | None = None,
    run: Interpreter | None = None,
) -> Bag:
    """The stored table after a refresh."""
    run = run or Interpreter(case.database)
    match plan:
        case ByWeight(change=change):
            kept = pruner.node(change) if pruner else change
            result = Counter(stored)
            add(result, run.evaluate(kept) if kept else Counter())
            return net(result)
        case ByKey(keys=keys, columns=columns, new=new):
            found = pruner.keys(keys) if pruner else keys
            if found is None:
                return stored
            added, places = pruner.node(new) if pruner else new, places_of(case.plan, columns)
            touched = run.keys(found)
            result = Counter({row: n for row, n in stored.items() if pick(row, places) not in touched})
            add(result, run.evaluate(added))
            return result
        case TopRows(top=top, competing=competing):
            below = replace(case, plan=top.child)
            rows = apply(competing, below, run.evaluate(top.child, OLD), pruner, run)
            return Interpreter(case.database | {"new": (rows, rows)}).evaluate(
                maintain._rebuild(case.plan, top, replace(top, child=Scan(top.columns, "new", top.operator))),
                NEW,
            )
        case Iterate():
            result = Counter(stored)
            add(result, iterated(plan, case, stored, pruner is not None))
            return net(result)
    return run.evaluate(plan.query)


def iterated(plan: Iterate, case: Case, stored: Bag, pruned: bool) -> Bag:
    """The change of a recursive query, derived step by step."""
    itself = Counter()
    places = places_of(case.plan, plan.places)
    for row, n in stored.items():
        itself[pick(row, places)] += n
    found = change_with(
        plan, [plan.base, plan.step], case.database, itself, itself, case.changed if pruned else None
    )
    now = {name: (new, new) for name, (_, new) in case.database.items()}
    total: Bag = Counter()
    while found:
        add(total, found)
        found = change_with(plan, [plan.step], now, Counter(), found, {plan.itself} if pruned else None)
    return change_with(plan, [plan.result], now, Counter(), total, None)


def change_with(
    plan: Iterate, changes: list[Node], database: Database, before: Bag, after: Bag, changed: Set[str] | None
) -> Bag:
    run = Interpreter(database | {plan.itself: (before, after)})
    result: Bag = Counter()
    for change in changes:
        kept = prune.Pruner(changed).node(change) if changed is not None else change
        add(result, run.evaluate(kept) if kept else Counter())
    return net(result)


def certain(plan: Relation, bag: Bag) -> Bag:
    """The bag with the columns hidden that two evaluations may compute differently.

    Where even the rows may differ there is nothing to compare: such a query is recomputed, or its rows are
    replaced key by key.
    """
    doubtful = repeatability(plan)
    if doubtful.rows:
        assert isinstance(maintain.maintain(plan), maintain.Recompute | maintain.ByKey)
        return Counter()
    shown = [i for i, column in enumerate(plan.columns) if column.id not in doubtful.columns]
    result: Bag = Counter()
    for row, count in bag.items():
        result[pick(row, shown)] += count
    return result
