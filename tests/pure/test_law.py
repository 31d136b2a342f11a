"""The law, on random plans and databases: the change of a query is its new answer minus its old answer."""

from hypothesis import given, settings

from tests.pure import law
from tests.pure.cases import Case, cases


@settings(max_examples=600)
@given(cases())
def test_the_change_of_a_query_is_its_new_answer_minus_its_old_answer(case: Case) -> None:
    law.check_change(case)


@settings(max_examples=600)
@given(cases())
def test_a_change_without_its_unchanged_branches_is_the_same_change(case: Case) -> None:
    law.check_pruned_change(case)


@settings(max_examples=600)
@given(cases())
def test_the_stored_answer_becomes_the_new_answer(case: Case) -> None:
    law.check_maintained(case)


@settings(max_examples=600)
@given(cases())
def test_rows_that_were_never_there_together_need_not_meet(case: Case) -> None:
    law.check_pairs(case)


@settings(max_examples=400)
@given(cases(unrepeatable=True))
def test_the_stored_answer_becomes_the_new_answer_although_values_differ_each_time(case: Case) -> None:
    law.check_maintained(case)


@settings(max_examples=600)
@given(cases())
def test_pushing_keys_down_loses_no_row_that_the_keys_ask_for(case: Case) -> None:
    law.check_restriction(case)
