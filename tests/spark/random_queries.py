"""Random queries from a seed, nested up to four deep, over the tables of `shapes`.

`generate(seed)` gives a tree; `sql(tree)` its text. Four tables at most are read, so that products stay small.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

from tests.spark.random_ast import (
    Call,
    Column,
    Combined,
    Constants,
    Derived,
    Exploded,
    Expression,
    Group,
    Item,
    Join,
    Literal,
    Query,
    Select,
    Source,
    Subquery,
    Table,
    Top,
    With,
    columns_of,
    leaves,
    walk,
)
from tests.spark.random_expressions import EXACT, NUMERIC, Columns, Expressions
from tests.spark.shapes import TABLES

KINDS = ("INNER",) * 8 + ("LEFT",) * 4 + ("FULL",) * 2 + ("RIGHT", "CROSS", "LEFT SEMI", "LEFT ANTI")
SETS = ("UNION ALL", "UNION", "INTERSECT", "INTERSECT ALL", "EXCEPT", "EXCEPT ALL")
KEYS = ("INT", "STRING", "BIGINT", "DECIMAL", "DOUBLE")


def generate(seed: int) -> Query:
    """The query of a seed. It reads at least one table; constants alone never change."""
    attempts = (Generator(f"{seed}.{attempt}").root() for attempt in itertools.count())
    return next(query for query in attempts if leaves(query))


@dataclass(frozen=True)
class Cte:
    name: str
    columns: tuple[Column, ...]
    cost: int


class Generator:
    """`left` tables may still be read; `depth` counts the queries that may still be nested."""

    def __init__(self, seed: str) -> None:
        self._random = Random(seed)
        self._make = Expressions(self._random)
        self._chance = self._make.chance
        self._left = 4
        self._ctes: list[Cte] = []
        self._columns = self._aliases = 0

    def root(self) -> Query:
        limited = self._chance(0.06)
        query = self._query(self._random.choice((1, 1, 2, 2, 3, 3, 4, 4)), root=not limited)
        if not limited:
            return query
        return Top(query, self._random.randint(1, 6), self._random.choice((0, 0, 1, 2)))

    # Queries

    def _query(self, depth: int, root: bool = False) -> Query:
        kind = self._random.random()
        if depth > 1 and self._left > 1 and kind < 0.18:
            return self._with(depth)
        if depth > 1 and self._left > 1 and kind < 0.36:
            types = self._random.choices(KEYS, (9, 3, 1, 1, 1), k=self._random.choice((1, 1, 2, 2, 3)))
            return self._combined(depth - 1, types)
        if self._chance(0.03):
            return self._global(depth)
        return self._select(depth, root)

    def _with(self, depth: int) -> Query:
        before = self._left
        self._left = self._random.randint(1, self._left - 1)
        kept = self._left
        query = self._query(depth - 1)
        used = kept - self._left
        self._left = before - used
        name = f"w{self._number()}"
        self._ctes.append(Cte(name, columns_of(query), max(1, leaves(query))))
        body = self._query(depth - 1 if depth > 2 else depth)
        self._ctes.pop()
        read = any(isinstance(n, Table) and n.table == name for n in walk(body))
        return With(name, query, body) if read else body

    def _combined(self, depth: int, types: Sequence[str]) -> Query:
        """Two queries that give the same types; sometimes one of them is combined again."""
        left: Query = self._shaped(depth, types)
        if self._chance(0.35) and self._left > 0:
            left = Combined(self._random.choice(SETS), left, self._shaped(depth, types))
        return Combined(self._random.choice(SETS), left, self._shaped(depth, types))

    def _shaped(self, depth: int, types: Sequence[str]) -> Select:
        source = self._source(depth, 1 if self._chance(0.6) else 2)
        columns = columns_of(source)
        found = [self._make.of_type(columns, t) for t in types]
        items = tuple(Item(e, self._name()) for e in found)
        where = self._where(columns, depth, 0.4)
        if self._chance(0.15):
            having = Call("(COUNT(*) >= 1)", (), "BOOLEAN", "having")
            keys = tuple(dict.fromkeys(e for e in found if isinstance(e, Column)))
            if len(keys) == len(found):
                return Select(items, source, where, Group(keys), having if self._chance(0.3) else None)
        return Select(items, source, where, distinct=self._chance(0.2))

    def _global(self, depth: int) -> Select:
        """Aggregates without GROUP BY."""
        source = self._source(depth)
        columns = columns_of(source)
        items = [Item(self._make.aggregate(columns), self._name()) for _ in range(self._random.randint(1, 2))]
        return Select(tuple(items), source, self._where(columns, depth, 0.4))

    def _select(self, depth: int, root: bool) -> Select:
        kept = int(depth > 1 and self._left > 1 and self._chance(0.6))
        self._left -= kept  # for a subquery
        source = self._source(depth)
        self._left += kept
        if self._chance(0.1):
            source = self._exploded(source)
        columns = columns_of(source)
        where = self._where(columns, depth, 0.5)
        kind = self._random.random()
        if kind < 0.33:
            return self._grouped(source, where, depth, root)
        if kind < 0.5:
            return self._windowed(source, where)
        items = [self._item(columns, depth) for _ in range(self._random.randint(1, 4))]
        return Select(tuple(items), source, where, distinct=self._chance(0.2))

    def _item(self, columns: Columns, depth: int) -> Item:
        kind = self._random.random()
        if depth > 1 and self._left > 0 and kind < 0.22:
            found: Expression = self._scalar(columns, depth - 1, self._chance(0.65))
            if kind < 0.07:
                found = Call(
                    "CASE WHEN {0} THEN {1} END",
                    (self._make.predicate(columns, 1), found),
                    found.type,
                    "case",
                )
            return Item(found, self._name())
        if depth > 1 and self._left > 0 and kind < 0.3:
            asked, value = self._asked(columns, depth - 1), self._make.value(columns, 1)
            if kind < 0.26:
                return Item(asked, self._name())
            return Item(Call("CASE WHEN {0} THEN {1} END", (asked, value), value.type, "case"), self._name())
        return Item(self._make.value(columns), self._name())

    def _grouped(self, source: Source, where: Expression | None, depth: int, root: bool) -> Select:
        columns = columns_of(source)
        kind = self._random.choice(("",) * 6 + ("ROLLUP", "CUBE", "GROUPING SETS"))
        keys: list[Expression] = list(
            self._random.sample(columns, min(len(columns), 2 if kind else self._random.randint(1, 2)))
        )
        if not kind and self._chance(0.2):
            keys[0] = self._make.value(columns, 1)
        sets = (
            tuple(self._random.sample([(), (0,), tuple(range(len(keys)))], 2))
            if kind == "GROUPING SETS"
            else ()
        )
        if sets and not all(any(i in chosen for chosen in sets) for i in range(len(keys))):
            sets = (*sets, tuple(range(len(keys))))
        doubles = root and not kind and self._chance(0.8)
        shown = keys if doubles or self._chance(0.8) else keys[: self._random.randint(0, 1)]
        found = [self._make.aggregate(columns, doubles) for _ in range(self._random.randint(1, 3))]
        if kind and isinstance(keys[0], Column) and self._chance(0.5):
            found.append(Call("GROUPING({0})", (keys[0],), "INT", "grouping"))
        items = [Item(e, self._name()) for e in (*shown, *found)]
        having = self._having(columns, depth) if self._chance(0.3) else None
        return Select(tuple(items), source, where, Group(tuple(keys), kind, sets), having)

    def _having(self, columns: Columns, depth: int) -> Expression:
        exact = self._make.column(columns, *EXACT)
        tested = (
            Call("SUM({0})", (exact,), "BIGINT")
            if exact and self._chance(0.5)
            else Call("COUNT(*)", (), "BIGINT")
        )
        if depth > 1 and self._left > 0 and self._chance(0.5):
            return Call(
                "({0} >= {1})",
                (tested, self._scalar((), depth - 1, False, EXACT)),
                "BOOLEAN",
                "having scalar",
            )
        return Call("({0} > {1})", (tested, Literal("1", "INT")), "BOOLEAN", "having")

    def _windowed(self, source: Source, where: Expression | None) -> Select:
        columns = columns_of(source)
        windows = [self._make.window(columns) for _ in range(self._random.randint(1, 2))]
        kept = self._random.sample(columns, self._random.randint(1, min(3, len(columns))))
        renamed = self._chance(0.4)
        shown = [Item(c, self._name() if renamed else c.name) for c in kept]
        items = (*shown, *(Item(e, self._name()) for e in windows))
        qualify = None
        if self._chance(0.35):
            window = items[-1]
            tested = window.expression
            if self._chance(0.6):
                tested = Column(window.name, tested.type)
            passes = Call("({0} <= {1})", (tested, self._make.literal(tested.type)), "BOOLEAN")
            qualify = Call("({0} IS NOT NULL)", (tested,), "BOOLEAN") if self._chance(0.3) else passes
        return Select(items, source, where, qualify=qualify)

    # Conditions and subqueries

    def _where(self, columns: Columns, depth: int, probability: float) -> Expression | None:
        if not self._chance(probability):
            return None
        if depth < 2 or self._left < 1 or self._chance(0.3):
            return self._make.predicate(columns)
        asked = self._asked(columns, depth - 1)
        kind = self._random.random()
        if kind < 0.5:
            return asked
        form = "({0} OR {1})" if kind < 0.75 else "({0} AND {1})" if kind < 0.9 else "({0} OR NOT {1})"
        return Call(form, (self._make.predicate(columns, 1), asked), "BOOLEAN", "logic")

    def _asked(self, columns: Columns, depth: int) -> Expression:
        """A condition with a subquery in it."""
        kind = self._random.random()
        numbers = [c for c in columns if c.type in EXACT]
        if kind < 0.3 and numbers:
            compared = self._scalar(columns, depth, self._chance(0.6), EXACT)
            operator = self._random.choice(("<", "<=", ">", "=", ">=", "<>"))
            return Call(f"({{0}} {operator} {{1}})", (self._random.choice(numbers), compared), "BOOLEAN")
        source = self._source(depth, 1 if self._chance(0.7) else 2)
        inner = columns_of(source)
        where = self._make.predicate(inner, 1) if self._chance(0.4) else None
        if kind < 0.6:
            where = self._both(self._correlation(columns, inner), where) if self._chance(0.85) else where
            word = self._random.choice(("EXISTS", "NOT EXISTS"))
            return Subquery(word, Select((Item(Literal("1", "INT"), self._name()),), source, where))
        where = self._both(self._correlation(columns, inner), where) if self._chance(0.45) else where
        operand = self._random.choice([c for c in columns if c.type != "BOOLEAN"] or columns)
        items = (Item(self._make.of_type(inner, operand.type), self._name()),)
        return Subquery(self._random.choice(("IN", "NOT IN")), Select(items, source, where), operand=operand)

    def _scalar(self, columns: Columns, depth: int, correlated: bool, types: Sequence[str] = ()) -> Subquery:
        """An aggregate, so that it gives one row."""
        source = self._source(depth, 1 if self._chance(0.7) else 2)
        inner = columns_of(source)
        aggregate = self._make.aggregate(inner)
        if types and aggregate.type not in types:
            aggregate = Call("COUNT({0})", (self._random.choice(inner),), "BIGINT", "count")
        where = self._make.predicate(inner, 1) if self._chance(0.3) else None
        if correlated and columns:
            where = self._both(self._correlation(columns, inner, 0.95), where)
        return Subquery("SCALAR", Select((Item(aggregate, self._name()),), source, where), aggregate.type)

    def _correlation(self, outer: Columns, inner: Columns, equality: float = 0.8) -> Expression:
        pairs = [(o, i) for o in outer for i in inner if o.type == i.type]
        pairs = pairs or [(o, i) for o in outer for i in inner if {o.type, i.type} <= set(NUMERIC)]
        if not pairs:
            args = (self._random.choice(outer), self._random.choice(inner))
            return Call("({0} IS NULL OR {1} IS NOT NULL)", args, "BOOLEAN", "correlation")
        whole = [(o, i) for o, i in pairs if o.type == "INT"]
        pair = self._random.choice(whole if whole and self._chance(0.8) else pairs)
        operator = self._random.choice(("=", "=", "=", "<=>")) if self._chance(equality) else "<"
        return Call(f"({{0}} {operator} {{1}})", pair, "BOOLEAN", "correlation")

    def _both(self, one: Expression, other: Expression | None) -> Expression:
        return one if other is None else Call("({0} AND {1})", (one, other), "BOOLEAN", "logic")

    # FROM

    def _source(self, depth: int, most: int = 4) -> Source:
        number = min(self._random.choice((1, 2, 2, 2, 3, 4) if depth == 1 else (1, 1, 1, 2, 2, 2, 3)), most)
        source = self._leaf(depth)
        for _ in range(number - 1):
            if self._left > 0:
                source = self._joined(source, depth)
        return source

    def _leaf(self, depth: int) -> Source:
        fitting = [c for c in self._ctes if c.cost <= self._left]
        if fitting and self._chance(0.7):
            cte = self._random.choice(fitting)
            self._left -= cte.cost
            return Table(cte.name, self._alias(), self._fresh([c.type for c in cte.columns]), True)
        if depth > 1 and self._left > 0 and self._chance(0.6):
            query = self._query(depth - 1)
            return Derived(query, self._alias(), self._fresh([c.type for c in columns_of(query)]))
        if self._left < 1 or self._chance(0.04):
            rows = [(str(self._random.randint(0, 5)), self._make.literal("STRING").text) for _ in range(2)]
            rows.append(("NULL", "'x'"))
            return Constants(tuple(rows), self._alias(), self._fresh(["INT", "STRING"]))
        self._left -= 1
        table = self._random.choice(list(TABLES))
        types = [part.split()[1].split("(")[0] for part in TABLES[table].split(", ")]
        return Table(table, self._alias(), self._fresh(types))

    def _joined(self, left: Source, depth: int) -> Source:
        columns = columns_of(left)
        if depth > 1 and self._chance(0.12):
            return self._lateral(left)
        right = self._leaf(depth)
        if self._left > 0 and self._chance(0.12):
            right = self._joined(right, 1)
        kind = self._random.choice(KINDS)
        if kind == "CROSS":
            return Join(kind, left, right)
        others = columns_of(right)
        shared = [(c, o) for c in columns for o in others if c.type == o.type]
        if shared and not isinstance(right, Join) and self._chance(0.15):
            name, other = self._random.choice(shared)
            renamed = (
                tuple(name if c == other else c for c in right.columns)
                if not isinstance(right, Exploded)
                else ()
            )
            right = type(right)(**{**right.__dict__, "columns": renamed})
            return Join(kind, left, right, using=(name.name,))
        return Join(kind, left, right, self._condition(columns, others))

    def _condition(self, left: Columns, right: Columns) -> Expression:
        equal = self._correlation(left, right, 1)
        both = (*left, *right)
        kind = self._random.random()
        if kind < 0.55:
            return equal
        if kind < 0.75:
            return Call("({0} AND {1})", (equal, self._make.predicate(both, 1)), "BOOLEAN")
        if kind < 0.85:
            return Call("({0} OR {1})", (equal, self._make.predicate(both, 0)), "BOOLEAN", "theta")
        less = self._correlation(left, right, 0)
        return Call("({0} AND {1})", (less, self._make.predicate(both, 0)), "BOOLEAN", "theta")

    def _lateral(self, left: Source) -> Source:
        outer = columns_of(left)
        source = self._leaf(1)
        inner = columns_of(source)
        where = self._correlation(outer, inner, 0.95)
        if self._chance(0.5):
            items = [Item(self._make.aggregate(inner), self._name())]
        else:
            items = [
                Item(self._make.value(inner, 1), self._name()),
                Item(self._make.value((*outer, *inner), 1), self._name()),
            ]
        query = Select(tuple(items), source, where)
        right = Derived(query, self._alias(), self._fresh([c.type for c in columns_of(query)]), True)
        return (
            Join("LEFT", left, right, Literal("TRUE", "BOOLEAN"))
            if self._chance(0.4)
            else Join("CROSS", left, right)
        )

    def _exploded(self, source: Source) -> Source:
        columns = columns_of(source)
        first = self._random.choice([c for c in columns if c.type != "BOOLEAN"] or columns)
        args = (first, self._make.of_type(columns, first.type))
        array = Call("array({0}, {1})", args, first.type)
        return Exploded(source, array, self._alias(), Column(self._name(), first.type), self._chance(0.3))

    # Names

    def _number(self) -> int:
        self._aliases += 1
        return self._aliases

    def _alias(self) -> str:
        return f"t{self._number()}"

    def _name(self) -> str:
        self._columns += 1
        return f"c{self._columns}"

    def _fresh(self, types: Sequence[str]) -> tuple[Column, ...]:
        return tuple(Column(self._name(), t) for t in types)
