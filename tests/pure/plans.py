"""Random plans over three sources.

Columns keep their ids as the planner does: a column that is only passed on is the same column. Every Operator
says truthfully what it passes, reads and decides by, because pushing keys down relies on it.
"""

import itertools
from collections import Counter
from dataclasses import replace
from random import Random

from spark_trickle.algebra.comparisons import Check, Comparison
from spark_trickle.algebra.relations import (
    Column,
    Concat,
    InnerJoin,
    LookupJoin,
    Loop,
    Operator,
    PerKey,
    Recursion,
    Relation,
    RowWise,
    Scan,
    Top,
    Whole,
)
from tests.pure import payloads
from tests.pure.interpreter import Join, Row, places_of

SOURCES = ("r", "s", "t")


def random_row(rng: Random, width: int) -> Row:
    return tuple(rng.choice([None, None, 0, 1, 1, 2]) for _ in range(width))


class Plans:
    """Makes one random plan; column ids count up."""

    def __init__(self, rng: Random, *, unrepeatable: bool = False) -> None:
        self.rng = rng
        self.unrepeatable = unrepeatable
        self._ids = itertools.count(1)

    def relation(self, depth: int, leaves: int) -> Relation:
        if depth <= 0:
            return self.scan() if self.rng.random() < 0.95 else self.constant(2)
        one_input = [
            self.row_wise,
            self.row_wise,
            self.group,
            self.group,
            self.distinct,
            self.window,
            self.whole,
        ]
        two_inputs = [
            self.concat,
            self.inner_join,
            self.lookup_join,
            self.lookup_join,
            self.set_operation,
            self.compared,
        ]
        if leaves == 1 or self.rng.random() < 0.3:
            return self.rng.choice(one_input)(self.relation(depth - 1, leaves))
        left = self.rng.randint(1, leaves - 1)
        parts = self.relation(depth - 1, left), self.relation(depth - 1, leaves - left)
        return self.rng.choice(two_inputs)(*parts)

    def column(self, name: str = "c") -> Column:
        number = next(self._ids)
        return Column(number, f"{name}{number}", "int")

    def some(self, columns: tuple[Column, ...]) -> list[Column]:
        return self.rng.sample(columns, self.rng.randint(1, min(2, len(columns))))

    def two(self, child: Relation) -> list[Column]:
        """Two columns, different ones if there are two."""
        first, second, *_ = self.rng.sample(child.columns, len(child.columns)) * 2
        return [first, second]

    def scan(self) -> Scan:
        source = self.rng.choice(SOURCES)
        return Scan((self.column("a"), self.column("b")), source, Operator(None, source))

    def constant(self, width: int) -> Whole:
        bag = Counter(random_row(self.rng, width) for _ in range(self.rng.randint(1, 3)))
        columns = tuple(self.column("k") for _ in range(width))
        return Whole(columns, (), Operator(lambda _: bag, "VALUES"), "it is a constant")

    def row_wise(self, child: Relation) -> RowWise:
        return self.rng.choice([self.project, self.filter, self.explode, self.expand])(child)

    def project(self, child: Relation) -> RowWise:
        """Columns kept, dropped, renamed, repeated, replaced by a constant and computed."""
        columns, passes, reads, values = [], {}, {}, []
        for inner in self.rng.choices(child.columns, k=self.rng.randint(1, 3)):
            (place,), how = places_of(child, [inner.id]), self.rng.choice("kkrcx")
            columns.append(inner if how == "k" else self.column())
            if how != "c":
                reads[columns[-1].id] = frozenset([inner.id])
            if how in "kr":
                passes[columns[-1].id] = inner.id
            values.append((how, place))

        def run(row: Row) -> list[Row]:
            computed = {"c": lambda _: 1, "x": lambda v: None if v is None else v // 2}
            return [tuple(computed.get(how, lambda v: v)(row[place]) for how, place in values)]

        return RowWise(tuple(columns), child, Operator(run, "SELECT", passes, reads, keeps_rows=True))

    def filter(self, child: Relation) -> RowWise:
        column = self.rng.choice(child.columns)
        (place,), wanted = places_of(child, [column.id]), random_row(self.rng, 3)
        operator = Operator(
            lambda row: [row] if row[place] in wanted else [],
            f"WHERE {column.name} IN {wanted}",
            same(child),
            decides=frozenset([column.id]),
            drops_rows=True,
        )
        if isinstance(child, Scan) and None not in wanted:
            child = replace(child, only=(Comparison(column.name, Check.ONE_OF, wanted),))
        return RowWise(child.columns, child, operator)

    def explode(self, child: Relation) -> RowWise:
        column, out = self.rng.choice(child.columns), self.column()
        (place,), used = places_of(child, [column.id]), frozenset([column.id])
        operator = Operator(payloads.exploded(place), "EXPLODE", same(child), {out.id: used}, used)
        return RowWise((*child.columns, out), child, operator)

    def expand(self, child: Relation) -> RowWise:
        """Every row twice, once with its first column replaced by NULL, as grouping sets do."""
        first, out = child.columns[0], self.column()
        passes = {c.id: c.id for c in child.columns[1:]}
        reads = {out.id: frozenset([first.id])}
        operator = Operator(lambda row: [row, (None, *row[1:])], "EXPAND", passes, reads)
        return RowWise((out, *child.columns[1:]), child, operator)

    def concat(self, *children: Relation) -> Concat:
        children = self.level(children)
        return Concat(self.output(children[0]), children, Operator(None, "UNION ALL"))

    def level(self, children: tuple[Relation, ...]) -> tuple[Relation, ...]:
        """The children, cut to the same number of columns."""
        width = min(len(child.columns) for child in children)

        def cut(child: Relation) -> Relation:
            columns = child.columns[:width]
            operator = Operator(lambda row: [row[:width]], "SELECT", {c.id: c.id for c in columns})
            return child if len(child.columns) == width else RowWise(columns, child, operator)

        return tuple(cut(child) for child in children)

    def output(self, child: Relation) -> tuple[Column, ...]:
        """The child's columns, or new ones in their place; columns that occur twice are told apart."""
        repeated = len({c.id for c in child.columns}) < len(child.columns)
        fresh = repeated or self.rng.random() < 0.5
        return tuple(self.column("u") for _ in child.columns) if fresh else child.columns

    def condition(
        self, left: Relation, right: Relation, kind: str
    ) -> tuple[tuple[tuple[int, int], ...], Operator]:
        """Equalities (which never match NULL), null-safe ones, a residual; or no equality; or nothing at all."""
        pairs = list(zip(self.two(left), self.two(right), strict=True))
        shape = self.rng.choice(["=", "<=>", "<=>", "= and <", "= and =", "not in", "<", "true"])
        tests = {
            "=": [payloads.equal],
            "<=>": [payloads.null_safe],
            "= and <": [payloads.equal, payloads.less],
            "= and =": [payloads.equal, payloads.null_safe],
            "not in": [payloads.equal_or_unknown],
            "<": [payloads.less],
            "true": [],
        }[shape]
        used = pairs[: len(tests)]
        keys = tuple((lt.id, rt.id) for (lt, rt), test in zip(used, tests, strict=True) if test in KEYED)
        return keys, self.joined(left, right, kind, used, tests, shape)

    def joined(
        self, left: Relation, right: Relation, kind: str, used: list, tests: list, shape: str
    ) -> Operator:
        places = [(*places_of(left, [lt.id]), *places_of(right, [rt.id])) for lt, rt in used]

        def holds(row: Row, other: Row) -> bool:
            return all(test(row[i], other[j]) for test, (i, j) in zip(tests, places, strict=True))

        named = " and ".join(f"{lt.name}, {rt.name}" for lt, rt in used)
        decides = frozenset(c.id for pair in used for c in pair)
        passes = same(left) | (same(right) if kind == "inner" else {})
        return Operator(Join(kind, holds), f"{kind} {shape} ({named})", passes, decides=decides)

    def inner_join(self, left: Relation, right: Relation) -> InnerJoin:
        keys, operator = self.condition(left, right, "inner")
        return InnerJoin((*left.columns, *right.columns), left, right, keys, operator)

    def lookup_join(self, left: Relation, right: Relation) -> LookupJoin:
        kind = self.rng.choice(["left", "left", "semi", "anti", "existence", "single"])
        if kind == "single":
            return self.scalar(left, right)
        keys, operator = self.condition(left, right, kind)
        if kind == "existence":
            flag = self.column("exists")
            operator = replace(operator, reads={flag.id: operator.decides})
            return LookupJoin((*left.columns, flag), left, right, keys, operator)
        columns = (*left.columns, *right.columns) if kind == "left" else left.columns
        return LookupJoin(columns, left, right, keys, operator)

    def scalar(self, left: Relation, right: Relation) -> LookupJoin:
        """A scalar subquery: correlated, with a group for each key; or not, with at most one row."""
        if self.rng.random() < 0.5:
            grouped = self.group(right, shown=1)
            column, key = self.rng.choice(left.columns), grouped.columns[0]
            keys, used, tests = ((column.id, key.id),), [(column, key)], [payloads.equal]
        else:
            grouped = self.filter(self.overall(right))
            keys, used, tests = (), [], []
        operator = replace(self.joined(left, grouped, "single", used, tests, "scalar"), keeps_rows=True)
        return LookupJoin((*left.columns, *grouped.columns), left, grouped, keys, operator)

    def compared(self, left: Relation, right: Relation) -> RowWise:
        """Rows of which a column is compared with one value for all, which is dropped again or not."""
        value = self.overall(right)
        operator = replace(self.joined(left, value, "single", [], [], "scalar"), keeps_rows=True)
        join = LookupJoin((*left.columns, *value.columns), left, value, (), operator)
        column, looked_at = self.rng.choice(left.columns), self.rng.choice(value.columns)
        (one,), (other,) = places_of(join, [column.id]), places_of(join, [looked_at.id])
        test = self.rng.choice([payloads.less, payloads.null_safe, payloads.equal_or_unknown])
        decision = Operator(
            lambda row: [row] if test(row[one], row[other]) else [],
            f"WHERE {column.name} against {looked_at.name}",
            same(join),
            decides=frozenset([column.id, looked_at.id]),
            drops_rows=True,
        )
        shown = self.some(left.columns if self.rng.random() < 0.7 else join.columns)
        places = places_of(join, [c.id for c in shown])
        kept = Operator(
            lambda row: [tuple(row[i] for i in places)],
            "SELECT",
            {c.id: c.id for c in shown},
            {c.id: frozenset([c.id]) for c in shown},
            keeps_rows=True,
        )
        return RowWise(tuple(shown), RowWise(join.columns, join, decision), kept)

    def group(self, child: Relation, shown: int | None = None) -> PerKey:
        """GROUP BY one or two columns, of which the output need not show any."""
        by = self.some(child.columns)[: shown or 2]
        kept = by[: self.rng.randint(0, len(by)) if shown is None else shown]
        keys = [c if self.rng.random() < 0.5 else self.column("g") for c in kept]
        columns, aggregates, reads, unrepeatable = self.aggregates(child)
        payload = payloads.grouped(
            places_of(child, [c.id for c in by]), places_of(child, [c.id for c in kept]), aggregates
        )
        operator = Operator(
            payload,
            f"GROUP BY {', '.join(c.name for c in by)}",
            {out.id: c.id for out, c in zip(keys, kept, strict=True)},
            reads | {out.id: frozenset([c.id]) for out, c in zip(keys, kept, strict=True)},
            frozenset(c.id for c in by),
            unrepeatable,
        )
        return PerKey((*keys, *columns), (child,), (tuple(c.id for c in by),), operator)

    def aggregates(self, child: Relation) -> tuple[tuple[Column, ...], list, dict, frozenset[int]]:
        inputs = self.some(child.columns)
        columns = tuple(self.column("agg") for _ in inputs)
        functions = [self.rng.choice(payloads.AGGREGATES) for _ in inputs]
        unrepeatable = frozenset(c.id for c in columns if self.unrepeatable and self.rng.random() < 0.6)
        functions = [
            payloads.differing() if c.id in unrepeatable else f
            for c, f in zip(columns, functions, strict=True)
        ]
        reads = {out.id: frozenset([c.id]) for out, c in zip(columns, inputs, strict=True)}
        places = places_of(child, [c.id for c in inputs])
        return columns, list(zip(functions, places, strict=True)), reads, unrepeatable

    def distinct(self, child: Relation) -> PerKey:
        ids = tuple(c.id for c in child.columns)
        operator = Operator(
            lambda bags: Counter(bags[0].keys()), "DISTINCT", same(child), decides=frozenset(ids)
        )
        return PerKey(child.columns, (child,), (ids,), operator)

    def set_operation(self, *children: Relation) -> PerKey:
        first, second = self.level(children)
        columns, label = self.output(first), self.rng.choice(sorted(payloads.SET_OPERATIONS))
        keys = tuple(tuple(c.id for c in child.columns) for child in (first, second))
        passes = {out.id: c.id for out, c in zip(columns, first.columns, strict=True)}
        decides = frozenset(itertools.chain(*keys))
        operator = Operator(payloads.SET_OPERATIONS[label], label, passes, decides=decides)
        return PerKey(columns, (first, second), keys, operator)

    def window(self, child: Relation) -> PerKey:
        by, order, out = self.some(child.columns), self.rng.choice(child.columns), self.column("w")
        function = self.rng.choice([payloads.ranked, payloads.counted])
        payload = function(places_of(child, [c.id for c in by]), *places_of(child, [order.id]))
        keys = tuple(c.id for c in by)
        operator = Operator(payload, "WINDOW", same(child), {out.id: frozenset([*keys, order.id])})
        return PerKey((*child.columns, out), (child,), (keys,), operator)

    def whole(self, child: Relation) -> Whole | Top | Loop:
        return self.rng.choice([self.overall, self.top, self.closure, self.recursion])(child)

    def overall(self, child: Relation) -> Whole:
        columns, aggregates, reads, unrepeatable = self.aggregates(child)
        operator = Operator(payloads.overall(aggregates), "AGGREGATE", {}, reads, frozenset(), unrepeatable)
        return Whole(columns, (child,), operator, "an aggregate without keys reads everything")

    def top(self, child: Relation) -> Top:
        limit, offset = self.rng.randint(0, 3), self.rng.choice([0, 0, 1])
        operator = Operator(payloads.top(limit, offset), "LIMIT", same(child), decides=frozenset(same(child)))
        return Top(child.columns, child, limit, offset, operator)

    def closure(self, child: Relation) -> Loop:
        """A recursive query of which nothing more is known."""
        columns, inputs = (self.column("from"), self.column("to")), frozenset(same(child))
        reads = {c.id: inputs for c in columns}
        operator = Operator(payloads.reachable, "RECURSIVE", {}, reads, inputs)
        return Loop(columns, (child,), operator, None, "it compares with everything found so far")

    def recursion(self, base: Relation) -> Loop:
        """Nodes of a graph at most two edges away from those of the base, once for each path."""
        edges = self.relation(1, 1)
        columns, inner = (self.column("n"), self.column("level")), (self.column("n"), self.column("level"))
        inputs = frozenset(same(base)) | frozenset(same(edges))
        operator = Operator(payloads.paths, "RECURSIVE", {}, {c.id: inputs for c in columns}, inputs)
        started = RowWise(
            (self.column("n"), self.column("level")),
            base,
            Operator(payloads.started, "SELECT", decides=inputs),
        )
        itself = Scan(inner, "itself", Operator(None, "itself"))
        first = self.column("first")
        pair = RowWise(
            (first, self.column("last")),
            edges,
            Operator(payloads.edge, "SELECT", decides=frozenset(same(edges))),
        )
        keys = ((inner[0].id, first.id),)
        join = self.joined(itself, pair, "inner", [(inner[0], first)], [payloads.equal], "=")
        met = InnerJoin((*inner, *pair.columns), itself, pair, keys, join)
        step = RowWise(
            (self.column("n"), self.column("level")),
            met,
            Operator(payloads.next_level, "SELECT", decides=frozenset(same(met))),
        )
        return Loop(columns, (started, pair), operator, Recursion(started, step, "itself"))


KEYED = (payloads.equal, payloads.null_safe)


def same(child: Relation) -> dict[int, int]:
    return {c.id: c.id for c in child.columns}
