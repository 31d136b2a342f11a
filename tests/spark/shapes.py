"""Twenty query shapes over three tables, and random edits that hit NULLs, duplicates and keys."""

from __future__ import annotations

import random

TABLES = {
    "a": "id INT, k INT, v INT, s STRING",
    "b": "k INT, w INT, d DECIMAL(8,2)",
    "c": "k INT, id INT, f DOUBLE",
}

SHAPES = {
    "filter": "SELECT id, v FROM a WHERE v > 2",
    "project_duplicates": "SELECT k, s FROM a",
    "inner_join": "SELECT a.id, b.w FROM a JOIN b ON a.k = b.k",
    "three_way": "SELECT a.id, b.w, c.f FROM a JOIN b ON a.k = b.k JOIN c ON b.k = c.k",
    "self_join": "SELECT x.id, y.v FROM a x JOIN a y ON x.id = y.k",
    "theta": "SELECT a.id, b.w FROM a JOIN b ON a.v < b.w",
    "left_join": "SELECT a.id, a.k, b.w FROM a LEFT JOIN b ON a.k = b.k AND b.w > 1",
    "full_join": "SELECT a.k, a.v, b.k AS bk, b.w FROM a FULL JOIN b ON a.k = b.k",
    "exists": "SELECT id FROM a WHERE EXISTS (SELECT 1 FROM b WHERE b.k = a.k AND b.w > a.v)",
    "not_in": "SELECT id, k FROM a WHERE k NOT IN (SELECT k FROM b WHERE w > 3)",
    "group": "SELECT k, COUNT(*) AS n, SUM(v) AS s, MIN(v) AS mn, MAX(s) AS mx FROM a GROUP BY k",
    "group_over_join": "SELECT a.k, SUM(b.d) AS s, COUNT(c.id) AS n FROM a JOIN b ON a.k = b.k LEFT JOIN c ON c.id = a.id GROUP BY a.k",
    "having_float": "SELECT k, SUM(f) AS s, AVG(f) AS m FROM c GROUP BY k HAVING COUNT(*) > 1",
    "rollup": "SELECT k, s, SUM(v) AS t, GROUPING(k) AS g FROM a GROUP BY ROLLUP (k, s)",
    "distinct_counts": "SELECT k, COUNT(DISTINCT v) AS d FROM (SELECT DISTINCT k, v, s FROM a) GROUP BY k",
    "set_operations": "(SELECT k FROM a EXCEPT ALL SELECT k FROM b) UNION ALL (SELECT k FROM b INTERSECT SELECT k FROM c)",
    "window": "SELECT id, k, SUM(v) OVER (PARTITION BY k) AS t, RANK() OVER (PARTITION BY k ORDER BY v) AS r FROM a",
    "scalar": "SELECT id, v, (SELECT MAX(w) FROM b) AS m FROM a WHERE v >= (SELECT AVG(v) FROM a)",
    "correlated": "SELECT id, (SELECT SUM(w) FROM b WHERE b.k = a.k) AS t FROM a",
    "explode": "SELECT id, x FROM a LATERAL VIEW explode(array(k, v)) e AS x WHERE x IS NOT NULL",
}


class Edits:
    """Random statements from a seed: few distinct values, so that everything collides."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def initial(self, table: str) -> str:
        return self._insert(table, self._random.randint(4, 10))

    def batch(self) -> list[str]:
        """One to four edits, usually to several tables."""
        return [self._edit(self._random.choice(list(TABLES))) for _ in range(self._random.randint(1, 4))]

    def _edit(self, table: str) -> str:
        kind = self._random.random()
        if kind < 0.45:
            return self._insert(table, self._random.randint(1, 4))
        if kind < 0.7:
            return f"DELETE FROM {table} WHERE {self._condition(table)}"
        column = self._random.choice(self._columns(table))
        return f"UPDATE {table} SET {column} = {self._value(table, column)} WHERE {self._condition(table)}"

    def _insert(self, table: str, rows: int) -> str:
        values = [
            "(" + ", ".join(self._value(table, c) for c in self._columns(table)) + ")" for _ in range(rows)
        ]
        values += values[:1] if self._random.random() < 0.3 else []
        return f"INSERT INTO {table} VALUES {', '.join(values)}"

    def _condition(self, table: str) -> str:
        column = self._random.choice(self._columns(table)[:2])
        choice = self._random.random()
        if choice < 0.2:
            return f"{column} IS NULL"
        return f"{column} = {self._random.randint(0, 5)}" if choice < 0.8 else f"{column} > 3"

    def _columns(self, table: str) -> list[str]:
        return [part.split()[0] for part in TABLES[table].split(", ")]

    def _value(self, table: str, column: str) -> str:
        if self._random.random() < 0.15:
            return "NULL"
        if column == "s":
            return self._random.choice(["'x'", "'X'", "''", "'y'"])
        if column == "f":
            return self._random.choice(
                ["double('NaN')", "double('-0.0')", "0.0D", "0.1D", "0.2D", "1e15D", "-3.5D"]
            )
        if column == "d":
            return str(self._random.randint(-300, 300) / 100)
        return str(self._random.randint(0, 5))
