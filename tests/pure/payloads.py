"""Operators as Python functions over bags, with SQL's treatment of NULL."""

import itertools
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence

from tests.pure.interpreter import Bag, Row, pick

Value = int | None
Aggregate = Callable[[list[Value]], Value]


def equal(a: Value, b: Value) -> bool | None:
    return None if a is None or b is None else a == b


def less(a: Value, b: Value) -> bool | None:
    return None if a is None or b is None else a < b


def null_safe(a: Value, b: Value) -> bool:
    return a == b


def equal_or_unknown(a: Value, b: Value) -> bool:
    """The condition of NOT IN: NULL on either side matches everything."""
    return equal(a, b) is not False


def present(values: list[Value]) -> list[int]:
    return [v for v in values if v is not None]


def count(values: list[Value]) -> Value:
    return len(present(values))


def total(values: list[Value]) -> Value:
    return sum(present(values)) if present(values) else None


def least(values: list[Value]) -> Value:
    return min(present(values), default=None)


AGGREGATES: tuple[Aggregate, ...] = (count, total, least)


def differing() -> Aggregate:
    """An aggregate that never gives the same value twice."""
    times = itertools.count(1)
    return lambda values: len(values) + 1000 * next(times)


def groups(bag: Bag, places: Sequence[int]) -> dict[Row, list[Row]]:
    found: dict[Row, list[Row]] = defaultdict(list)
    for row in bag.elements():
        found[pick(row, places)].append(row)
    return found


def grouped(
    places: Sequence[int], shown: Sequence[int], aggregates: Sequence[tuple[Aggregate, int]]
) -> Callable[[list[Bag]], Bag]:
    """GROUP BY the columns at `places`; the output has some of them and the aggregates."""

    def run(bags: list[Bag]) -> Bag:
        return Counter(
            pick(rows[0], shown) + tuple(f([row[i] for row in rows]) for f, i in aggregates)
            for rows in groups(bags[0], places).values()
        )

    return run


def overall(aggregates: Sequence[tuple[Aggregate, int]]) -> Callable[[list[Bag]], Bag]:
    """An aggregate without GROUP BY: always one row."""
    return lambda bags: Counter([tuple(f([row[i] for row in bags[0].elements()]) for f, i in aggregates)])


def ranked(partition: Sequence[int], order: int) -> Callable[[list[Bag]], Bag]:
    """rank() OVER (PARTITION BY … ORDER BY …), NULLs first."""

    def run(bags: list[Bag]) -> Bag:
        out: Bag = Counter()
        for rows in groups(bags[0], partition).values():
            values = sorted(sortable([row[order]]) for row in rows)
            out += Counter((*row, 1 + values.index(sortable([row[order]]))) for row in rows)
        return out

    return run


def counted(partition: Sequence[int], _order: int) -> Callable[[list[Bag]], Bag]:
    """count(*) OVER (PARTITION BY …)."""
    return lambda bags: Counter(
        (*row, len(rows)) for rows in groups(bags[0], partition).values() for row in rows
    )


def top(limit: int, offset: int) -> Callable[[list[Bag]], Bag]:
    """ORDER BY every column LIMIT … OFFSET …."""
    return lambda bags: Counter(sorted(bags[0].elements(), key=sortable)[offset : offset + limit])


def reachable(bags: list[Bag]) -> Bag:
    """The transitive closure of the first two columns, by recursion."""
    edges = {(row[0], row[-1]) for row in bags[0]}
    paths, found = set(edges), set(edges)
    while found:
        found = {(a, d) for a, b in found for c, d in edges if equal(b, c)} - paths
        paths |= found
    return Counter(paths)


def started(row: Row) -> list[Row]:
    return [(row[0], 0)]


def edge(row: Row) -> list[Row]:
    return [(row[0], row[-1])]


def next_level(row: Row) -> list[Row]:
    """From (node, level, first, last): the last node, one level further, up to the second."""
    _node, level, _first, last = row
    return [(last, level + 1)] if level < 2 else []


def paths(bags: list[Bag]) -> Bag:
    """Every path of at most two edges from a start: its end and its length."""
    found, all_found = Counter(bags[0]), Counter(bags[0])
    while found:
        longer: Bag = Counter()
        for (node, level), n in found.items():
            for (first, last), m in bags[1].items():
                if equal(node, first) and level < 2:
                    longer[(last, level + 1)] += n * m
        found = longer
        all_found += longer
    return all_found


SET_OPERATIONS: dict[str, Callable[[list[Bag]], Bag]] = {
    "INTERSECT ALL": lambda bags: bags[0] & bags[1],
    "EXCEPT ALL": lambda bags: bags[0] - bags[1],
    "INTERSECT": lambda bags: Counter(bags[0].keys() & bags[1].keys()),
    "EXCEPT": lambda bags: Counter(bags[0].keys() - bags[1].keys()),
}


def sortable(row: Iterable[Value]) -> tuple[tuple[bool, int], ...]:
    return tuple((v is not None, v or 0) for v in row)


def exploded(place: int) -> Callable[[Row], Iterator[Row]]:
    """One row for each number below the column's value, at most two."""
    return lambda row: ((*row, i) for i in range(min(row[place] or 0, 2)))
