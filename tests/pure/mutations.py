"""The rules of the calculus, each broken once on purpose. A function here replaces one attribute."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from spark_trickle.algebra import restrict as restriction
from spark_trickle.algebra.relations import (
    NEW,
    OLD,
    At,
    Concat,
    KeysOf,
    LookupJoin,
    Node,
    Operator,
    Part,
    Partners,
    RowWise,
    Scan,
    Signed,
    Sum,
)
from spark_trickle.algebra.repeatable import Repeatability
from spark_trickle.algebra.traverse import sources_of
from spark_trickle.incremental import maintain
from spark_trickle.incremental.prune import Pruner
from spark_trickle.incremental.rules import (
    concat,
    inner_join,
    lookup_join,
    met_groups,
    per_key,
    real_pairs,
    row_wise,
    swayed,
    touched,
    whole,
)
from tests.pure.interpreter import Interpreter, pick, places_of


@dataclass(frozen=True)
class Mutation:
    place: object
    attribute: str
    replacement: Callable
    unrepeatable: bool


MUTATIONS: list[Mutation] = []

right_change = lookup_join.change
right_partners = met_groups._met
right_from_stored = maintain._from_stored
right_matching = restriction.matching
right_restrict = restriction.restrict
right_keys = Interpreter._find_keys
right_met = touched._met
right_parts = touched._parts
right_prune = Pruner._prune
right_pruned_keys = Pruner._key_set


def breaks(place: object, attribute: str, *, unrepeatable: bool = False) -> Callable[[Callable], Callable]:
    """The decorated function takes the place of a rule; some mistakes show only on unrepeatable values."""

    def register(replacement: Callable) -> Callable:
        MUTATIONS.append(Mutation(place, attribute, replacement, unrepeatable))
        return replacement

    return register


def without_nulls(node: Node, on: tuple[int, ...]) -> RowWise:
    places = places_of(node, on)
    keep = Operator(lambda row: [] if None in pick(row, places) else [row], "WHERE NOT NULL")
    return RowWise(node.columns, node, keep)


@breaks(row_wise, "change")
def row_wise_counts_every_change_twice(node, change_of):
    once = replace(node, child=change_of(node.child))
    return Sum((once, once))


@breaks(concat, "change")
def concat_forgets_its_last_input(node, change_of):
    return replace(node, children=tuple(change_of(child) for child in node.children[:-1]))


@breaks(inner_join, "change")
def inner_join_reads_the_left_side_new(join, change_of):
    from_left = replace(join, left=change_of(join.left), right=At(join.right, NEW))
    return Sum((from_left, replace(join, left=At(join.left, NEW), right=change_of(join.right))))


@breaks(inner_join, "change")
def inner_join_reads_the_right_side_old(join, change_of):
    from_left = replace(join, left=change_of(join.left), right=At(join.right, OLD))
    return Sum((from_left, replace(join, left=At(join.left, OLD), right=change_of(join.right))))


@breaks(inner_join, "change")
def inner_join_forgets_changes_on_the_right(join, change_of):
    return replace(join, left=change_of(join.left), right=At(join.right, NEW))


@breaks(met_groups, "_met")
def groups_are_met_at_the_other_version(side, version, columns, touched):
    return right_partners(side, NEW if version is OLD else OLD, columns, touched)


@breaks(met_groups, "_met")
def groups_are_those_that_rows_of_the_other_version_meet(side, version, columns, touched):
    _, keys = right_partners(side, NEW if version is OLD else OLD, columns, touched)
    return right_partners(side, version, columns, touched)[0], keys


@breaks(lookup_join, "change")
def lookup_join_does_not_take_back_old_rows(join, change_of):
    return Sum(right_change(join, change_of).changes[:2])


@breaks(lookup_join, "change")
def lookup_join_does_not_look_again(join, change_of):
    return right_change(join, change_of).changes[0]


@breaks(lookup_join, "change")
def lookup_join_shows_changed_left_rows_the_old_right_side(join, change_of):
    _, added, removed = right_change(join, change_of).changes
    return Sum((replace(join, left=change_of(join.left), right=At(join.right, OLD)), added, removed))


@breaks(lookup_join, "change")
def lookup_join_forgets_left_rows_whose_partners_vanished(join, change_of):
    def added(node):
        return change_of(node) if node is join.left else Signed(At(node, NEW), +1)

    return right_change(join, added)


@breaks(lookup_join, "matching")
def lookup_join_looks_again_with_new_rows_only(relation, _version, on, keys):
    return right_matching(relation, NEW, on, keys)


@breaks(lookup_join, "matching")
def lookup_join_forgets_rows_with_null_keys(relation, version, on, keys):
    return without_nulls(right_matching(relation, version, on, keys), on)


@breaks(lookup_join, "Partners")
def lookup_join_forgets_that_null_may_meet_everything(left, change, join):
    return Partners(left, without_nulls(change, [c.id for c in change.columns]), join)


@breaks(swayed, "Partners")
def rows_are_swayed_only_by_a_value_they_pass_with(rows, moved, join, decision, sides):
    new, _ = sides
    return RowWise(
        rows.columns, Partners(rows, moved, join, decision, (new, new)), Operator(lambda r: [r], "")
    )


@breaks(swayed, "At")
def what_is_swayed_is_looked_for_among_the_new_rows(relation, version):
    return At(relation, NEW if isinstance(relation, Scan) else version)


@breaks(swayed, "drops_what_all_look_at")
def a_value_that_is_shown_sways_nobody_either(_node):
    return True


@breaks(swayed, "partners")
def what_is_swayed_meets_the_new_rows_of_the_other_side(relation, _version, on, rows, their):
    return restriction.partners(relation, NEW, on, rows, their)


@breaks(real_pairs, "Kept")
def rows_that_went_meet_what_changed(rows, _removed):
    return rows


@breaks(real_pairs, "_from_left")
def rows_that_went_meet_the_new_right_side(join, changed):
    return (replace(join, left=changed, right=At(join.right, NEW)),)


@breaks(real_pairs, "_right_keys")
def rows_that_stayed_are_looked_up_by_the_keys_of_new_rows_only(join, _change_right):
    on = tuple(right for _, right in join.keys)
    return KeysOf(((Signed(At(join.right, NEW), +1), on),)) if on else None


@breaks(per_key, "exactly")
def per_key_takes_keys_from_its_first_input_only(node, change_of):
    parts = KeysOf(((change_of(node.children[0]), node.keys[0]),))
    return touched.Touched(parts, tuple(range(len(node.keys[0]))))


@breaks(per_key, "exactly")
@breaks(maintain, "at_least")
def per_key_takes_keys_from_new_rows_only(node, _change_of):
    parts = zip(node.children, node.keys, strict=True)
    keys = KeysOf(tuple((Signed(At(child, NEW), +1), on) for child, on in parts))
    return touched.Touched(keys, tuple(range(len(node.keys[0]))))


@breaks(per_key, "exactly")
@breaks(maintain, "at_least")
def per_key_takes_keys_from_added_rows_only(node, change_of):
    parts = zip(node.children, node.keys, strict=True)
    keys = KeysOf(tuple((Part(change_of(child), +1), on) for child, on in parts))
    return touched.Touched(keys, tuple(range(len(node.keys[0]))))


@breaks(touched, "_parts")
def keys_are_told_by_the_first_input_of_a_join_only(relation, columns, change_of):
    found = list(right_parts(relation, columns, change_of))
    return found[:1]


@breaks(touched, "_looking")
def rows_that_look_at_a_change_are_told_by_their_partners_alone(join, change_of):
    return change_of(join.left)


@breaks(touched, "_met")
def keys_that_a_side_cannot_tell_are_those_of_the_other_side(relation, number, change_of):
    return right_met(relation, 1 - number, change_of)


@breaks(touched, "across")
def keys_are_told_by_some_column_of_the_other_side(on, partner):
    return {i: next(iter(partner.values())) for i in on} if partner else {}


@breaks(per_key, "restricted")
def per_key_restricts_the_new_version_only(node, version, found):
    parts = zip(node.children, node.keys, strict=True)
    new = tuple(right_matching(child, NEW, found.of(on), found.keys) for child, on in parts)
    old = tuple(At(child, OLD) for child in node.children)
    return replace(node, children=new if version is NEW else old)


@breaks(per_key, "matching")
def per_key_forgets_the_null_group(relation, version, on, keys):
    return without_nulls(right_matching(relation, version, on, keys), on)


@breaks(Interpreter, "_find_keys")
def keys_are_taken_from_added_rows_only(self, keys):
    for part, on in keys.parts:
        places = places_of(part, on)
        yield from (pick(row, places) for row, weight in self.evaluate(part).items() if weight > 0)


@breaks(Interpreter, "_find_keys")
def keys_match_as_equality_does_and_not_null_safe(self, keys):
    return (key for key in right_keys(self, keys) if None not in key)


@breaks(whole, "change")
def whole_does_not_take_back_the_old_answer(node):
    return Signed(At(node, NEW), +1)


@breaks(whole, "change")
def whole_mixes_up_the_signs(node):
    return Sum((Signed(At(node, NEW), -1), Signed(At(node, OLD), +1)))


@breaks(whole, "change")
def whole_has_no_change(node):
    return Sum((Signed(At(node, OLD), +1), Signed(At(node, OLD), -1)))


@breaks(maintain, "_from_stored")
def recursion_forgets_what_changed_in_its_base(root, top, *rules):
    plan = right_from_stored(root, top, *rules)
    return replace(plan, base=plan.step) if isinstance(plan, maintain.Iterate) else plan


@breaks(maintain, "_from_stored")
def recursion_forgets_what_its_step_reads(root, top, *rules):
    plan = right_from_stored(root, top, *rules)
    return replace(plan, step=plan.base) if isinstance(plan, maintain.Iterate) else plan


@breaks(restriction, "restrict")
def keys_are_pushed_into_the_right_side_of_a_lookup(relation, version, on, keys):
    if not isinstance(relation, LookupJoin):
        return right_restrict(relation, version, on, keys)
    ids = {column.id for column in relation.right.columns}
    to_right = {i: c for i, c in on.items() if c in ids}
    pushed = restriction.restrict(relation.right, version, to_right, keys)
    return replace(relation, left=At(relation.left, version), right=pushed)


@breaks(restriction, "restrict")
def keys_are_pushed_through_a_computed_column(relation, version, on, keys):
    if not isinstance(relation, RowWise):
        return right_restrict(relation, version, on, keys)
    reads = {c: inner for c, (inner, *_) in relation.operator.reads.items()}
    below = {i: reads.get(c, c) for i, c in on.items()}
    known = {column.id for column in relation.child.columns}
    below = {i: c for i, c in below.items() if c in known}
    return replace(relation, child=restriction.restrict(relation.child, version, below, keys))


@breaks(restriction, "_into_keys")
def keys_are_pushed_by_columns_that_are_no_grouping_keys(relation, version, on, keys):
    passes = relation.operator.passes
    below = {i: passes[c] for i, c in on.items() if c in passes}
    if len(relation.children) > 1 or not below:
        return At(relation, version)
    child = restriction.restrict(relation.children[0], version, below, keys)
    return replace(relation, children=(child,))


@breaks(restriction, "across")
def keys_are_pushed_across_a_join_to_some_column_of_the_same_side(on, partner):
    wrong = dict(zip(partner, reversed(partner.values()), strict=True))
    return {i: wrong[c] for i, c in on.items() if c in wrong}


@breaks(restriction, "matching")
def matching_trusts_the_push_to_be_exact(relation, version, on, keys):
    return right_restrict(relation, version, dict(enumerate(on)), keys)


@breaks(Pruner, "_prune")
def pruning_drops_a_sum_when_one_term_is_empty(self, node):
    if isinstance(node, Sum) and any(self.node(term) is None for term in node.changes):
        return None
    return right_prune(self, node)


@breaks(Pruner, "_prune")
def pruning_drops_a_concat_when_one_input_is_empty(self, node):
    if isinstance(node, Concat) and any(self.node(child) is None for child in node.children):
        return None
    return right_prune(self, node)


@breaks(Pruner, "_prune")
def pruning_drops_a_whole_unless_all_its_sources_changed(self, node):
    if isinstance(node, Signed) and isinstance(node.child, At):
        return node if sources_of(node.child.relation) <= self._changed else None
    return right_prune(self, node)


@breaks(Pruner, "_key_set")
def pruning_drops_keys_unless_every_input_changed(self, keys):
    if any(self._node(part) is None for part, _ in keys.parts):
        return None
    return right_pruned_keys(self, keys)


@breaks(maintain, "visible_keys")
def by_key_looks_for_keys_in_the_first_columns(root, top):
    return tuple(column.id for column in root.columns[: len(top.keys[0])])


@breaks(maintain, "_by_key")
def by_key_replaces_some_rows_by_all_rows(root, top, columns, change_of):
    found = touched.at_least(top, change_of)
    return maintain.ByKey(found.keys, found.of(columns), At(root, NEW))


@breaks(maintain, "repeatability", unrepeatable=True)
def values_that_differ_each_time_are_found_by_value(_relation):
    return Repeatability(frozenset())
