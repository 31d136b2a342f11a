"""A random plan with a random database: sources have few distinct values, many NULLs and duplicates."""

from collections import Counter
from dataclasses import dataclass
from random import Random

from hypothesis import strategies as st

from spark_trickle.algebra.relations import NEW, At, KeysOf, Relation, Signed
from spark_trickle.algebra.render import render
from tests.pure.interpreter import Bag, Database
from tests.pure.plans import SOURCES, Plans, random_row


@dataclass(frozen=True, eq=False)
class Case:
    """A plan, a database with an old and a new state, and a key set for some of the plan's columns."""

    plan: Relation
    database: Database
    on: tuple[int, ...]
    keys: KeysOf

    @property
    def changed(self) -> frozenset[str]:
        return frozenset(name for name, (old, new) in self.database.items() if old != new)

    def __repr__(self) -> str:
        states = [f"{name}: {dict(old)} -> {dict(new)}" for name, (old, new) in self.database.items()]
        return "\n".join(["", render(self.plan), *states])


def cases(*, unrepeatable: bool = False) -> st.SearchStrategy[Case]:
    return st.randoms(use_true_random=False).map(lambda rng: random_case(rng, unrepeatable=unrepeatable))


def random_case(rng: Random, *, unrepeatable: bool = False) -> Case:
    make = Plans(rng, unrepeatable=unrepeatable)
    plan = make.relation(depth=rng.choice([1, 2, 2, 3, 3, 4]), leaves=rng.choice([1, 2, 2, 3, 4]))
    on = tuple({c.id: None for c in make.some(plan.columns)})
    keys = make.constant(len(on))
    part = (Signed(At(keys, NEW), +1), tuple(c.id for c in keys.columns))
    return Case(plan, random_database(rng), on, KeysOf((part,)))


def random_database(rng: Random) -> Database:
    return {name: random_states(rng) for name in SOURCES}


def random_states(rng: Random) -> tuple[Bag, Bag]:
    """Most sources change a little, some not at all, some altogether."""
    old = random_bag(rng, rng.choice([0, 3, 4, 5, 5]))
    if rng.random() < 0.25:
        return old, old
    kept = Counter(row for row in old.elements() if rng.random() < 0.6)
    return old, kept + random_bag(rng, rng.choice([0, 1, 2]))


def random_bag(rng: Random, size: int) -> Bag:
    rows = [random_row(rng, 2) for _ in range(size)]
    return Counter(row for row in rows for _ in range(rng.choice([1, 1, 2])))
