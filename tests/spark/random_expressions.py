"""Random expressions over given columns: always of a known type, safe in ANSI mode, the same each time.

Nothing overflows (products only with small constants), nothing is divided by zero, strings are never made
numbers, and a DOUBLE is never made a string: 0.0 and -0.0 are equal and look different.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from tests.spark.random_ast import Call, Column, Expression, Literal

EXACT = ("INT", "BIGINT", "DECIMAL")
NUMERIC = (*EXACT, "DOUBLE")
CASTS = {"BIGINT": "BIGINT", "DECIMAL": "DECIMAL(24,2)", "STRING": "STRING"}
COMPARISONS = ("=", "<=>", "<", ">", *("<>", "<=", ">=") * 3)
"""Mostly those that let many rows pass: queries without an answer test little."""
Columns = Sequence[Column]


class Expressions:
    def __init__(self, random: Random) -> None:
        self._random = random

    def chance(self, probability: float) -> bool:
        return self._random.random() < probability

    def literal(self, type: str) -> Literal:
        match type:
            case "STRING":
                return Literal(self._random.choice(("'x'", "'X'", "''", "'y'", "'1'")), type)
            case "DECIMAL":
                return Literal(f"{self._random.randint(-300, 300) / 100:.2f}", type)
            case "DOUBLE":
                return Literal(self._random.choice(("0.1D", "0.0D", "2.0D", "double('NaN')")), type)
            case "BOOLEAN":
                return Literal(self._random.choice(("TRUE", "FALSE")), type)
            case _:
                return Literal(f"{self._random.randint(0, 5)}" + ("L" if type == "BIGINT" else ""), type)

    def maybe_null(self, type: str) -> Expression:
        cast = CASTS.get(type, type)
        return Call(f"CAST(NULL AS {cast})", (), type) if self.chance(0.1) else self.literal(type)

    def column(self, columns: Columns, *types: str) -> Column | None:
        fitting = [c for c in columns if c.type in types]
        return self._random.choice(fitting) if fitting else None

    def of_type(self, columns: Columns, type: str) -> Expression:
        """A column of the type, something that can be cast to it, or a constant."""
        found = self.column(columns, type)
        if found is not None and self.chance(0.95):
            return found
        below = {"BIGINT": ("INT", "DECIMAL"), "DECIMAL": ("INT", "BIGINT"), "STRING": EXACT}.get(type, ())
        other = self.column(columns, *below)
        if other is None:
            return self.maybe_null(type)
        return Call(f"CAST({{0}} AS {CASTS[type]})", (other,), type, f"cast to {type}")

    def value(self, columns: Columns, level: int = 2) -> Expression:
        """A column, or something computed from columns."""
        column = self._random.choice(columns)
        if level == 0 or self.chance(0.55):
            return column
        type, kind = column.type, self._random.random()
        if kind < 0.2:
            default = self.literal(type) if self.chance(0.5) else self.of_type(columns, type)
            return Call("COALESCE({0}, {1})", (column, default), type, "coalesce")
        if kind < 0.45:
            other = Literal("NULL", type) if self.chance(0.3) else self.of_type(columns, type)
            args = (self.predicate(columns, level - 1), column, other)
            return Call("CASE WHEN {0} THEN {1} ELSE {2} END", args, type, "case")
        if kind < 0.55:
            return Call("NULLIF({0}, {1})", (column, self.literal(type)), type)
        if kind < 0.75 and type in EXACT:
            to = self._random.choice([t for t in CASTS if t != type])
            return Call(f"CAST({{0}} AS {CASTS[to]})", (column,), to, f"cast to {to}")
        return self._computed(column, columns)

    def _computed(self, column: Column, columns: Columns) -> Expression:
        match column.type:
            case "INT":
                form = self._random.randint(0, 3)
                other = self.column(columns, "INT") or column
                if form == 0:
                    return Call("try_divide({0}, {1})", (column, other), "DOUBLE", "division")
                if form == 1:
                    return Call("({0} / NULLIF({1}, 0))", (column, other), "DOUBLE", "division")
                return Call("({0} + {1})" if form == 2 else "({0} - {1})", (column, other), "INT")
            case "BIGINT":
                return Call("({0} * 2 - 1)", (column,), "BIGINT")
            case "DECIMAL":
                return Call("CAST({0} + 1.50 AS DECIMAL(24,2))", (column,), "DECIMAL")
            case "STRING":
                return Call(self._random.choice(("UPPER({0})", "CONCAT({0}, 'z')")), (column,), "STRING")
            case _:
                return Call("({0} IS NULL)", (column,), "BOOLEAN")

    def predicate(self, columns: Columns, level: int = 2) -> Expression:
        """Three-valued logic over columns."""
        kind = self._random.random()
        if level > 0 and kind < 0.35:
            parts = (self.predicate(columns, level - 1), self.predicate(columns, level - 1))
            return Call(
                self._random.choice(("({0} AND {1})", *("({0} OR {1})",) * 2)), parts, "BOOLEAN", "logic"
            )
        if level > 0 and kind < 0.45:
            return Call("NOT ({0})", (self.predicate(columns, level - 1),), "BOOLEAN", "not")
        column = self._random.choice(columns)
        if kind < 0.55:
            return Call(
                self._random.choice(("({0} IS NULL)", *("({0} IS NOT NULL)",) * 2)),
                (column,),
                "BOOLEAN",
                "is null",
            )
        if kind < 0.62 and column.type != "BOOLEAN":
            listed = (column, self.literal(column.type), self.literal(column.type))
            forms = ("({0} IN ({1}, {2}))", "({0} NOT IN ({1}, {2}))", "(({0} IN ({1}, NULL)) IS NULL)")
            form = self._random.choice((*forms, *forms, "({0} NOT IN ({1}, NULL))"))
            return Call(form, listed, "BOOLEAN", "in list")
        if kind < 0.68 and column.type in EXACT:
            return Call("({0} BETWEEN 1 AND {1})", (column, self.literal(column.type)), "BOOLEAN")
        if kind < 0.72 and column.type == "BOOLEAN":
            return column
        return self.comparison(column, columns)

    def comparison(self, left: Expression, columns: Columns) -> Expression:
        """With a column that compares to it, or a constant."""
        types = NUMERIC if left.type in NUMERIC else (left.type,)
        other = self.column([c for c in columns if c != left], *types) if self.chance(0.5) else None
        operator = self._random.choice(COMPARISONS)
        return Call(f"({{0}} {operator} {{1}})", (left, other or self.literal(left.type)), "BOOLEAN")

    def aggregate(self, columns: Columns, doubles: bool = False) -> Expression:
        """COUNT, SUM, MIN, MAX, AVG on exact types; with `doubles` also sums that depend on the order."""
        double = self.column(columns, "DOUBLE") if doubles else None
        if double is not None and self.chance(0.5):
            return Call(self._random.choice(("SUM({0})", "AVG({0})")), (double,), "DOUBLE", "sum of double")
        found = self._aggregate(columns)
        if self.chance(0.15):
            args = (*found.args, self.predicate(columns, 1))
            template = f"{found.template} FILTER (WHERE {{{len(found.args)}}})"
            return Call(template, args, found.type, found.what + " filter")
        return found

    def _aggregate(self, columns: Columns) -> Call:
        column, kind = self._random.choice(columns), self._random.random()
        exact = self.column(columns, *EXACT)
        if kind < 0.12:
            return Call("COUNT(*)", (), "BIGINT", "count")
        if kind < 0.22:
            return Call("COUNT({0})", (column,), "BIGINT", "count")
        if kind < 0.34:
            return Call("COUNT(DISTINCT {0})", (column,), "BIGINT", "count distinct")
        if kind < 0.6 and exact is not None:
            type = "DECIMAL" if exact.type == "DECIMAL" else "BIGINT"
            form = "SUM(DISTINCT {0})" if self.chance(0.1) else "SUM({0})"
            return Call(form, (exact,), type, "sum")
        averaged = self.column(columns, "INT", "DECIMAL")
        if kind < 0.7 and averaged is not None:
            return Call("AVG({0})", (averaged,), "DOUBLE" if averaged.type == "INT" else "DECIMAL", "avg")
        name = self._random.choice(("MIN", "MAX"))
        return Call(f"{name}({{0}})", (column,), column.type, name.lower())

    def window(self, columns: Columns) -> Expression:
        """A window function; where ties would matter, the order covers every column."""
        parts = self._random.sample(columns, min(len(columns), self._random.choice((1,) * 12 + (2, 2, 0))))
        rest = [c for c in columns if c not in parts] or list(columns)
        self._random.shuffle(rest)
        value, number = self._random.choice(columns), self.column(columns, *EXACT)
        kind = self._random.random()
        if kind < 0.25:
            name = self._random.choice(("RANK", "DENSE_RANK"))
            return self._over(Call(f"{name}()", (), "INT", name.lower()), parts, rest[:2])
        if kind < 0.4:
            return self._over(Call("ROW_NUMBER()", (), "INT", "row_number"), parts, rest)
        if kind < 0.55:
            name = self._random.choice(("LAG", "LEAD"))
            return self._over(Call(f"{name}({{0}})", (value,), value.type, name.lower()), parts, rest)
        if kind < 0.75:
            bounds = self._random.choice(
                (
                    "1 PRECEDING AND CURRENT ROW",
                    "UNBOUNDED PRECEDING AND 1 PRECEDING",
                    "0 FOLLOWING AND 1 FOLLOWING",
                )
            )
            return self._over(self._framed(columns, "rows frame"), parts, rest, f" ROWS BETWEEN {bounds}")
        if kind < 0.87 and number is not None:
            bounds = self._random.choice(
                ("1 PRECEDING AND CURRENT ROW", "UNBOUNDED PRECEDING AND 1 FOLLOWING")
            )
            return self._over(
                self._framed(columns, "range frame"), parts, [number], f" RANGE BETWEEN {bounds}"
            )
        return self._over(self._framed(columns, "aggregate over"), parts, [])

    def _framed(self, columns: Columns, what: str) -> Call:
        number, value = self.column(columns, *EXACT), self._random.choice(columns)
        if number is not None and self.chance(0.4):
            return Call("SUM({0})", (number,), "DECIMAL" if number.type == "DECIMAL" else "BIGINT", what)
        name = self._random.choice(("COUNT", "MIN", "MAX"))
        return Call(f"{name}({{0}})", (value,), "BIGINT" if name == "COUNT" else value.type, what)

    def _over(self, call: Call, parts: Columns, order: Columns, frame: str = "") -> Expression:
        places = [f"{{{i}}}" for i in range(len(call.args), len(call.args) + len(parts) + len(order))]
        clauses = []
        if parts:
            clauses.append("PARTITION BY " + ", ".join(places[: len(parts)]))
        if order:
            ways = ("",) if "RANGE" in frame else ("", "", " DESC", " NULLS LAST", " DESC NULLS FIRST")
            listed = [place + self._random.choice(ways) for place in places[len(parts) :]]
            clauses.append("ORDER BY " + ", ".join(listed))
        template = f"{call.template} OVER ({' '.join(clauses)}{frame})"
        what = call.what if parts else "unpartitioned window"
        return Call(template, (*call.args, *parts, *order), call.type, what)
