"""A reference interpreter: what every node of the algebra means, over bags of Python tuples.

A bag is a Counter of rows. A change is the same with signed weights. The payload of an operator is a function:

RowWise              row → rows
InnerJoin, LookupJoin  a `Join`: its kind and its condition on (left row, right row)
PerKey, Whole, Top, Loop  list of bags → bag
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from spark_trickle.algebra.relations import (
    OLD,
    At,
    Changes,
    Column,
    Concat,
    Held,
    InnerJoin,
    Kept,
    KeysOf,
    LookupJoin,
    Loop,
    Matching,
    Net,
    Node,
    Part,
    Partners,
    PerKey,
    RowWise,
    Scan,
    Signed,
    Sum,
    Top,
    Version,
    Whole,
)

Row = tuple[int | None, ...]
Bag = Counter[Row]
Database = Mapping[str, tuple[Bag, Bag]]


@dataclass(frozen=True)
class Join:
    """`kind`: inner, left, semi, anti, existence or single; a condition that is not True does not match."""

    kind: str
    condition: Callable[[Row, Row], bool | None]

    def meet(self, left: Row, right: Row) -> bool:
        return self.condition(left, right) is True


class Interpreter:
    """Evaluates nodes over one database, each node once for each version.

    With `netting`, changes are netted wherever they are computed, else only where a Net says so: whoever
    runs these plans may do either. The same holds for `narrowing`: keys and conditions that only save reading are used
    or not.
    """

    def __init__(self, database: Database, *, netting: bool = False, narrowing: bool = True) -> None:
        self._database = database
        self._netting = netting
        self._narrowing = narrowing
        self._bags: dict[tuple[int, Version | None], tuple[Node, Bag]] = {}
        self._keys: dict[int, tuple[KeysOf, frozenset[Row]]] = {}

    def evaluate(self, node: Node, version: Version | None = None) -> Bag:
        """The rows of a node; a relation needs a version, given here or by an At above it."""
        place = (id(node), version)
        if place not in self._bags:
            bag = self._evaluate(node, version)
            self._bags[place] = (node, net(bag) if self._netting else bag)
        return self._bags[place][1]

    def keys(self, keys: KeysOf) -> frozenset[Row]:
        """The distinct keys of all parts."""
        if id(keys) not in self._keys:
            self._keys[id(keys)] = (keys, frozenset(self._find_keys(keys)))
        return self._keys[id(keys)][1]

    def _find_keys(self, keys: KeysOf) -> Iterable[Row]:
        for part, on in keys.parts:
            places = places_of(part, on)
            yield from (pick(row, places) for row in self.evaluate(part))

    def _evaluate(self, node: Node, version: Version | None) -> Bag:
        result: Bag = Counter()
        match node:
            case Scan(source=source):
                assert version is not None, f"{source} is read without a version"
                return self._read(node, self._database[source][version is not OLD])
            case RowWise(child=child):
                for row, weight in self.evaluate(child, version).items():
                    for out in node.operator.payload(row):
                        result[out] += weight
            case Concat(children=children) | Sum(changes=children):
                for child in children:
                    add(result, self.evaluate(child, version))
            case InnerJoin(left=left, right=right):
                rows = self.evaluate(right, version)
                for row, weight in self.evaluate(left, version).items():
                    for other, count in rows.items():
                        if self.meet(node, row, other):
                            result[row + other] += weight * count
            case LookupJoin(left=left, right=right):
                rows = self._bag(right, version)
                for row, weight in self.evaluate(left, version).items():
                    found = {other: n for other, n in rows.items() if self.meet(node, row, other)}
                    for out, count in look_up(node, row, found).items():
                        result[out] += weight * count
            case Top(child=child):
                return node.operator.payload([self._bag(child, version)])
            case PerKey(children=children) | Whole(children=children) | Loop(children=children):
                return node.operator.payload([self._bag(child, version) for child in children])
            case Changes(scan=scan):
                old, new = self._database[scan.source]
                return self._read(scan, minus(new, old))
            case At(relation=relation, version=chosen):
                return self.evaluate(relation, chosen)
            case Matching(child=child, needed=False) if not self._narrowing:
                return self.evaluate(child, version)
            case Matching(child=child, on=on, keys=keys):
                wanted = {pick(key, [i for i, _ in on]) for key in self.keys(keys)}
                places = places_of(child, [column for _, column in on])
                rows = self.evaluate(child, version)
                return Counter({row: n for row, n in rows.items() if pick(row, places) in wanted})
            case Held(child=child):
                return self.evaluate(child, version)
            case Partners(left=left, change=change, join=join):
                meet, met = join.operator.payload.meet, self.evaluate(change)
                rows = self.evaluate(left)
                found = Counter({row: n for row, n in rows.items() if any(meet(row, m) for m in met)})
                return self._swayed(node, found) if self._narrowing and node.swayed else found
            case Signed(child=child, sign=sign):
                add(result, self._bag(child, version), sign)
            case Net(change=change):
                return net(self.evaluate(change))
            case Part(change=change, sign=sign):
                rows = self.evaluate(change)
                return Counter({row: n for row, n in rows.items() if n * sign > 0})
            case Kept(rows=before, removed=removed):
                add(result, self._bag(before, version))
                add(result, self.evaluate(removed))
                return net(result)
        return result

    def _swayed(self, node: Partners, rows: Bag) -> Bag:
        """Those for which another number of rows passes the filter with the one side than with the other."""

        def passing(row: Row, side: Node) -> int:
            known = dict(zip((c.id for c in node.left.columns), row, strict=True))
            looked_at = [c.id for c in node.join.right.columns]
            found = self.evaluate(side) or Counter([(None,) * len(looked_at)])
            return sum(
                n
                * len(
                    list(
                        node.swayed.operator.payload(
                            _row(node.join, known | dict(zip(looked_at, r, strict=True)))
                        )
                    )
                )
                for r, n in found.items()
            )

        return Counter({row: n for row, n in rows.items() if len({passing(row, s) for s in node.sides}) > 1})

    def _read(self, scan: Scan, rows: Bag) -> Bag:
        """Without the rows that whoever reads them drops anyway, or with them."""
        names = [column.name for column in scan.columns]
        asked = [(names.index(c.column), c.values) for c in scan.only] if self._narrowing else []
        return Counter({row: n for row, n in rows.items() if all(row[i] in values for i, values in asked)})

    def meet(self, join: InnerJoin | LookupJoin, row: Row, other: Row) -> bool:
        """Do two rows belong together?"""
        return join.operator.payload.meet(row, other)

    def _bag(self, node: Node, version: Version | None) -> Bag:
        bag = self.evaluate(node, version)
        assert all(count > 0 for count in bag.values()), "a relation is needed here, this is a change"
        return bag


def _row(node: Node, values: Mapping[int, int | None]) -> Row:
    return tuple(values.get(column.id) for column in node.columns)


def look_up(join: LookupJoin, row: Row, met: Mapping[Row, int]) -> Bag:
    """What one left row yields that met some rows of the right side."""
    found = Counter({row + other: n for other, n in met.items()})
    match join.operator.payload.kind:
        case "semi":
            return Counter([row] if found else [])
        case "anti":
            return Counter([] if found else [row])
        case "existence":
            return Counter([(*row, int(bool(found)))])
        case "single" if found.total() > 1:
            raise ValueError("a scalar lookup found two rows")
    return found or Counter([row + (None,) * len(join.right.columns)])


def places_of(node: Node, ids: Iterable[int]) -> list[int]:
    """Where the columns stand in the node's rows."""
    return places_in(node.columns, ids)


def places_in(columns: Sequence[Column], ids: Iterable[int]) -> list[int]:
    order = [column.id for column in columns]
    return [order.index(i) for i in ids]


def pick(row: Row, places: Iterable[int]) -> Row:
    return tuple(row[i] for i in places)


def add(total: Bag, bag: Bag, sign: int = 1) -> None:
    for row, weight in bag.items():
        total[row] += sign * weight


def minus(new: Bag, old: Bag) -> Bag:
    """new − old, netted."""
    total: Bag = Counter()
    add(total, new)
    add(total, old, -1)
    return net(total)


def net(change: Bag) -> Bag:
    return Counter({row: weight for row, weight in change.items() if weight})
